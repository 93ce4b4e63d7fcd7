"""A bound on requests in flight that one busy key cannot use up."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from types import TracebackType

K = TypeVar("K", bound=Hashable)


class FairLimiter(Generic[K]):
    """`capacity` slots. Those who wait are served in turns by key: one of each key, then the second of each.

    So a newcomer is passed over at most once by each other key that waits, whatever the number of their requests:
    beside one huge cluster it gets the second slot that is given back, if not the first.
    """

    def __init__(self, capacity: int = 64) -> None:
        self._free = capacity
        self._capacity = capacity
        self._waiting: OrderedDict[K, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def in_flight(self) -> int:
        """Slots taken."""
        return self._capacity - self._free

    @property
    def waiting(self) -> int:
        """Requests that wait for a slot."""
        return sum(map(len, self._waiting.values()))

    def slot(self, key: K) -> Slot[K]:
        """Return a context to make one request in: `async with limiter.slot(key): ...`."""
        return Slot(self, key)

    async def _acquire(self, key: K) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(key, turn)
            else:  # the slot was ours already
                self._release()
            raise

    def _leave(self, key: K, turn: asyncio.Future[None]) -> None:
        line = self._waiting.get(key)
        if line is not None and turn in line:
            line.remove(turn)
            if not line:
                del self._waiting[key]

    def _release(self) -> None:
        """Hand the slot to the key whose turn it is; it then goes to the end of the round."""
        while self._waiting:
            key, line = self._waiting.popitem(last=False)
            turn = line.popleft()
            if line:
                self._waiting[key] = line
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class Slot(Generic[K]):
    """One request's share of the limiter."""

    __slots__ = ("_key", "_limiter")

    def __init__(self, limiter: FairLimiter[K], key: K) -> None:
        self._limiter = limiter
        self._key = key

    async def __aenter__(self) -> None:
        await self._limiter._acquire(self._key)  # noqa: SLF001

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._limiter._release()  # noqa: SLF001
