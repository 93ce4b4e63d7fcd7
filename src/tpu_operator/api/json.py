"""Types of JSON documents, as they come from and go to the API server."""

from __future__ import annotations

from typing import TypeAlias, Union

JsonValue: TypeAlias = Union["dict[str, JsonValue]", "list[JsonValue]", str, int, float, bool, None]
JsonObject: TypeAlias = dict[str, JsonValue]
