"""Steps through JSON documents whose shape nobody has checked."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject, JsonValue


def objects(value: JsonValue) -> list[JsonObject]:
    """The objects of a list; whatever else stands in it, or instead of it, is left out."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def mapping(value: JsonValue) -> JsonObject:
    """The object itself, or an empty one where there is none."""
    return value if isinstance(value, dict) else {}


def texts(value: JsonValue) -> list[str]:
    """The elements of a list as texts, such as a command; empty where there is none."""
    return [str(item) for item in value if item is not None] if isinstance(value, list) else []


def inner(owner: JsonObject, key: str) -> JsonObject:
    """The object under `key`, made if it is not there, to be filled. For documents of our own only."""
    found = owner.get(key)
    if not isinstance(found, dict):
        found = owner[key] = {}
    return found


def entries(owner: JsonObject, key: str) -> list[JsonObject]:
    """The list of objects under `key`, made if it is not there, to be filled. For documents of our own only."""
    found = owner.get(key)
    if not isinstance(found, list):
        found = owner[key] = []
    return cast("list[JsonObject]", found)


def own_copy(document: JsonObject) -> JsonObject:
    """A copy that shares nothing with the user's document."""
    return deepcopy(document)


def listed(items: list[JsonObject]) -> JsonValue:
    """A list of objects as a value of a document."""
    return cast("JsonValue", items)


def text_map(items: dict[str, str]) -> JsonValue:
    """A map of texts as a value of a document."""
    return cast("JsonValue", items)


def text_list(items: list[str]) -> JsonValue:
    """A list of texts as a value of a document."""
    return cast("JsonValue", items)
