"""A generation that the configuration adds, so that new hardware needs no new release.

accelerator: tpu-v9-slice     # value of the node label; required
name: v9                      # default: the accelerator
dims: 3                       # 2 or 3; required
coresPerChip: 2               # required
typePrefix: v9                # of TPU_ACCELERATOR_TYPE; required
rayPrefix: v9                 # of Ray's pod type; default: typePrefix
machines: {tpu9-standard-4t: 4}
singleHost: [2x2x1]
multiHost: [2x2x2, 2x2x4, 2x4x4]
cubes: {maxChips: 4096, ordered: true}
multiHostChips: 4
wrapFrom: 4                   # default: 4 for 3D, 16 for 2D
processAddresses: false
strict: false                 # true refuses every topology that is not listed; default false
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from tpu_operator.errors import InvalidInput
from tpu_operator.tpu.generations import CUBE_SIDE, HOST_SIZES, CubeRule, Generation, Machine, is_filled
from tpu_operator.tpu.topology import Topology, parse_topology

_FIELDS: Final = frozenset(
    {
        "accelerator",
        "name",
        "dims",
        "coresPerChip",
        "typePrefix",
        "rayPrefix",
        "machines",
        "singleHost",
        "multiHost",
        "cubes",
        "multiHostChips",
        "wrapFrom",
        "processAddresses",
        "strict",
    }
)
_FLAT, _CUBIC = 2, 3
_FLAT_WRAP: Final = 16
_Value = TypeVar("_Value", str, int, bool)


def generation_from_mapping(mapping: Mapping[str, object]) -> Generation:
    """Read one generation as the configuration writes it (above); raise `InvalidInput` naming the field at fault."""
    _refuse_unknown(mapping, _FIELDS, "TPU generation")
    dims = _among(mapping, "dims", (_FLAT, _CUBIC))
    type_prefix = _value(mapping, "typePrefix", str)
    return Generation(
        accelerator=_value(mapping, "accelerator", str),
        name=_value(mapping, "name", str, _value(mapping, "accelerator", str)),
        dims=dims,
        cores_per_chip=_positive(mapping, "coresPerChip"),
        type_prefix=type_prefix,
        ray_prefix=_value(mapping, "rayPrefix", str, type_prefix),
        machines=_machines(mapping.get("machines", {})),
        single_host=_single_host(mapping, dims),
        multi_host=_multi_host(mapping, dims),
        cubes=_cubes(mapping.get("cubes"), dims),
        multi_host_chips=_multi_host_chips(mapping),
        wrap_from=_positive(mapping, "wrapFrom", CUBE_SIDE if dims == _CUBIC else _FLAT_WRAP),
        process_addresses=_value(mapping, "processAddresses", bool, default=False),
        strict=_value(mapping, "strict", bool, default=False),
    )


def _fault(field: str, legal: str, got: object) -> InvalidInput:
    return InvalidInput(f"TPU generation: {field} must be {legal}, not {got!r}")


def _refuse_unknown(mapping: Mapping[str, object], fields: frozenset[str], where: str) -> None:
    if unknown := sorted(str(key) for key in mapping if key not in fields):
        raise InvalidInput(f"{where}: unknown field {', '.join(unknown)}; known are {', '.join(sorted(fields))}")


def _value(mapping: Mapping[str, object], field: str, kind: type[_Value], default: _Value | None = None) -> _Value:
    got = mapping.get(field, default)
    legal = {str: "a text", int: "a whole number", bool: "true or false"}[kind]
    # True is an int to Python, but not to a person.
    if got == "" or (isinstance(got, bool) and kind is not bool):
        raise _fault(field, legal, got)
    if not isinstance(got, kind):
        raise _fault(field, legal, got)
    return got


def _positive(mapping: Mapping[str, object], field: str, default: int | None = None) -> int:
    number = _value(mapping, field, int, default)
    if number < 1:
        raise _fault(field, "1 or more", number)
    return number


def _among(mapping: Mapping[str, object], field: str, legal: tuple[int, ...], default: int | None = None) -> int:
    number = _value(mapping, field, int, default)
    if number not in legal:
        raise _fault(field, " or ".join(str(each) for each in legal), number)
    return number


def _machines(value: object) -> tuple[Machine, ...]:
    if not isinstance(value, Mapping):
        raise _fault("machines", "a mapping of machine type to its chips", value)
    return tuple(Machine(str(name), _among(value, name, tuple(HOST_SIZES))) for name in value)


def _topologies(mapping: Mapping[str, object], field: str, dims: int) -> tuple[Topology, ...]:
    listed = mapping.get(field, ())
    if not isinstance(listed, (list, tuple)):
        raise _fault(field, "a list of topologies", listed)
    topologies = tuple(parse_topology(str(item)) for item in listed)
    for topology in topologies:
        if len(topology.dims) != dims:
            raise _fault(field, f"a list of {dims}D topologies", str(topology))
    return topologies


def _single_host(mapping: Mapping[str, object], dims: int) -> tuple[Topology, ...]:
    topologies = _topologies(mapping, "singleHost", dims)
    for topology in topologies:
        if topology.axes not in HOST_SIZES.values():
            legal = ", ".join(str(Topology(axes[:dims])) for axes in HOST_SIZES.values())
            raise _fault("singleHost", f"topologies of one host ({legal})", str(topology))
    return topologies


def _multi_host_chips(mapping: Mapping[str, object]) -> int:
    return _among(mapping, "multiHostChips", tuple(HOST_SIZES), 4)


def _multi_host(mapping: Mapping[str, object], dims: int) -> tuple[Topology, ...]:
    size = _multi_host_chips(mapping)
    topologies = _topologies(mapping, "multiHost", dims)
    for topology in topologies:
        if not is_filled(topology, size):
            raise _fault("multiHost", f"filled by hosts of {size} chips", str(topology))
    return topologies


def _cubes(value: object, dims: int) -> CubeRule | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or dims != _CUBIC:
        raise _fault("cubes", "a mapping with maxChips, for a 3D generation", value)
    _refuse_unknown(value, frozenset({"maxChips", "ordered"}), "TPU generation: cubes")
    return CubeRule(_positive(value, "maxChips"), _value(value, "ordered", bool, default=True))
