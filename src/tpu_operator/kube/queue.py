"""Which keys to look at, in which order: one pass per key at a time, first come first served between keys."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

K = TypeVar("K", bound=Hashable)

logger = logging.getLogger(__name__)

MOST_DOUBLINGS: Final = 16


class WorkQueue(Generic[K]):
    """Calls `process(key)` for each key that was added; at most `workers` passes at the same time.

    A key that waits is there once, however often it was added; one that is added while its pass runs gets another pass
    afterwards, at the end of the line. `process` that raises is logged and tried again with growing pauses; one that
    returns without having called `retry` resets them.

    The queue starts closed, as on a replica that is not the leader: keys gather and no pass starts. Not thread-safe:
    use it in one event loop.
    """

    def __init__(
        self,
        process: Callable[[K], Awaitable[None]],
        *,
        workers: int = 64,
        base: float = 0.5,
        cap: float = 60.0,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._process = process
        self._workers = workers
        self._base = base
        self._cap = cap
        self._jitter = jitter
        self._ready: dict[K, None] = {}  # a dict is an ordered set
        self._again: set[K] = set()
        self._passes: dict[K, asyncio.Task[None]] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._retried: set[K] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.is_open = False

    @property
    def depth(self) -> int:
        """Keys that wait for a pass, those that wait for their running pass to end included."""
        return len(self._ready) + len(self._again)

    @property
    def delayed(self) -> int:
        """Keys with a timer."""
        return len(self._timers)

    @property
    def running(self) -> int:
        """Passes that run."""
        return len(self._passes)

    def open(self) -> None:
        """Let passes start."""
        self.is_open = True
        self._pump()

    def close(self) -> None:
        """Let no further pass start. Those that run go on: see `drain`. Keys still gather."""
        self.is_open = False
        self._settle()

    def add(self, key: K) -> None:
        """Ask for a pass as soon as possible."""
        if key in self._passes:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = None
            self._pump()

    def add_after(self, key: K, seconds: float) -> None:
        """Ask for a pass in `seconds`. Of several such wishes for a key the earliest holds."""
        loop = asyncio.get_running_loop()
        when = loop.time() + seconds
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= when:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(when, self._due, key)

    def retry(self, key: K) -> float:
        """Ask for a pass after the key's pause, which doubles each time; return the seconds.

        Half of a pause is random, so that keys that failed together do not come back together.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        if key in self._passes:
            self._retried.add(key)
        pause = min(self._cap, self._base * 2.0 ** min(failures, MOST_DOUBLINGS))
        seconds = pause * (0.5 + 0.5 * self._jitter())
        self.add_after(key, seconds)
        return seconds

    def forget(self, key: K) -> None:
        """Let the next `retry` of this key begin with the shortest pause."""
        self._failures.pop(key, None)

    def drop(self, key: K) -> None:
        """Forget all about a key. A pass of it that runs goes on."""
        self.forget(key)
        self._ready.pop(key, None)
        self._again.discard(key)
        self._retried.discard(key)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        self._settle()

    async def idle(self) -> None:
        """Wait until no pass runs and none could start. Timers do not count."""
        await self._idle.wait()

    async def drain(self, grace: float) -> None:
        """Wait for the running passes, at most `grace` seconds, then cancel those that are left."""
        passes = list(self._passes.values())
        if not passes:
            return
        _, late = await asyncio.wait(passes, timeout=grace)
        for task in late:
            task.cancel()
        if late:
            logger.warning("%d passes were cut off after %.0f s", len(late), grace)
            await asyncio.wait(late)
        await asyncio.sleep(0)  # the passes are done, now their callbacks

    async def stop(self, grace: float = 10.0) -> None:
        """Close for good: no timer goes off any more, running passes get `grace` seconds."""
        self.close()
        for key in list(self._timers):
            self._timers.pop(key).cancel()
        await self.drain(grace)

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _pump(self) -> None:
        while self.is_open and self._ready and len(self._passes) < self._workers:
            key = next(iter(self._ready))
            del self._ready[key]
            task = asyncio.get_running_loop().create_task(self._pass(key), name=f"pass {key}")
            self._passes[key] = task
            task.add_done_callback(partial(self._ended, key))  # it comes even if the task is cancelled before it began
        self._settle()

    async def _pass(self, key: K) -> None:
        try:
            await self._process(key)
        except Exception:
            logger.exception("a pass of %s failed", key)
            if key not in self._retried:
                self.retry(key)
        else:
            if key not in self._retried:
                self.forget(key)

    def _ended(self, key: K, _: asyncio.Task[None]) -> None:
        del self._passes[key]
        self._retried.discard(key)
        if key in self._again:
            self._again.discard(key)
            self._ready[key] = None
        self._pump()

    def _settle(self) -> None:
        if self._passes or (self.is_open and self._ready):
            self._idle.clear()
        else:
            self._idle.set()
