"""Kubernetes Events (`events.k8s.io/v1`), written in the background: whoever has something to tell never waits for it.

What is told again within ten minutes becomes a series, as KEP-383 has it: one Event with a count, written at growing
intervals. How much one object may tell is limited as in client-go's spam filter (25 at once, then one in 5 minutes).
Telling is a courtesy: a failure is logged and otherwise has no consequence.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeVar

from tpu_operator.errors import Conflict, Gone, Refused, Transient, Unauthorized
from tpu_operator.kube.resource import EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tpu_operator.kube.objects import JsonDict
    from tpu_operator.kube.resource import Resource

logger = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")

SERIES_WINDOW: Final = 600.0
"""Seconds within which the same thing told again belongs to the same Event."""
FIRST_INTERVAL: Final = 10.0
LONGEST_INTERVAL: Final = 300.0
"""Seconds between two writes of one series: 10, 20, 40, ..., 300."""
BURST: Final = 25.0
REFILL: Final = 1 / 300
"""New Events of one object: 25 at once, one more every 300 seconds (client-go's defaults)."""
REMEMBERED: Final = 4096
"""Series, and objects with a budget, that are remembered (client-go's cache size)."""
TRIES: Final = 4
NOTE_LIMIT: Final = 1024
"""Bytes; the API server refuses longer notes."""
NAME_LIMIT: Final = 253


class Writer(Protocol):
    """What the sink needs of a client."""

    async def create(
        self, resource: Resource, namespace: str | None, body: Mapping[str, object], *, metadata_only: bool
    ) -> object:
        """Create an Event."""

    async def patch(self, resource: Resource, namespace: str | None, name: str, body: Mapping[str, object]) -> object:
        """Change an Event with a merge patch."""


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """The object that an Event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def to_json(self) -> dict[str, str]:
        """Return it as it stands in `regarding`."""
        fields = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }
        return {key: value for key, value in fields.items() if value}


@dataclass(slots=True, eq=False)
class _Series:
    """One Event and how often it was told."""

    namespace: str
    name: str
    body: JsonDict
    told: float
    last: datetime
    count: int = 1
    written: bool = False
    queued: bool = False
    timer: asyncio.TimerHandle | None = None
    next_write: float = 0.0
    interval: float = FIRST_INTERVAL

    def series(self) -> dict[str, object]:
        return {"count": self.count, "lastObservedTime": _micro_time(self.last)}


class EventSink:
    """Where to tell users what happened. Call `emit` from the event loop; `run` does the writing until cancelled.

    `reporting_controller` says which controller, `reporting_instance` which pod of it. `namespace` is for Events about
    objects without one.
    """

    def __init__(  # noqa: PLR0913
        self,
        client: Writer,
        *,
        reporting_controller: str,
        reporting_instance: str,
        namespace: str = "default",
        capacity: int = 1000,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._controller = reporting_controller
        self._instance = reporting_instance
        self._namespace = namespace
        self._capacity = capacity
        self._now = now
        self._serial = time.time_ns()
        self._queue: deque[_Series] = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._series: OrderedDict[tuple[str, str, str, str], _Series] = OrderedDict()
        self._budgets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._unauthorized = False
        self.dropped = 0
        """Events that were not written because the queue was full or their object had told too much."""
        self.failed = 0
        """Events that the API server did not take."""

    def emit(  # noqa: PLR0913
        self,
        regarding: ObjectReference,
        *,
        reason: str,
        type: Literal["Normal", "Warning"],  # noqa: A002  (the field's name)
        action: str,
        note: str,
        related: ObjectReference | None = None,
    ) -> None:
        """Tell that something happened. Never waits, never raises because of the API server."""
        moment = asyncio.get_running_loop().time()
        note = _shortened(note)
        key = (regarding.uid, reason, type, note)
        known = self._series.get(key)
        if known is not None and moment - known.told <= SERIES_WINDOW:
            self._tell_again(known, moment)
        elif self._within_budget(regarding.uid, moment):
            body = self._body(regarding, reason, type, action, note, related)
            series = _Series(body["metadata"]["namespace"], body["metadata"]["name"], body, moment, self._now())
            _remember(self._series, key, series)
            self._enqueue(series)
        else:
            self.dropped += 1

    async def run(self) -> None:
        """Write what was told, until cancelled."""
        while True:
            await self._wake.wait()
            while self._queue:
                series = self._queue.popleft()
                series.queued = False
                await self._write(series)
            self._wake.clear()
            self._idle.set()

    async def idle(self) -> None:
        """Wait until all that was told is written; only sensible while `run` runs."""
        await self._idle.wait()

    def _tell_again(self, series: _Series, moment: float) -> None:
        series.count += 1
        series.told = moment
        series.last = self._now()
        if series.queued or series.timer is not None:
            return
        loop = asyncio.get_running_loop()
        series.timer = loop.call_at(max(moment, series.next_write), self._due, series)

    def _due(self, series: _Series) -> None:
        series.timer = None
        self._enqueue(series)

    def _enqueue(self, series: _Series) -> None:
        if len(self._queue) >= self._capacity:
            self._queue.popleft().queued = False
            self.dropped += 1
        series.queued = True
        self._queue.append(series)
        self._wake.set()
        self._idle.clear()

    def _within_budget(self, uid: str, moment: float) -> bool:
        tokens, since = self._budgets.get(uid, (BURST, moment))
        tokens = min(BURST, tokens + (moment - since) * REFILL)
        allowed = tokens >= 1
        _remember(self._budgets, uid, (tokens - 1 if allowed else tokens, moment))
        return allowed

    async def _write(self, series: _Series) -> None:
        series.next_write = asyncio.get_running_loop().time() + series.interval
        series.interval = min(LONGEST_INTERVAL, 2 * series.interval)
        try:
            await self._persist(series)
            self._unauthorized = False
        except Unauthorized as error:
            self.failed += 1
            if not self._unauthorized:
                logger.warning("no right to write Events, going on without: %s", error)
            self._unauthorized = True
        except Refused as error:
            self.failed += 1
            level = logging.DEBUG if error.cause == "NamespaceTerminating" else logging.WARNING
            logger.log(level, "Event refused: %s", error)
        except Exception as error:  # noqa: BLE001  (telling must never stop)
            self.failed += 1
            logger.warning("Event not written: %s", error)

    async def _persist(self, series: _Series) -> None:
        """Try a few times. The name is fixed, so a create that worked although its answer was lost is a Conflict."""
        for attempt in range(1, TRIES + 1):
            try:
                await self._create_or_patch(series)
            except Conflict:
                series.written = True
            except Transient as error:
                if attempt == TRIES:
                    raise
                await asyncio.sleep(error.retry_after or 2.0**attempt)
                continue
            return

    async def _create_or_patch(self, series: _Series) -> None:
        if series.written:
            try:
                await self._client.patch(EVENTS, series.namespace, series.name, {"series": series.series()})
            except Gone:  # Events live for an hour
                series.written = False
            else:
                return
        body = series.body if series.count == 1 else series.body | {"series": series.series()}
        await self._client.create(EVENTS, series.namespace, body, metadata_only=True)
        series.written = True

    def _body(  # noqa: PLR0913, PLR0917
        self,
        regarding: ObjectReference,
        reason: str,
        kind: str,
        action: str,
        note: str,
        related: ObjectReference | None,
    ) -> JsonDict:
        self._serial += 1
        suffix = f".{self._serial:x}"
        body: JsonDict = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "name": regarding.name[: NAME_LIMIT - len(suffix)] + suffix,
                "namespace": regarding.namespace or self._namespace,
            },
            "eventTime": _micro_time(self._now()),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "type": kind,
            "note": note,
            "regarding": regarding.to_json(),
        }
        if related is not None:
            body["related"] = related.to_json()
        return body


def _remember(cache: OrderedDict[K, V], key: K, value: V) -> None:
    cache[key] = value
    cache.move_to_end(key)
    if len(cache) > REMEMBERED:
        cache.popitem(last=False)


def _micro_time(moment: datetime) -> str:
    """Format a `MicroTime`: RFC 3339 with exactly six digits."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _shortened(note: str) -> str:
    data = note.encode()
    if len(data) <= NOTE_LIMIT:
        return note
    return data[: NOTE_LIMIT - 3].decode("utf-8", "ignore") + "..."
