"""Which topologies and host sizes a generation has, and what to say of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.tpu import gke
from tpu_operator.tpu.finding import About, error, warning
from tpu_operator.tpu.generations import CUBE_SIDE, is_ascending
from tpu_operator.tpu.topology import Topology

if TYPE_CHECKING:
    from tpu_operator.tpu.finding import Finding
    from tpu_operator.tpu.generations import Generation


def topology_fault(generation: Generation, topology: Topology) -> Finding | None:
    """Say why this generation has no slice of this topology; None if it has."""
    if generation.host_sizes(topology):
        return None
    legal = generation.legal_topologies()
    return error(
        About.TOPOLOGY,
        f"{generation} has no topology {topology}: {_reason(generation, topology)}",
        expected=legal,
        got=str(topology),
        fix=_advice(generation, topology) or f"use one of {legal}",
    )


def _reason(generation: Generation, topology: Topology) -> str:
    if generation.dims not in (0, len(topology.dims)):
        return f"its slices are {generation.dims}D"
    if generation.cubes is None:
        return "it is single-host only" if not generation.multi_host else "GKE offers no such slice"
    if topology.chips > generation.cubes.max_chips:
        return f"{topology.chips} chips are more than {generation.cubes.max_chips}"
    if generation.cubes.ordered and not is_ascending(topology):
        return "no side may be smaller than the one before"
    return f"beyond the small ones each side is a multiple of {CUBE_SIDE}"


def _advice(generation: Generation, topology: Topology) -> str:
    """Offer the same sides in another order, if one would do: as the table lists them, or ascending."""
    sides = sorted(topology.dims)
    orders = [each for each in (*generation.single_host, *generation.multi_host) if sorted(each.dims) == sides]
    legal = [order for order in (*orders, Topology(tuple(sides))) if generation.host_sizes(order)]
    return f"write {legal[0]}" if legal else ""


def chips_fault(generation: Generation, topology: Topology, chips: int) -> Finding | None:
    """Say why the hosts of this legal topology cannot have so many chips; None if they can."""
    sizes = generation.host_sizes(topology)
    if chips in sizes:
        return None
    legal = " or ".join(str(size) for size in sorted(sizes))
    return error(
        About.CHIPS,
        f"hosts of {generation} {topology} have {legal} chips, not {chips}",
        expected=legal,
        got=str(chips),
        fix=f"request {legal} of {gke.RESOURCE} in each pod",
    )


def generation_warning(generation: Generation, topology: Topology | None) -> Finding | None:
    """Say that the answer rests on the general rule, because the table does not hold this accelerator or topology."""
    if not generation.accelerator:
        return warning(
            About.ACCELERATOR,
            f"node selector {gke.ACCELERATOR} is missing: the shape is computed by the general rule",
            expected="a TPU accelerator",
            got="nothing",
            fix=f"set the node selector {gke.ACCELERATOR}",
        )
    listed = topology is None or topology in {*generation.single_host, *generation.multi_host}
    if generation.strict or (generation.known and listed):
        return None
    what = f"topology {topology} of {generation}" if generation.known else f"accelerator {generation.accelerator!r}"
    return warning(
        About.TOPOLOGY if generation.known else About.ACCELERATOR,
        f"{what} is not in the table: the shape is computed by the general rule",
        expected=generation.legal_topologies() if generation.known else "a known accelerator",
        got=str(topology) if generation.known else generation.accelerator,
        fix="check the spelling, or add the generation to the configuration",
    )
