"""Marks on model fields, from which `api.crd` generates the CRD: what a Python type alone does not tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tpu_operator.api.json import JsonValue


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule of the API server (`x-kubernetes-validations`). One that names `oldSelf` judges changes only."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Crd:
    """How the CRD describes a field.

    `doc` is what `kubectl explain` prints. `keys` make a list an associative one. `v1_only` fields are not in
    v1alpha1, `v1alpha1_required` ones are optional in v1 only. `extra` is copied into the schema as it is.
    """

    doc: str = ""
    required: bool = False
    default: JsonValue = None
    nullable: bool = False
    keys: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    v1_only: bool = False
    v1alpha1_required: bool = False
    extra: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Core:
    """The field's schema is that of a type of Kubernetes, by its OpenAPI name without `io.k8s.`."""

    name: str
