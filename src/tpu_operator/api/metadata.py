"""metadata of a RayCluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tpu_operator.api.fields import scalar_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpu_operator.api.json import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """What the operator reads of an object's metadata. The API server has checked it, so nothing here can be a mistake."""

    name: str
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    owner_references: tuple[JsonObject, ...] = ()

    @classmethod
    def parse(cls, raw: JsonValue) -> ObjectMeta:
        """Read metadata; what is absent, null or of a wrong type is left at its default."""
        given: JsonObject = raw if isinstance(raw, dict) else {}
        generation = given.get("generation")
        return cls(
            name=_text(given.get("name")),
            namespace=_text(given.get("namespace")),
            uid=_text(given.get("uid")),
            generation=generation if isinstance(generation, int) else 0,
            resource_version=_text(given.get("resourceVersion")),
            labels=_texts(given.get("labels")),
            annotations=_texts(given.get("annotations")),
            finalizers=tuple(_text(item) for item in _list(given.get("finalizers"))),
            creation_timestamp=parse_time(given.get("creationTimestamp")),
            deletion_timestamp=parse_time(given.get("deletionTimestamp")),
            owner_references=tuple(o for o in _list(given.get("ownerReferences")) if isinstance(o, dict)),
        )


def parse_time(value: JsonValue) -> datetime | None:
    """A time as Kubernetes writes it (RFC 3339), in UTC if it names no zone; None if it is none."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time


def format_time(time: datetime) -> str:
    """A time as Kubernetes writes it: UTC, whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(value: JsonValue) -> str:
    text = scalar_text(value)
    return text if isinstance(text, str) else ""


def _texts(value: JsonValue) -> Mapping[str, str]:
    return {key: _text(item) for key, item in value.items()} if isinstance(value, dict) else {}


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
