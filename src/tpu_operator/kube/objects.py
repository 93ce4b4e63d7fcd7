"""The little that this package must know of an object, whatever its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import msgspec

if TYPE_CHECKING:
    from datetime import datetime


class ObjectMeta(Protocol):
    """The part of `metadata` that caches need."""

    @property
    def name(self) -> str:
        """Unique among the objects of one kind that are there at one time."""

    @property
    def namespace(self) -> str:
        """Empty if the kind is cluster-scoped."""

    @property
    def uid(self) -> str:
        """Unique for ever: an object deleted and made again has another one."""

    @property
    def resource_version(self) -> str:
        """Changes with each write of the object."""

    @property
    def deletion_timestamp(self) -> datetime | str | None:
        """Set once somebody has asked for the deletion."""


class KubeObject(Protocol):
    """A decoded object. It must not change after it was decoded: indexes are computed from it again."""

    @property
    def metadata(self) -> ObjectMeta:
        """Who it is."""


T = TypeVar("T")

Decode: TypeAlias = Callable[[bytes | msgspec.Raw], T]
"""From JSON to a value. It gets `bytes`, or a `msgspec.Raw` that is only valid during the call."""

JsonDict: TypeAlias = dict[str, Any]

decode_json: Decode[JsonDict] = msgspec.json.Decoder(JsonDict).decode


def version_of(obj: KubeObject) -> int:
    """Return `metadata.resourceVersion` as a number, 0 if there is none.

    Versions of one resource type can be ordered as integers: the API server promises it since Kubernetes 1.35
    (KEP-5504), and those of etcd always could.
    """
    version = obj.metadata.resource_version
    return int(version) if version else 0
