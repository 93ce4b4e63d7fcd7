"""What this process has written and its cache does not show yet.

The idea is that of Kubernetes' ConsistencyStore (KEP-5647, 1.36): remember own writes per owner. Two things are
different on purpose. Writes are compared per object and not per stream, so that a quiet stream holds nobody up; and an
owner with unseen writes is not skipped: the writes are laid over the cache and the pass goes on.

An entry vanishes when the cache shows it. If it never does (a webhook took the label away, the watch is dead), the
owner becomes overdue and the caller looks once with a live list, which `refreshed` then lays over the cache.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from tpu_operator.kube.objects import KubeObject, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

T = TypeVar("T", bound=KubeObject)
V_co = TypeVar("V_co", bound=KubeObject, covariant=True)
I = TypeVar("I")  # noqa: E741

LIMIT: Final = 30.0
"""Seconds after which a write that the cache does not show makes its owner overdue."""


class Seen(Protocol[V_co]):
    """What must be known of the cache; an `Informer` fits."""

    def get(self, uid: str) -> V_co | None:
        """Return the cached object with this uid."""

    def find(self, namespace: str, name: str) -> V_co | None:
        """Return the cached object that has this name now."""

    def recently_deleted(self, uid: str) -> bool:
        """Tell whether the cache was told that this object is gone."""


@dataclass(frozen=True, slots=True)
class Unsettled(Generic[I]):
    """A create whose answer was lost: an object of this name may be there or may yet come."""

    namespace: str
    name: str
    info: I


@dataclass(frozen=True, slots=True)
class PendingWrites(Generic[T, I]):
    """What to lay over the cache of one owner's objects.

    `created` are there though the cache lacks them; `deleted` (uid to the caller's deadline) are on their way out
    though the cache shows them alive; `gone` are known not to exist any more; `unsettled` may or may not exist.
    """

    created: tuple[T, ...] = ()
    deleted: Mapping[str, datetime] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    unsettled: tuple[Unsettled[I], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.created or self.deleted or self.gone or self.unsettled)


@dataclass(slots=True)
class _Owner(Generic[T, I]):
    """Entries of one owner, each with the time at which it was written."""

    created: dict[str, tuple[float, T]] = field(default_factory=dict)
    deleted: dict[str, tuple[float, datetime]] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)
    unsettled: dict[tuple[str, str], tuple[float, Unsettled[I]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.created or self.deleted or self.gone or self.unsettled)

    def oldest(self) -> float:
        stamps = [stamp for stamp, *_ in (*self.created.values(), *self.deleted.values(), *self.unsettled.values())]
        return min((*stamps, *self.gone.values()))


class OwnWrites(Generic[T, I]):
    """The writes of this process, by the uid of the owner of what was written.

    Every method is O(1) per object, whatever the number of owners. Feed `observed` and `relisted` from the informer.
    """

    def __init__(self, seen: Seen[T], *, limit: float = LIMIT, clock: Callable[[], float] = time.monotonic) -> None:
        self._seen = seen
        self._limit = limit
        self._clock = clock
        self._owners: dict[str, _Owner[T, I]] = {}
        self._owner_of_uid: dict[str, str] = {}
        self._owner_of_name: dict[tuple[str, str], str] = {}

    def __len__(self) -> int:
        """Count the owners with writes that the cache does not show."""
        return len(self._owners)

    def created(self, owner_uid: str, obj: T) -> None:
        """Remember an object that the API server says it has created. Its event may have come before the answer."""
        meta = obj.metadata
        self.settled(owner_uid, meta.namespace, meta.name)
        if self._seen.get(meta.uid) is None and not self._seen.recently_deleted(meta.uid):
            self._owner(owner_uid).created[meta.uid] = (self._clock(), obj)
            self._owner_of_uid[meta.uid] = owner_uid

    def deleted(self, owner_uid: str, uid: str, deadline: datetime) -> None:
        """Remember a deletion that the API server has accepted, until the object is seen to terminate or to be gone."""
        cached = self._seen.get(uid)
        if cached is not None and cached.metadata.deletion_timestamp is not None:
            return
        if not self._seen.recently_deleted(uid):
            self._owner(owner_uid).deleted[uid] = (self._clock(), deadline)
            self._owner_of_uid[uid] = owner_uid

    def unsettled(self, owner_uid: str, namespace: str, name: str, info: I) -> None:
        """Remember a create whose answer was lost, until an object of that name is seen or `settled` says otherwise.

        The name must be one that nobody had before, or an old event could settle it.
        """
        if self._seen.find(namespace, name) is None:
            key = (namespace, name)
            self._owner(owner_uid).unsettled[key] = (self._clock(), Unsettled(namespace, name, info))
            self._owner_of_name[key] = owner_uid

    def settled(self, owner_uid: str, namespace: str, name: str) -> None:
        """Forget an unsettled create: a GET has told what became of it."""
        owner = self._owners.get(owner_uid)
        if owner is not None and owner.unsettled.pop((namespace, name), None) is not None:
            self._owner_of_name.pop((namespace, name), None)
            self._tidy(owner_uid)

    def observed(self, old: T | None, new: T | None) -> None:
        """Take note of a change of the cache: it is the informer's `on_change`."""
        if not self._owners:
            return
        if new is None:
            assert old is not None
            self._drop(old.metadata.uid, deletion_too=True)
            return
        meta = new.metadata
        self._drop(meta.uid, deletion_too=meta.deletion_timestamp is not None)
        owner_uid = self._owner_of_name.get((meta.namespace, meta.name))
        if owner_uid is not None:
            self.settled(owner_uid, meta.namespace, meta.name)

    def relisted(self, namespace: str | None, resource_version: int) -> None:
        """Take note of a list that the cache has taken over: it is the informer's `on_relist`.

        What was created before the list was made and is not in it has come and gone while nobody looked.
        """
        for owner in list(self._owners.values()):
            for uid, (_, obj) in list(owner.created.items()):
                listed_there = namespace in (None, obj.metadata.namespace)
                if listed_there and version_of(obj) <= resource_version and self._seen.get(uid) is None:
                    self._drop(uid, deletion_too=True)

    def overlay(self, owner_uid: str) -> PendingWrites[T, I]:
        """Return what the cache does not show yet of this owner's objects."""
        owner = self._owners.get(owner_uid)
        if owner is None:
            return PendingWrites()
        return PendingWrites(
            created=tuple(obj for _, obj in owner.created.values()),
            deleted={uid: deadline for uid, (_, deadline) in owner.deleted.items()},
            gone=frozenset(owner.gone),
            unsettled=tuple(entry for _, entry in owner.unsettled.values()),
        )

    def awaited(self, uid: str) -> T | None:
        """Return the object as we created it, while the cache does not show it."""
        owner = self._owners.get(self._owner_of_uid.get(uid, ""))
        entry = owner.created.get(uid) if owner is not None else None
        return entry[1] if entry is not None else None

    def overdue(self, owner_uid: str) -> bool:
        """Tell whether the cache owes us something for too long: look with a live list, then call `refreshed`."""
        owner = self._owners.get(owner_uid)
        return owner is not None and self._clock() - owner.oldest() > self._limit

    def refreshed(self, owner_uid: str, cached: Iterable[T], listed: Iterable[T], resource_version: int) -> None:
        """Make the overlay turn `cached` (what the cache shows of this owner) into `listed` (what a live list showed).

        Existence only: where both know an object, take the listed one for this pass. Entries that still hold count as
        new, so that the next list is due after the limit and not at once. No other write of this owner may be on its
        way meanwhile.
        """
        now = self._clock()
        there = {obj.metadata.uid: obj for obj in listed}
        old = self._owners.get(owner_uid) or _Owner()
        self.forget(owner_uid)
        for uid, obj in there.items():
            if self._seen.get(uid) is None:
                self.created(owner_uid, obj)
            elif uid in old.deleted and obj.metadata.deletion_timestamp is not None:
                self.deleted(owner_uid, uid, old.deleted[uid][1])
        for uid, (_, obj) in old.created.items():
            if uid not in there and version_of(obj) > resource_version:
                self.created(owner_uid, obj)
        for obj in cached:
            if obj.metadata.uid not in there and version_of(obj) <= resource_version:
                self._owner(owner_uid).gone[obj.metadata.uid] = now
                self._owner_of_uid[obj.metadata.uid] = owner_uid

    def forget(self, owner_uid: str) -> None:
        """Drop everything about an owner, for instance because it is gone."""
        owner = self._owners.pop(owner_uid, None)
        if owner is None:
            return
        for uid in (*owner.created, *owner.deleted, *owner.gone):
            self._owner_of_uid.pop(uid, None)
        for key in owner.unsettled:
            self._owner_of_name.pop(key, None)

    def _owner(self, owner_uid: str) -> _Owner[T, I]:
        return self._owners.setdefault(owner_uid, _Owner())

    def _drop(self, uid: str, *, deletion_too: bool) -> None:
        owner_uid = self._owner_of_uid.get(uid)
        if owner_uid is None:
            return
        owner = self._owners[owner_uid]
        owner.created.pop(uid, None)
        if deletion_too:
            owner.deleted.pop(uid, None)
            owner.gone.pop(uid, None)
        if uid not in owner.deleted and uid not in owner.gone:
            del self._owner_of_uid[uid]
        self._tidy(owner_uid)

    def _tidy(self, owner_uid: str) -> None:
        if not self._owners[owner_uid]:
            del self._owners[owner_uid]
