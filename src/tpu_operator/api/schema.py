"""Marks on model fields, from which `api.crd` generates the CRD: what a Python type alone does not tell."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule of the API server (`x-kubernetes-validations`). One that names `oldSelf` judges changes only."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Crd:
    """How the CRD describes a field.

    `doc` is what `kubectl explain` prints. `keys` make a list an associative one. `v1_only` fields are not in
    v1alpha1, `v1alpha1_required` ones are optional in v1 only. `atomic` lists are replaced as a
    whole by server-side apply, and said to be so.
    """

    doc: str = ""
    required: bool = False
    default: str | int | None = None
    nullable: bool = False
    keys: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    v1_only: bool = False
    v1alpha1_required: bool = False
    format: str = ""
    pattern: str = ""
    enum: tuple[str, ...] = ()
    min_length: int | None = None
    max_length: int | None = None
    minimum: int | None = None
    atomic: bool = False


@dataclass(frozen=True, slots=True)
class Core:
    """The field's schema is that of a type of Kubernetes, by its OpenAPI name without `io.k8s.`."""

    name: str
