"""Whether an object is as we mean it, so that nothing is written if it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from tpu_operator.api import names
from tpu_operator.api.quantity import InvalidQuantity, Quantity
from tpu_operator.resources.tree import mapping, objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.json import JsonObject, JsonValue

# By which fields the API server tells the elements of a list apart (list map keys), the first that all elements have.
_KEYS: Final = (("uid",), ("name",), ("port", "protocol"), ("containerPort", "protocol"))
# Replaced as a whole by an apply, so they must be as a whole what we mean.
_ATOMIC: Final = frozenset({"selector", "matchLabels", "roleRef"})
_QUANTITIES: Final = frozenset({"requests", "limits"})


def covers(live: JsonObject, desired: JsonObject) -> bool:
    """Whether every field of `desired` is in `live`, and none that we have applied before is there in vain.

    What others or the API server add does not matter. Fields that we own but no longer want are read from
    `metadata.managedFields`; without these they are not noticed.
    """
    exact = desired.get("kind") != "NetworkPolicy" or _as_long(desired.get("spec"), live.get("spec"))
    return exact and _is_in(desired, live) and not any(_owned_in_vain(live, desired))


def _as_long(wanted: JsonValue, found: JsonValue) -> bool:
    """Whether all lists are as long as we mean: those of a network policy are atomic, and one more lets somebody in."""
    if found is None:
        return not wanted
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_as_long(value, found.get(key)) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and len(wanted) == len(found) and all(map(_as_long, wanted, found))
    return True


def _is_in(wanted: JsonValue, found: JsonValue, name: str = "") -> bool:
    if isinstance(wanted, dict):
        return _object_is_in(wanted, found, name)
    if isinstance(wanted, list):
        return _list_is_in(wanted, found)
    # The API server leaves out what is empty, false or zero.
    return wanted == found or (not wanted and found is None)


def _object_is_in(wanted: JsonObject, found: JsonValue, name: str) -> bool:
    if not isinstance(found, dict):
        return not wanted and found is None
    if name in _QUANTITIES:
        return all(_same_amount(value, found.get(key)) for key, value in wanted.items())
    if name in _ATOMIC and not found.keys() <= wanted.keys():
        return False
    return all(_is_in(value, found.get(key), key) for key, value in wanted.items())


def _list_is_in(wanted: list[JsonValue], found: JsonValue) -> bool:
    if not isinstance(found, list):
        return not wanted and found is None
    keys = next((k for k in _KEYS if wanted and _all_have(wanted, k[0]) and _all_have(found, k[0])), None)
    if keys is None:
        return len(wanted) == len(found) and all(_is_in(w, f) for w, f in zip(wanted, found, strict=True))
    by_key = {_key(item, keys): item for item in objects(found)}
    return all(_is_in(item, by_key.get(_key(item, keys))) for item in objects(wanted))


def _all_have(items: list[JsonValue], key: str) -> bool:
    return all(isinstance(item, dict) and key in item for item in items)


def _key(item: JsonObject, keys: tuple[str, ...]) -> tuple[JsonValue, ...]:
    return tuple(item.get(key, "TCP" if key == "protocol" else None) for key in keys)


def _same_amount(wanted: JsonValue, found: JsonValue) -> bool:
    """The API server writes 1024Mi as 1Gi."""
    if wanted == found:
        return True
    try:
        return Quantity.parse(str(wanted)).amount == Quantity.parse(str(found)).amount
    except InvalidQuantity:
        return False


def _owned_in_vain(live: JsonObject, desired: JsonObject) -> Iterator[bool]:
    """True for each field that our last apply owns and that is not wanted now."""
    for entry in objects(mapping(live.get("metadata")).get("managedFields")):
        mine = entry.get("manager") == names.FIELD_MANAGER and entry.get("operation") == "Apply"
        if mine and not entry.get("subresource"):
            yield not _all_wanted(mapping(entry.get("fieldsV1")), desired)


def _all_wanted(fields: JsonObject, desired: JsonValue) -> bool:
    """Walk a FieldsV1 set: `f:<field>`, `k:<keys of a list element>`, `v:<element of a set>`, `.` for itself."""
    for path, below in fields.items():
        if path == ".":
            continue
        wanted = _step(path, desired)
        if wanted is None or not _all_wanted(mapping(below), wanted):
            return False
    return True


def _step(path: str, desired: JsonValue) -> JsonValue:
    kind, _, name = path.partition(":")
    if kind == "f":
        return desired.get(name) if isinstance(desired, dict) else None
    if kind == "k":
        keys = cast("JsonObject", json.loads(name))
        return next((item for item in objects(desired) if _matches(item, keys)), None)
    if kind == "v":
        value: JsonValue = json.loads(name)
        return value if isinstance(desired, list) and value in desired else None
    return None


def _matches(item: JsonObject, keys: JsonObject) -> bool:
    return all(item.get(key, "TCP" if key == "protocol" else None) == value for key, value in keys.items())


def must_be_replaced(live: JsonObject, desired: JsonObject) -> bool:
    """Whether the API server would refuse to turn `live` into `desired`, so that it has to be deleted and made again.

    A service cannot change between headless and not (quirk 58), a binding cannot change its role.
    """
    old, new = mapping(live.get("spec")), mapping(desired.get("spec"))
    if desired.get("kind") == "Service":
        return (old.get("clusterIP") == "None") != (new.get("clusterIP") == "None")
    return desired.get("roleRef") != live.get("roleRef") if "roleRef" in desired else False
