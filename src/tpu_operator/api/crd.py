"""The CustomResourceDefinition of RayCluster, generated from the models.

It describes all that KubeRay's CRD of v1.7 describes, with the same defaults, enums, rules and list kinds, so that
either may be installed over the other; `ADDITIONS` lists what it has beyond.
"""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from datetime import datetime
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tpu_operator.api import names
from tpu_operator.api.fields import wire_name
from tpu_operator.api.schema import Core, Crd, Rule
from tpu_operator.api.spec import RayClusterSpec
from tpu_operator.api.status import RayClusterStatus
from tpu_operator.api.structural import CoreSchemas, core_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tpu_operator.api.json import JsonObject, JsonValue

Type: TypeAlias = Any  # what annotations consist of: a class, or one of typing's forms, which have no common type

NAME: Final = f"{names.PLURAL}.{names.GROUP}"

ADDITIONS: Final[Mapping[str, str]] = {
    "v1alpha1.spec.workerGroupSpecs[].numOfHosts": (
        "whoever writes an object by the old version would take its slices apart: there is one stored object for both"
    ),
    "v1.status.workerGroups": "slices are what this operator counts in; KubeRay's status knows pods only",
}
"""What KubeRay's CRD lacks, as path and reason. Nothing that it accepts is refused here."""

_SCALARS: Final[Mapping[Type, JsonObject]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    str: {"type": "string"},
    datetime: {"format": "date-time", "type": "string"},
}

# Name, type, JSONPath, priority (1 is shown by `-o wide` only).
_COLUMNS: Final = (
    ("desired workers", "integer", ".status.desiredWorkerReplicas", 0),
    ("available workers", "integer", ".status.availableWorkerReplicas", 0),
    ("cpus", "string", ".status.desiredCPU", 0),
    ("memory", "string", ".status.desiredMemory", 0),
    ("gpus", "string", ".status.desiredGPU", 0),
    ("tpus", "string", ".status.desiredTPU", 1),
    ("status", "string", ".status.state", 0),
    ("age", "date", ".metadata.creationTimestamp", 0),
    ("head pod IP", "string", ".status.head.podIP", 1),
    ("head service IP", "string", ".status.head.serviceIP", 1),
)


def build_crd(core: CoreSchemas) -> JsonObject:
    """The whole CRD. `core` holds the definitions of Kubernetes' own types; KeyError if one is missing."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": names.GROUP,
            "names": {
                "categories": ["all"],
                "kind": names.KIND,
                "listKind": f"{names.KIND}List",
                "plural": names.PLURAL,
                "singular": names.KIND.lower(),
            },
            "scope": "Namespaced",
            "versions": [
                _version(names.VERSION, _Walk(core, v1=True)),
                _version("v1alpha1", _Walk(core, v1=False)),
            ],
        },
    }


def _version(name: str, walk: _Walk) -> JsonObject:
    properties: JsonObject = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {"description": "What is wanted.", **walk.schema(RayClusterSpec)},
        "status": {"description": "What is there, told by the operator.", **walk.schema(RayClusterStatus)},
    }
    description = "A Ray cluster whose workers come in slices: groups of hosts that live and die together."
    version: JsonObject = {
        "name": name,
        "served": True,
        "storage": walk.v1,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(*column) for column in _COLUMNS],
        "schema": {"openAPIV3Schema": {"description": description, "type": "object", "properties": properties}},
    }
    return version if walk.v1 else {**version, "deprecated": True}


def _column(name: str, kind: str, path: str, priority: int) -> JsonObject:
    column: JsonObject = {"name": name, "type": kind, "jsonPath": path}
    return {**column, "priority": priority} if priority else column


@dataclass(frozen=True, slots=True)
class _Walk:
    """From a type to its structural schema, in one of the two versions of the API."""

    core: CoreSchemas
    v1: bool

    def schema(self, kind: Type) -> JsonObject:
        """Schema of any annotation found in the models. Raises TypeError for one it does not know."""
        origin: object = get_origin(kind)
        if origin is Annotated:
            inner, *marks = get_args(kind)
            return self._marked(inner, marks)
        if kind in _SCALARS:
            return _SCALARS[kind]
        if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, BaseModel)):
            return self._structure(kind)
        return self._generic(origin, get_args(kind), kind)

    def _generic(self, origin: Type, arguments: tuple[Type, ...], kind: Type) -> JsonObject:
        if origin in (Union, UnionType):
            (only,) = (item for item in arguments if item is not NoneType)
            return self.schema(only)
        if origin is Literal:
            return {"enum": list(arguments), "type": "string"}
        if origin is tuple:
            return {"items": self.schema(arguments[0]), "type": "array"}
        if isinstance(origin, type) and issubclass(dict, origin):
            return {"additionalProperties": self.schema(arguments[1]), "type": "object"}
        raise TypeError(f"no schema for {kind!r}")

    def _marked(self, inner: Type, marks: list[object]) -> JsonObject:
        core = next((mark for mark in marks if isinstance(mark, Core)), None)
        made = self.schema(inner) if core is None else core_schema(self.core, core.name)
        for mark in marks:
            if isinstance(mark, Crd):
                made = {**dict(_keywords(mark)), **made}
        return made

    def _structure(self, model: type) -> JsonObject:
        properties: dict[str, JsonValue] = {}
        required: list[JsonValue] = []
        for name, kind in sorted(_fields(model)):
            mark = _own_mark(kind)
            if mark.v1_only and not self.v1:
                continue
            properties[name] = self.schema(kind)
            if mark.required or (mark.v1alpha1_required and not self.v1):
                required.append(name)
        made: JsonObject = {"properties": properties, "type": "object"}
        return {**made, "required": required} if required else made


def _fields(model: type) -> Iterator[tuple[str, Type]]:
    """Name in the API and annotation of each field."""
    for name, kind in get_type_hints(model, include_extras=True).items():
        if get_origin(kind) is Annotated:
            alias = next((m.alias for m in get_args(kind)[1:] if isinstance(m, FieldInfo) and m.alias), None)
            yield alias or wire_name(name), kind


def _own_mark(kind: Type) -> Crd:
    """The field's own mark, which is the outermost."""
    return [mark for mark in get_args(kind)[1:] if isinstance(mark, Crd)][-1]


def _keywords(mark: Crd) -> Iterator[tuple[str, JsonValue]]:
    """The mark in the words of a CRD's schema."""
    plain: tuple[tuple[str, JsonValue], ...] = (
        ("description", mark.doc or None),
        ("default", mark.default),
        ("nullable", mark.nullable or None),
        ("format", mark.format or None),
        ("pattern", mark.pattern or None),
        ("enum", list(mark.enum) or None),
        ("minLength", mark.min_length),
        ("maxLength", mark.max_length),
        ("minimum", mark.minimum),
        ("x-kubernetes-validations", [_rule(rule) for rule in mark.rules] or None),
    )
    yield from ((word, value) for word, value in plain if value is not None)
    if mark.keys:
        yield "x-kubernetes-list-map-keys", list(mark.keys)
    if mark.keys or mark.atomic:
        yield "x-kubernetes-list-type", "map" if mark.keys else "atomic"


def _rule(rule: Rule) -> JsonObject:
    return {"rule": rule.rule, "message": rule.message}
