"""The TPU generations, a row each: what the accelerator label of a node means.

Facts from GKE's and Cloud TPU's public pages and from Ray's own tables. A new generation is one more row here, or a
mapping in the configuration (`generation_from_mapping`, `with_generations`); nothing else in the project names one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from typing_extensions import override

from tpu_operator.tpu.topology import Topology, parse_topology

if TYPE_CHECKING:
    from collections.abc import Iterable

# Chips of one host along each axis (libtpu's chips-per-host bounds); the keys are all the host sizes there are.
HOST_SIZES: Final[Mapping[int, tuple[int, int, int]]] = MappingProxyType(
    {1: (1, 1, 1), 2: (1, 2, 1), 4: (2, 2, 1), 8: (2, 4, 1)}
)
CUBE_SIDE: Final = 4

# Which host size to assume where nothing is known of a topology: 4 is what nearly all hosts have.
_LIKELY_HOST_SIZES: Final = (4, 2, 1, 8)


@dataclass(frozen=True, slots=True)
class Machine:
    """A Compute Engine machine type (one host) and its chips."""

    name: str
    chips: int


@dataclass(frozen=True, slots=True)
class CubeRule:
    """How large 3D slices are made: whole cubes of 4x4x4 chips, so each side is a multiple of 4.

    `ordered`: no side may be smaller than the one before it.
    """

    max_chips: int
    ordered: bool = True

    def allows(self, topology: Topology) -> bool:
        """Tell whether this is a legal arrangement of one cube or more."""
        cubes = all(dim % CUBE_SIDE == 0 for dim in topology.dims)
        in_order = not self.ordered or is_ascending(topology)
        return cubes and in_order and topology.chips <= self.max_chips


@dataclass(frozen=True, slots=True)
class Generation:
    """What one value of the accelerator label stands for.

    `dims` is 2 or 3 (0: either). `type_prefix` begins TPU_ACCELERATOR_TYPE. `ray_prefix` begins the pod type that Ray's
    autoscaler expects, `ray_node_prefix` the one that a Ray node announces from its environment (the same but for
    tpu-v5-lite-device). Empty prefixes and 0 cores mean unknown. `multi_host_chips` is the size of each host of a
    multi-host slice. `wrap_from`: side from which the links close to a ring, on each axis of a flat slice, on all or
    none of a 3D one. `process_addresses`: libtpu wants TPU_PROCESS_ADDRESSES on multi-host slices. `strict` rows refuse
    a topology they do not list; the others rest on inference, so they only warn.
    """

    accelerator: str
    name: str
    dims: int
    cores_per_chip: int
    type_prefix: str
    ray_prefix: str
    machines: tuple[Machine, ...]
    single_host: tuple[Topology, ...] = ()
    multi_host: tuple[Topology, ...] = ()
    cubes: CubeRule | None = None
    multi_host_chips: int = 4
    wrap_from: int = CUBE_SIDE
    ray_node_prefix: str = ""
    process_addresses: bool = False
    strict: bool = True
    known: bool = True

    @override
    def __str__(self) -> str:
        return f"{self.name} ({self.accelerator})" if self.name != self.accelerator else self.name or "this accelerator"

    @property
    def max_chips_per_host(self) -> int:
        """Chips of the largest host."""
        return max(machine.chips for machine in self.machines) if self.machines else max(HOST_SIZES)

    def host_sizes(self, topology: Topology) -> tuple[int, ...]:
        """Legal chips per host for this topology, the default first; empty if the topology is not legal.

        GKE: a node pool is single-host exactly if one node has all chips of the topology. So 2x4 is one host of 8
        chips, or two of 4.
        """
        if self.dims not in (0, len(topology.dims)):
            return ()
        if listed := self._listed_host_sizes(topology):
            return listed
        return () if self.strict else likely_host_sizes(topology)

    def _listed_host_sizes(self, topology: Topology) -> tuple[int, ...]:
        sizes = (self.multi_host_chips,) if self._is_multi_host(topology) else ()
        return (*sizes, topology.chips) if topology in self.single_host else sizes

    def _is_multi_host(self, topology: Topology) -> bool:
        if self.cubes is None or self.cubes.ordered:
            listed = topology in self.multi_host
        else:
            listed = sorted(topology.dims) in [sorted(each.dims) for each in self.multi_host]
        legal = listed or (self.cubes is not None and self.cubes.allows(topology))
        return legal and is_filled(topology, self.multi_host_chips)

    def legal_topologies(self) -> str:
        """All topologies it may have, as one phrase for messages and documentation."""
        listed = sorted({*self.single_host, *self.multi_host}, key=lambda each: (each.chips, each.dims))
        text = ", ".join(str(each) for each in listed)
        if self.cubes is None:
            return text or "not known"
        order = "no side smaller than the one before" if self.cubes.ordered else "in any order"
        return f"{text}, or three multiples of {CUBE_SIDE} ({order}) up to {self.cubes.max_chips} chips"


GenerationTable: TypeAlias = Mapping[str, Generation]


def is_ascending(topology: Topology) -> bool:
    """Tell whether no side is smaller than the one before it."""
    return list(topology.dims) == sorted(topology.dims)


def is_filled(topology: Topology, chips_per_host: int) -> bool:
    """Tell whether hosts of this size fill the topology exactly, along each axis."""
    return all(side % part == 0 for side, part in zip(topology.axes, HOST_SIZES[chips_per_host], strict=True))


def likely_host_sizes(topology: Topology) -> tuple[int, ...]:
    """Host sizes that fill this topology exactly, the likeliest first."""
    return tuple(size for size in _LIKELY_HOST_SIZES if is_filled(topology, size))


def generic_generation(accelerator: str) -> Generation:
    """Build the row for an accelerator that no table knows: everything that fits is let through."""
    return Generation(
        accelerator=accelerator,
        name=accelerator,
        dims=0,
        cores_per_chip=0,
        type_prefix="",
        ray_prefix="",
        machines=(),
        strict=False,
        known=False,
    )


def find_generation(accelerator: str, table: GenerationTable | None = None) -> Generation:
    """Look up the row of an accelerator label, the generic one if the table has none."""
    return (GENERATIONS if table is None else table).get(accelerator) or generic_generation(accelerator)


def _machines(family: str, *chips: int) -> tuple[Machine, ...]:
    return tuple(Machine(f"{family}-{count}t", count) for count in chips)


def _topologies(text: str) -> tuple[Topology, ...]:
    return tuple(parse_topology(word) for word in text.split())


_FLAT_SINGLE: Final = _topologies("1x1 2x2 2x4")
_FLAT_MULTI: Final = _topologies("2x4 4x4 4x8 8x8 8x16 16x16")
_BELOW_A_CUBE: Final = _topologies("2x2x2 2x2x4 2x4x4")
_FLAT_WRAP: Final = 16

_ROWS: Final = (
    # The three rows that are not strict are inferred from machine-type tables: check before relying on them.
    Generation(
        accelerator="tpu-v3-device",
        name="v3",
        dims=2,
        cores_per_chip=2,
        type_prefix="v3",
        ray_prefix="v3",
        machines=_machines("ct3-hightpu", 4),
        single_host=_topologies("2x2"),
        wrap_from=32,
        strict=False,
    ),
    Generation(
        accelerator="tpu-v3-slice",
        name="v3",
        dims=2,
        cores_per_chip=2,
        type_prefix="v3",
        ray_prefix="v3",
        machines=_machines("ct3p-hightpu", 4),
        multi_host=_topologies("4x4 4x8 8x8 8x16 16x16 32x32"),
        wrap_from=32,
        strict=False,
    ),
    Generation(
        accelerator="tpu-v4-lite-device",
        name="v4i",
        dims=2,
        cores_per_chip=1,
        type_prefix="",
        ray_prefix="",
        machines=_machines("ct4l-hightpu", 4),
        single_host=_topologies("2x2"),
        wrap_from=_FLAT_WRAP,
        strict=False,
    ),
    Generation(
        accelerator="tpu-v4-podslice",
        name="v4",
        dims=3,
        cores_per_chip=2,
        type_prefix="v4",
        ray_prefix="v4",
        machines=_machines("ct4p-hightpu", 4),
        single_host=_topologies("2x2x1"),
        multi_host=_BELOW_A_CUBE,
        cubes=CubeRule(max_chips=4096, ordered=False),
    ),
    Generation(
        accelerator="tpu-v5-lite-device",
        name="v5e",
        dims=2,
        cores_per_chip=1,
        type_prefix="v5lite",
        ray_prefix="v5litepod",
        ray_node_prefix="v5lite",
        machines=_machines("ct5l-hightpu", 1, 4, 8),
        single_host=_FLAT_SINGLE,
        wrap_from=_FLAT_WRAP,
    ),
    Generation(
        accelerator="tpu-v5-lite-podslice",
        name="v5e",
        dims=2,
        cores_per_chip=1,
        type_prefix="v5litepod",
        ray_prefix="v5litepod",
        machines=_machines("ct5lp-hightpu", 1, 4, 8),
        single_host=_FLAT_SINGLE,
        multi_host=_FLAT_MULTI,
        wrap_from=_FLAT_WRAP,
    ),
    # Node pools go up to 16x20x28; one job uses at most 16x16x24 of them.
    Generation(
        accelerator="tpu-v5p-slice",
        name="v5p",
        dims=3,
        cores_per_chip=2,
        type_prefix="v5p",
        ray_prefix="v5p",
        machines=_machines("ct5p-hightpu", 4),
        single_host=_topologies("2x2x1"),
        multi_host=_BELOW_A_CUBE,
        cubes=CubeRule(max_chips=8960),
    ),
    Generation(
        accelerator="tpu-v6e-slice",
        name="v6e",
        dims=2,
        cores_per_chip=1,
        type_prefix="v6e",
        ray_prefix="v6e",
        machines=_machines("ct6e-standard", 1, 4, 8),
        single_host=_FLAT_SINGLE,
        multi_host=_FLAT_MULTI,
        wrap_from=_FLAT_WRAP,
    ),
    Generation(
        accelerator="tpu7x",
        name="tpu7x",
        dims=3,
        cores_per_chip=2,
        type_prefix="tpu7x",
        ray_prefix="v7x",
        machines=(*_machines("tpu7x-standard", 1, 4), *_machines("tpu7x-ultranet", 4)),
        single_host=_topologies("1x1x1 2x2x1"),
        multi_host=_BELOW_A_CUBE,
        cubes=CubeRule(max_chips=9216),
        process_addresses=True,
    ),
)

GENERATIONS: Final[GenerationTable] = MappingProxyType({row.accelerator: row for row in _ROWS})


def with_generations(rows: Iterable[Generation]) -> GenerationTable:
    """Copy the table with rows added; a row for an accelerator that is there already takes its place."""
    return MappingProxyType({**GENERATIONS, **{row.accelerator: row for row in rows}})
