"""The shape of a slice: how many hosts, what each has, and what libtpu and Ray call it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpu_operator.errors import InvalidInput
from tpu_operator.tpu import gke
from tpu_operator.tpu.finding import About, Finding, Severity, error
from tpu_operator.tpu.generations import HOST_SIZES, Generation, find_generation
from tpu_operator.tpu.legality import chips_fault, generation_warning, topology_fault
from tpu_operator.tpu.topology import Topology, parse_topology

if TYPE_CHECKING:
    from tpu_operator.tpu.generations import GenerationTable

__all__ = [
    "About",
    "Finding",
    "IllegalSlice",
    "Severity",
    "SliceShape",
    "check_chip_request",
    "check_slice",
    "slice_shape",
]

Axes = tuple[int, int, int]


class IllegalSlice(InvalidInput):
    """No such slice exists; `finding` says what was expected."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


@dataclass(frozen=True, slots=True)
class SliceShape:
    """A legal slice. Made by `slice_shape`; everything but the three fields follows from them."""

    generation: Generation
    topology: Topology
    chips_per_host: int

    @property
    def chips(self) -> int:
        """Chips of the whole slice."""
        return self.topology.chips

    @property
    def hosts(self) -> int:
        """Hosts, which are the Ray worker pods of one replica (`numOfHosts`)."""
        return self.chips // self.chips_per_host

    @property
    def multi_host(self) -> bool:
        """GKE: a pool is multi-host exactly if one node does not hold all chips of the topology."""
        return self.hosts > 1

    @property
    def chips_per_host_bounds(self) -> Axes:
        """Chips of one host along each axis (TPU_CHIPS_PER_HOST_BOUNDS)."""
        return HOST_SIZES[self.chips_per_host]

    @property
    def host_bounds(self) -> Axes:
        """Hosts along each axis (TPU_HOST_BOUNDS); their product is `hosts`."""
        return _divide(self.topology.axes, self.chips_per_host_bounds)

    @property
    def wrap(self) -> tuple[bool, bool, bool]:
        """Axes whose links close to a ring (TPU_TOPOLOGY_WRAP): all or none in 3D, each for itself in 2D."""
        closed = [dim >= self.generation.wrap_from for dim in self.topology.dims]
        if len(closed) == len(self.topology.axes):
            return (all(closed),) * 3
        return closed[0], closed[1], False

    @property
    def cores(self) -> int:
        """TensorCores of the whole slice, 0 if the generation is unknown."""
        return self.chips * self.generation.cores_per_chip

    @property
    def accelerator_type(self) -> str:
        """TPU_ACCELERATOR_TYPE, such as v6e-16; empty if the generation is unknown."""
        return self._typed(self.generation.type_prefix)

    @property
    def ray_head_resource(self) -> str:
        """Custom resource of host 0 that Ray's autoscaler counts on, such as TPU-v6e-16-head; empty if unknown."""
        pod_type = self._typed(self.generation.ray_prefix)
        return f"TPU-{pod_type}-head" if pod_type else ""

    @property
    def ray_node_head_resource(self) -> str:
        """The resource that Ray on host 0 announces by itself; another one for tpu-v5-lite-device, in Ray 2.60."""
        pod_type = self._typed(self.generation.ray_node_prefix)
        return f"TPU-{pod_type}-head" if pod_type else self.ray_head_resource

    def _typed(self, prefix: str) -> str:
        return f"{prefix}-{self.cores}" if prefix and self.cores else ""

    def coordinates(self, host: int) -> Axes:
        """Place of a host in `host_bounds`, row-major: the last axis runs fastest (host 1 of 2,2,4 is 0,0,1).

        This is a logical order: indices are given before the scheduler picks nodes, so the physical place may differ.
        """
        if not 0 <= host < self.hosts:
            raise InvalidInput(f"host {host} is not one of 0..{self.hosts - 1}")
        _, y, z = self.host_bounds
        return host // (y * z), host // z % y, host % z

    def host_at(self, coordinates: Axes) -> int:
        """Index of the host at a place in `host_bounds`; the inverse of `coordinates`."""
        if not all(0 <= at < size for at, size in zip(coordinates, self.host_bounds, strict=True)):
            raise InvalidInput(f"no host at {coordinates}: the host bounds are {self.host_bounds}")
        x, y, z = coordinates
        return (x * self.host_bounds[1] + y) * self.host_bounds[2] + z

    def chips_per_process_bounds(self, containers: int = 1) -> Axes:
        """Chips along each axis for each of the pod's TPU containers, which share the host's chips evenly."""
        size, rest = divmod(self.chips_per_host, containers) if containers > 0 else (0, 1)
        if rest or size not in HOST_SIZES:
            raise IllegalSlice(_uneven(self.chips_per_host, containers))
        return HOST_SIZES[size]

    def process_bounds(self, containers: int = 1) -> Axes:
        """Processes along each axis, one process a TPU container; their product is `hosts * containers`."""
        return _divide(self.topology.axes, self.chips_per_process_bounds(containers))


def _divide(whole: Axes, part: Axes) -> Axes:
    x, y, z = (size // piece for size, piece in zip(whole, part, strict=True))
    return x, y, z


def _uneven(chips: int, containers: int) -> Finding:
    legal = ", ".join(str(count) for count in sorted(chips // size for size in HOST_SIZES if chips % size == 0))
    return error(
        About.CHIPS,
        f"{chips} chips of a host cannot be shared by {containers} TPU containers",
        expected=legal,
        got=str(containers),
        fix=f"use {legal} TPU containers with equal requests",
    )


def slice_shape(
    accelerator: str,
    topology: str | Topology,
    chips_per_host: int | None = None,
    table: GenerationTable | None = None,
) -> SliceShape:
    """Compute the shape of a slice.

    `chips_per_host` is what one pod requests, over all its containers; that tells apart the 8-chip host and the two
    4-chip hosts of a 2x4. Without it: 4 wherever 4-chip hosts make this topology, else the only size there is. `table`
    is `generations.GENERATIONS` unless the configuration added some. An accelerator that is not in the table is
    computed by the general rule. Raises `InvalidInput` for what is no topology and `IllegalSlice` for a slice
    that does not exist.
    """
    generation = find_generation(accelerator, table)
    parsed = parse_topology(topology) if isinstance(topology, str) else topology
    if fault := topology_fault(generation, parsed):
        raise IllegalSlice(fault)
    chips = generation.host_sizes(parsed)[0] if chips_per_host is None else chips_per_host
    if fault := chips_fault(generation, parsed, chips):
        raise IllegalSlice(fault)
    shape = SliceShape(generation, parsed, chips)
    assert math.prod(shape.host_bounds) == shape.hosts
    return shape


def check_slice(
    accelerator: str,
    topology: str,
    chips: int | None,
    hosts: int | None,
    table: GenerationTable | None = None,
) -> list[Finding]:
    """Collect everything that is wrong with a worker group's slice, errors and warnings; never raises.

    `chips` is the request of one pod, `hosts` the group's numOfHosts (None: absent, which means 1).
    """
    generation = find_generation(accelerator, table)
    try:
        parsed = parse_topology(topology)
    except InvalidInput as mistake:
        faults = [generation_warning(generation, None), _bad_topology(topology, str(mistake)), _no_chips(chips)]
        return [fault for fault in faults if fault]
    faults = [topology_fault(generation, parsed), _no_chips(chips)]
    if not any(faults):
        faults = [_host_fault(generation, parsed, chips, hosts)]
    return [fault for fault in (generation_warning(generation, parsed), *faults) if fault]


def check_chip_request(request: int | None, limit: int | None) -> list[Finding]:
    """Say whether a container's request and limit for chips differ; Kubernetes wants them equal, or the limit alone."""
    if request is None or request == limit:
        return []
    got = f"request {request}, limit {'none' if limit is None else limit}"
    return [
        error(
            About.CHIPS,
            f"request and limit of {gke.RESOURCE} differ: {got}",
            expected=f"request {request}, limit {request}",
            got=got,
            fix=f"set both to the chips of one host ({limit or request})",
        )
    ]


def _bad_topology(topology: str, message: str) -> Finding:
    return error(
        About.TOPOLOGY,
        message,
        expected="2 or 3 positive whole numbers joined by 'x'",
        got=topology or "nothing",
        fix=f"set the node selector {gke.TOPOLOGY} to the topology of the node pool",
    )


def _no_chips(chips: int | None) -> Finding | None:
    if chips is None or chips > 0:
        return None
    return error(
        About.CHIPS,
        f"a host requests {chips} chips",
        expected="1 or more",
        got=str(chips),
        fix=f"request the chips of one host as {gke.RESOURCE}",
    )


def _host_fault(generation: Generation, topology: Topology, chips: int | None, hosts: int | None) -> Finding | None:
    sizes = generation.host_sizes(topology)
    size = sizes[0] if chips is None else chips
    if fault := chips_fault(generation, topology, size):
        return fault
    expected = SliceShape(generation, topology, size).hosts
    if (1 if hosts is None else hosts) == expected:
        return None
    got = "absent" if hosts is None else str(hosts)
    return error(
        About.HOSTS,
        f"{generation} {topology} with {size} chips per host has {expected} hosts, numOfHosts is {got}",
        expected=str(expected),
        got=got,
        fix=f"set numOfHosts to {expected}",
    )
