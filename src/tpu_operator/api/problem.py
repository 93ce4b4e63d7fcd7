"""Values of a wrong type in a RayCluster, in words for the person who wrote them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

_LONGEST_VALUE: Final = 60
_EXPECTED: Final = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "string_type": "text",
    "tuple_type": "a list",
}
MISSING: Final = "missing"


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A field that cannot be read. `field` is a path such as `spec.workerGroupSpecs[0].replicas`."""

    field: str
    got: str
    expected: str

    @property
    def message(self) -> str:
        """One sentence."""
        return f"{self.field} is {self.got}, expected {self.expected}."

    @property
    def fix(self) -> str:
        """What to do about it."""
        return "add it" if self.got == MISSING else f"set it to {self.expected}"


def field_path(parts: Iterable[str | int]) -> str:
    """Path as the user would write it, from the parts of pydantic's."""
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def shown(value: object) -> str:
    """A value in an error message: scalars as in JSON, and not at length."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def problem(error: ErrorDetails, prefix: str) -> FieldProblem:
    """An error of pydantic in plain words; its path starts at `prefix`."""
    kind, context = error["type"], error.get("ctx", {})
    field = field_path((prefix, *error["loc"]))
    if kind == "missing":
        return FieldProblem(field, MISSING, "a value")
    expected = context.get("expected") or _EXPECTED.get(kind) or error["msg"]
    return FieldProblem(field, shown(error["input"]), str(expected))
