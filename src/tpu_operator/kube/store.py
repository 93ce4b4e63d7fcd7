"""What the API server has told us of one kind of object: by uid, by name, and by the caller's own indexes."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from tpu_operator.kube.objects import KubeObject, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, ValuesView

T = TypeVar("T", bound=KubeObject)

TOMBSTONES: Final = 20_000
"""Deleted uids that are remembered: some times more than the pods of the largest cluster."""


class Store(Generic[T]):
    """Objects and indexes over them. Each change is O(index keys of the object)."""

    def __init__(self, indexes: Mapping[str, Callable[[T], Iterable[str]]]) -> None:
        self._objects: dict[str, T] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._keys_of = dict(indexes)
        self._indexes: dict[str, dict[str, dict[str, T]]] = {name: {} for name in indexes}
        self._tombstones: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, uid: str) -> T | None:
        """Return the object with this uid."""
        return self._objects.get(uid)

    def find(self, namespace: str, name: str) -> T | None:
        """Return the object that has this name now."""
        uid = self._names.get((namespace, name))
        return None if uid is None else self._objects.get(uid)

    def by_index(self, index: str, key: str) -> tuple[T, ...]:
        """Return the objects for which the index function gives `key`, in the order in which they came."""
        return tuple(self._indexes[index].get(key, {}).values())

    def objects(self) -> ValuesView[T]:
        """Return all objects; a view."""
        return self._objects.values()

    def recently_deleted(self, uid: str) -> bool:
        """Tell whether this uid was seen to go. Only the last 20,000 are remembered."""
        return uid in self._tombstones

    def outdated(self, uid: str, version: int) -> bool:
        """Tell whether we know something at least as new: the same event again, or one from before a reconnect."""
        known = self._objects.get(uid)
        newest = self._tombstones.get(uid, -1) if known is None else version_of(known)
        return version <= newest

    def put(self, obj: T) -> T | None:
        """Add or replace; return what was there before under this uid."""
        meta = obj.metadata
        uid = meta.uid
        old = self._objects.get(uid)
        self._objects[uid] = obj
        if old is None:
            self._names[meta.namespace, meta.name] = uid
            self._tombstones.pop(uid, None)
        for name, keys_of in self._keys_of.items():
            index = self._indexes[name]
            keys = keys_of(obj)
            if old is not None:
                _drop(index, uid, set(keys_of(old)).difference(keys))
            for key in keys:
                index.setdefault(key, {})[uid] = obj
        return old

    def remove(self, uid: str, version: int) -> T | None:
        """Remove, and remember that it was gone at `version`; return what was there."""
        self._tombstones[uid] = version
        self._tombstones.move_to_end(uid)
        if len(self._tombstones) > TOMBSTONES:
            self._tombstones.popitem(last=False)
        old = self._objects.pop(uid, None)
        if old is not None:
            self._forget(uid, old)
        return old

    def _forget(self, uid: str, old: T) -> None:
        name = (old.metadata.namespace, old.metadata.name)
        if self._names.get(name) == uid:  # else a successor has the name by now
            del self._names[name]
        for index, keys_of in self._keys_of.items():
            _drop(self._indexes[index], uid, keys_of(old))


def _drop(index: dict[str, dict[str, T]], uid: str, keys: Iterable[str]) -> None:
    for key in keys:
        bucket = index.get(key)
        if bucket is not None and bucket.pop(uid, None) is not None and not bucket:
            del index[key]
