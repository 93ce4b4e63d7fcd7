"""Kinds of children as the API server addresses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.kube.resource import Resource

if TYPE_CHECKING:
    from tpu_operator.resources.registry import ChildKind


def resource_of(kind: ChildKind) -> Resource:
    """Where objects of a kind live."""
    group, _, version = kind.api_version.rpartition("/")
    return Resource(group, version, kind.plural, kind.kind)
