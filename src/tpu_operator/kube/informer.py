"""A cache of one kind of object that follows the API server: paged list, then watch, for ever.

What it promises: every object that is there, and none that is gone, is in the cache a moment after the API server can
be reached, whatever happened to the stream in between (expired versions, silence, cuts, revoked rights). Changes are
told one by one, in an order that fits each object's history; nothing is told twice.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct

from tpu_operator.errors import ApiError, Expired
from tpu_operator.kube.objects import Decode, KubeObject, version_of
from tpu_operator.kube.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence, ValuesView

    from tpu_operator.kube.client import Listing, WatchEvent
    from tpu_operator.kube.resource import Resource

T = TypeVar("T", bound=KubeObject)
D = TypeVar("D")

logger = logging.getLogger(__name__)

FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 15.0
"""Seconds between tries at most: rights or a server that come back are noticed within that time."""
MOST_DOUBLINGS: Final = 10
BREATH: Final = 500
"""Objects of a list that are taken over before others get a turn."""


class Source(Protocol):
    """What an informer needs of a client."""

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        decode: Decode[D],
        label_selector: str | None = None,
    ) -> Listing[D]:
        """Read all objects at one version."""

    def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str | None = None,
        on_open: Callable[[], None] | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Follow the objects from that version on."""


class _Meta(Struct, frozen=True, rename="camel", gc=False):
    resource_version: str = ""
    uid: str = ""


class _Identity(Struct, frozen=True, gc=False):
    """The least that is needed of a bookmark, and of an object that cannot be decoded."""

    metadata: _Meta


_identify = msgspec.json.Decoder(_Identity).decode


@dataclass(slots=True, eq=False)
class _Stream:
    """Following one namespace, or all of them (None)."""

    namespace: str | None
    contact: float
    version: str = ""
    """Where to go on watching; empty means that a list comes first."""
    uids: set[str] = field(default_factory=set)
    listed: asyncio.Event = field(default_factory=asyncio.Event)
    open: bool = False
    """The last watch was let in."""
    moved: bool = False
    """Something arrived on it."""
    failures: int = 0
    error: str | None = None


class Informer(Generic[T]):
    """The cache. `run` keeps it up to date; everything else only reads, and may be called at any time.

    `keep` drops objects that are not wanted (as if they were not there), `indexes` name functions that give an object's
    keys, `on_change` is called with the object before and after (None: not there), `on_relist` after a list has been
    taken over, with its namespace (None: all) and resourceVersion. Both are called synchronously and must not block.
    """

    def __init__(  # noqa: PLR0913
        self,
        client: Source,
        resource: Resource,
        decode: Decode[T],
        *,
        namespaces: Sequence[str] = (),
        label_selector: str | None = None,
        keep: Callable[[T], bool] | None = None,
        indexes: Mapping[str, Callable[[T], Iterable[str]]] | None = None,
        on_change: Callable[[T | None, T | None], None] | None = None,
        on_relist: Callable[[str | None, int], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._resource = resource
        self._decode = decode
        self._selector = label_selector
        self._keep = keep
        self._on_change = on_change
        self._on_relist = on_relist
        self._clock = clock
        self._sleep = sleep
        self._store: Store[T] = Store(indexes or {})
        self._streams = [_Stream(namespace, clock()) for namespace in namespaces or (None,)]
        self.synced = asyncio.Event()
        """Set once every namespace has been listed."""
        self.undecodable = 0
        """Events whose object did not fit the decoder; the cache goes on with what it had."""

    def __len__(self) -> int:
        return len(self._store)

    def get(self, uid: str) -> T | None:
        """Return the object with this uid."""
        return self._store.get(uid)

    def find(self, namespace: str, name: str) -> T | None:
        """Return the object that has this name now."""
        return self._store.find(namespace, name)

    def by_index(self, index: str, key: str) -> tuple[T, ...]:
        """Return the objects for which the index function gives `key`: O(result)."""
        return self._store.by_index(index, key)

    def objects(self) -> ValuesView[T]:
        """Return a view of all objects."""
        return self._store.objects()

    def recently_deleted(self, uid: str) -> bool:
        """Tell whether this uid was seen to go; only the last 20,000 are remembered."""
        return self._store.recently_deleted(uid)

    async def listed(self, namespace: str | None) -> None:
        """Wait until the objects of one of the namespaces (None: all of them) have been taken over once."""
        for stream in self._streams:
            if stream.namespace == namespace:
                await stream.listed.wait()

    @property
    def healthy(self) -> bool:
        """Every namespace has been listed, and its last request was answered well."""
        return all(stream.listed.is_set() and stream.error is None for stream in self._streams)

    @property
    def last_error(self) -> str | None:
        """What the API server says against us, if it does."""
        return next((stream.error for stream in self._streams if stream.error), None)

    @property
    def silent_for(self) -> float:
        """Seconds since the last sign of life, of the namespace that is worst off. Normal is up to a minute."""
        return self._clock() - min(stream.contact for stream in self._streams)

    async def run(self) -> None:
        """Follow the API server until cancelled. Whatever fails is tried again."""
        async with asyncio.TaskGroup() as tasks:
            for stream in self._streams:
                tasks.create_task(self._follow(stream), name=f"informer {self._resource.plural} {stream.namespace}")

    async def _follow(self, stream: _Stream) -> None:
        while True:
            begun = self._clock()
            expired = False
            try:
                if not stream.version:
                    await self._list(stream)
                await self._watch(stream)
            except Expired as error:
                expired, stream.version = True, ""
                logger.info("%s: listing again: %s", self._resource.full_name, error)
            except ApiError as error:
                if stream.open:  # streams are cut every day; whether there is anything wrong the next request tells
                    logger.info("%s: watching again: %s", self._resource.full_name, error)
                else:
                    self._complain(stream, error)
            except Exception as error:
                logger.exception("%s: starting over", self._resource.full_name)
                stream.error, stream.version = repr(error), ""
            lasted = self._clock() - begun > LONGEST_PAUSE
            stream.failures = 0 if lasted or (stream.moved and not expired) else stream.failures + 1
            await self._sleep(_pause(stream.failures))

    def _complain(self, stream: _Stream, error: ApiError) -> None:
        """Say it once, not at each try."""
        if stream.error != error.message:
            logger.warning("%s in %s: %s", self._resource.full_name, stream.namespace or "all namespaces", error)
        stream.error = error.message

    def _alive(self, stream: _Stream) -> None:
        stream.contact = self._clock()
        stream.error = None

    def _opened(self, stream: _Stream) -> None:
        stream.open = True
        self._alive(stream)

    async def _list(self, stream: _Stream) -> None:
        """Take over what is there now. What the cache has and the list has not was deleted while we did not look."""
        stream.open = stream.moved = False
        unreadable: set[str] = set()

        def decode(data: bytes | msgspec.Raw) -> T | None:
            obj = self._try_decode(data)
            if obj is None:
                unreadable.add(_identify(data).metadata.uid)
            return obj

        listing = await self._client.list(
            self._resource, stream.namespace, decode=decode, label_selector=self._selector
        )
        self._alive(stream)
        version = int(listing.resource_version)
        found = [obj for obj in listing.items if obj is not None]
        for uid in stream.uids.difference(unreadable, [obj.metadata.uid for obj in found]):
            self._remove(stream, uid, version)
        for done, obj in enumerate(found, 1):
            self._put(stream, obj)
            if not done % BREATH:
                await asyncio.sleep(0)
        stream.version = listing.resource_version
        stream.listed.set()
        if self._on_relist:
            self._on_relist(stream.namespace, version)
        if all(other.listed.is_set() for other in self._streams):
            self.synced.set()

    async def _watch(self, stream: _Stream) -> None:
        stream.open = stream.moved = False
        watch = self._client.watch(
            self._resource,
            stream.namespace,
            resource_version=stream.version,
            label_selector=self._selector,
            on_open=lambda: self._opened(stream),
        )
        async with aclosing(watch) as events:
            async for event in events:
                self._take(stream, event)
                stream.moved = True
                stream.contact = self._clock()

    def _take(self, stream: _Stream, event: WatchEvent) -> None:
        obj = None if event.type == "BOOKMARK" else self._try_decode(event.object)
        if obj is not None:
            version, uid = obj.metadata.resource_version, obj.metadata.uid
        else:
            identity = _identify(event.object).metadata
            version, uid = identity.resource_version, identity.uid
        if event.type == "DELETED":
            self._remove(stream, uid, int(version))
        elif obj is not None:
            self._put(stream, obj)
        stream.version = version

    def _try_decode(self, data: bytes | msgspec.Raw) -> T | None:
        """One object that we cannot read must not cost us all the others."""
        try:
            return self._decode(data)
        except msgspec.MsgspecError as error:
            self.undecodable += 1
            logger.error("%s: cannot read an object: %s", self._resource.full_name, error)  # noqa: TRY400
            return None

    def _put(self, stream: _Stream, obj: T) -> None:
        uid, version = obj.metadata.uid, version_of(obj)
        if self._store.outdated(uid, version):
            return
        if self._keep is not None and not self._keep(obj):
            self._remove(stream, uid, version)
            return
        stream.uids.add(uid)
        self._tell(self._store.put(obj), obj)

    def _remove(self, stream: _Stream, uid: str, version: int) -> None:
        known = self._store.get(uid)
        if known is not None and version < version_of(known):
            return
        stream.uids.discard(uid)
        old = self._store.remove(uid, version)
        if old is not None:
            self._tell(old, None)

    def _tell(self, old: T | None, new: T | None) -> None:
        """Call the listener. If it fails it has a bug; the cache is right all the same and goes on."""
        if self._on_change is None:
            return
        try:
            self._on_change(old, new)
        except Exception:
            logger.exception("%s: a listener failed", self._resource.full_name)


def _pause(failures: int) -> float:
    """Seconds before the next try: none after a stream that worked, else growing, and different for each replica."""
    if not failures:
        return 0.0
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures - 1, MOST_DOUBLINGS))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311
