"""A setting as people meet it: its names, what may stand there, its default. All of it follows from a field of OperatorConfig."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar, get_args, get_origin

from annotated_types import Ge, Gt
from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from tpu_operator.config import (
    Address,
    AddsUp,
    Also,
    Gate,
    KubeRay,
    NotYet,
    OperatorConfig,
    did_you_mean,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic.fields import FieldInfo

PREFIX: Final = "TPU_OPERATOR_"

_Mark = TypeVar("_Mark", KubeRay, Also, AddsUp, NotYet, Ge, Gt)


class Illegal(ValueError):
    """A value that cannot stand for a setting; the message says what can."""


@dataclass(frozen=True)
class Setting:
    """One field of OperatorConfig and the names that follow from it."""

    name: str
    field: FieldInfo

    def _mark(self, kind: type[_Mark]) -> _Mark | None:
        return next((mark for mark in self.field.metadata if isinstance(mark, kind)), None)

    @property
    def kuberay(self) -> KubeRay:
        """Names that KubeRay has for it."""
        return self._mark(KubeRay) or KubeRay()

    @property
    def flag(self) -> str:
        """Our flag, without dashes."""
        return self.name.replace("_", "-")

    @property
    def flags(self) -> tuple[str, ...]:
        """All flags without dashes, ours first."""
        also = self._mark(Also)
        names = (self.flag, *(also.flags if also else ()), self.kuberay.flag)
        return tuple(dict.fromkeys(name for name in names if name))

    @property
    def env(self) -> str:
        """Our environment variable."""
        return f"{PREFIX}{self.name.upper()}"

    @property
    def key(self) -> str:
        """Our key in a file."""
        return to_camel(self.name)

    @property
    def meaning(self) -> str:
        """What it does."""
        return self.field.description or ""

    @property
    def default(self) -> object:
        """What holds if nothing is given."""
        return self.field.get_default(call_default_factory=True)

    @property
    def has_effect(self) -> bool:
        """Whether this version does anything with it."""
        return self._mark(NotYet) is None

    @property
    def adds_up(self) -> Callable[[object], Mapping[str, bool]] | None:
        """How what one source gives is laid over what weaker ones give; None if it replaces that."""
        mark = self._mark(AddsUp)
        return mark.read if mark else None

    @property
    def is_switch(self) -> bool:
        """Whether its flag may stand without a value."""
        return self.field.annotation is bool

    @property
    def is_list(self) -> bool:
        """Whether its flag may be repeated, each time for one more."""
        return get_args(self.field.annotation) == (str, ...)

    @property
    def is_document(self) -> bool:
        """Whether text for it is read as YAML (or JSON)."""
        return get_origin(self.field.annotation) in (Mapping, tuple) and not self.is_list

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The texts that are legal, where these are few."""
        return get_args(self.field.annotation) if get_origin(self.field.annotation) is Literal else ()

    @property
    def legal(self) -> str:
        """What may stand there, in words."""
        annotation = self.field.annotation
        if self.choices:
            return f"one of {', '.join(choice for choice in self.choices if choice)}"
        if self.adds_up:
            return "gates as A=true,B=false or as a mapping"
        if self.is_list:
            return "names, separated by commas or as a list"
        if self.is_document:
            return "a mapping of texts, {a: b}" if get_args(annotation)[0] is str else "a list of objects, [{name: a}]"
        least, above = self._mark(Ge), self._mark(Gt)
        bound = f" from {least.ge} on" if least else f" above {above.gt}" if above else ""
        numbers: dict[object, str] = {bool: "true or false", int: f"a whole number{bound}", float: f"a number{bound}"}
        return numbers.get(annotation, "an address like :8080, or 0" if self._is_address else "a text")

    @property
    def _is_address(self) -> bool:
        return any(mark in get_args(Address)[1:] for mark in self.field.metadata)

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(Annotated[(self.field.annotation, self.name, *self.field.metadata)])  # type: ignore[arg-type]

    def check(self, value: object, *, typed: bool) -> object:
        """The value as the field holds it. `typed`: it comes with a type, so the text "5" is no number. Raises Illegal."""
        try:
            return self._adapter.validate_python(value, strict=typed)
        except ValidationError as error:
            raise Illegal(self._explain(value, error)) from error

    def _explain(self, value: object, error: ValidationError) -> str:
        first = error.errors(include_url=False)[0]
        if "error" in (context := first.get("ctx", {})):
            return str(context["error"])
        at = "".join(f"[{step!r}]" for step in first["loc"])
        hint = did_you_mean(str(value), self.choices)
        return f"{shown(value)} cannot be{f' (at {at})' if at else ''}: expected {self.legal}{hint}"


SETTINGS: Final = {name: Setting(name, field) for name, field in OperatorConfig.model_fields.items()}
"""All settings by name, in the order in which people should meet them."""


def shown(value: object) -> str:
    """A value in one line, as it could be written in a file."""
    if isinstance(value, frozenset):
        return ",".join(f"{gate}={'true' if gate in value else 'false'}" for gate in Gate)
    return json.dumps(value, default=str, ensure_ascii=False)
