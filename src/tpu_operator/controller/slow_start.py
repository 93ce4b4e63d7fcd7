"""Parallel work that starts with one and grows with success: 1, 2, 4, ... up to a limit."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

Item = TypeVar("Item")


class SlowStart(Generic[Item]):
    """Runs `work` over items, in order of start, with a growing number of workers; stops at the first refusal.

    `work` returns True if it went well (one more worker may join), False to go on without growing, None to stop: what
    has not been started is then left, and is what `run` returns. As in a ReplicaSet, a quota that is used up costs a
    few refused requests and not thousands.
    """

    def __init__(self, work: Callable[[Item], Awaitable[bool | None]], limit: int) -> None:
        self._work = work
        self._limit = max(1, limit)
        self._workers = 0
        self._stopped = False

    async def run(self, items: Iterable[Item]) -> list[Item]:
        """Work through `items`; those that were not started."""
        self._items = iter(items)
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._join()
        return list(self._items)

    def _join(self) -> None:
        if self._workers < self._limit and not self._stopped:
            self._workers += 1
            self._tasks.create_task(self._worker())

    async def _worker(self) -> None:
        while not self._stopped:
            item = next(self._items, None)
            if item is None:
                return
            went_well = await self._work(item)
            if went_well is None:
                self._stopped = True
            elif went_well:
                self._join()
