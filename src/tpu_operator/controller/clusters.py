"""The RayClusters as last heard of, from kopf's events, from relists, and from our own status writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from typing_extensions import override

from tpu_operator.api.raycluster import RayCluster

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tpu_operator.api.json import JsonObject


class Key(NamedTuple):
    """What the queue holds: namespace and name of a RayCluster."""

    namespace: str
    name: str

    @override
    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


REMEMBERED_GONE: Final = 1_000
"""How many deleted objects are remembered, so that a watch that begins again in the past brings none of them back."""


@dataclass(slots=True)
class _Entry:
    """`version` is the newest that is known of, `seen` that of the newest document that came from the API server.

    They differ after an own status write: its answer tells a version, but not what others had changed before it.
    """

    raw: JsonObject
    version: int
    seen: int
    parsed: RayCluster | None = None


class Clusters:
    """Newest known state of each RayCluster. Older news about the same object is ignored.

    News come from more than one place, so they can overtake each other: they are ordered by resourceVersion, which the
    API server promises to be comparable for one resource.
    """

    def __init__(self) -> None:
        self._entries: dict[Key, _Entry] = {}
        self._gone: dict[str, None] = {}
        self._listed: dict[str | None, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Key]:
        return iter(tuple(self._entries))

    def get(self, key: Key) -> RayCluster | None:
        """The cluster, parsed once per version."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.parsed is None:
            entry.parsed = RayCluster.parse(entry.raw)
        return entry.parsed

    def put(self, raw: JsonObject) -> Key | None:
        """Take note of a state; the key if it is news that a pass should look at.

        A change of the status alone is none: the operator wrote it.
        """
        key, version = _identity(raw)
        entry = self._entries.get(key)
        if self._outdated(key, _uid(raw), version, entry):
            return None
        self._entries[key] = _Entry(raw, version, seen=version)
        return key if entry is None or _without_status(entry.raw) != _without_status(raw) else None

    def _outdated(self, key: Key, uid: str, version: int, entry: _Entry | None) -> bool:
        """Tell old news. The event of an own status write is none: what came before it was passed over for its sake."""
        if uid in self._gone:
            return True
        if entry is None:
            return version <= max(self._listed.get(key.namespace, 0), self._listed.get(None, 0))
        return version < entry.version or version <= entry.seen

    def remove(self, raw: JsonObject) -> Key | None:
        """The object is gone; None if another one of its name is there already."""
        key, _ = _identity(raw)
        self._bury(_uid(raw))
        entry = self._entries.get(key)
        if entry is None or _uid(entry.raw) != _uid(raw):
            return None
        del self._entries[key]
        return key

    def _bury(self, uid: str) -> None:
        self._gone[uid] = None
        if len(self._gone) > REMEMBERED_GONE:
            del self._gone[next(iter(self._gone))]

    def replace(self, listed: Iterable[JsonObject], namespace: str | None, version: int) -> list[Key]:
        """Compare with a list taken at `version`: keys of what was changed, added or removed unnoticed."""
        found = {_identity(raw)[0]: raw for raw in listed}
        changed = [key for raw in found.values() if (key := self.put(raw))]
        for key, entry in tuple(self._entries.items()):
            if key not in found and namespace in (None, key.namespace) and entry.version <= version:
                self._bury(_uid(entry.raw))
                del self._entries[key]
                changed.append(key)
        self._listed[namespace] = max(version, self._listed.get(namespace, 0))
        return changed

    def written(self, key: Key, uid: str, status: JsonObject, version: int) -> None:
        """Our own status write, so that the next pass sees it before the watch shows it.

        The spec of the write's version may be newer than the one known here: its event is still to come.
        """
        entry = self._entries.get(key)
        if entry is None or _uid(entry.raw) != uid or version <= entry.version:
            return
        raw = {**entry.raw, "status": status}
        raw["metadata"] = {**_metadata(entry.raw), "resourceVersion": str(version)}
        self._entries[key] = _Entry(raw, version, seen=entry.seen)

    def is_current(self, cluster: RayCluster) -> bool:
        """No newer spec or deletion of this very object is known."""
        entry = self._entries.get(Key(cluster.namespace, cluster.name))
        if entry is None:
            return False
        metadata = _metadata(entry.raw)
        return (
            metadata.get("uid") == cluster.uid
            and metadata.get("generation", 0) == cluster.generation
            and bool(metadata.get("deletionTimestamp")) == (cluster.metadata.deletion_timestamp is not None)
        )


def _metadata(raw: JsonObject) -> JsonObject:
    metadata = raw.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _identity(raw: JsonObject) -> tuple[Key, int]:
    metadata = _metadata(raw)
    version = str(metadata.get("resourceVersion", "0"))
    return Key(str(metadata.get("namespace", "")), str(metadata["name"])), int(version) if version.isdigit() else 0


def _uid(raw: JsonObject) -> str:
    return str(_metadata(raw).get("uid", ""))


def _without_status(raw: JsonObject) -> JsonObject:
    noise = ("resourceVersion", "managedFields")
    metadata = {k: v for k, v in _metadata(raw).items() if k not in noise}
    return {**{k: v for k, v in raw.items() if k not in ("status", "metadata")}, "metadata": metadata}
