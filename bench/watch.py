"""The third party: a watch on pods that neither the operator nor the bare client has a part in."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.api import Api
from bench.following import follow_pods
from bench.ledger import PodEvent, PodLedger

Condition = Callable[[PodLedger], bool]


@dataclass(slots=True)
class PodWatch:
    """Follows the pods of the bench's namespace and wakes whoever waits for something. Metadata only: it must be cheap."""

    api: Api
    ledger: PodLedger = field(default_factory=PodLedger)
    _waiting: list[tuple[Condition, asyncio.Future[float]]] = field(default_factory=list)

    async def run(self) -> None:
        """Follow until cancelled."""
        async for events in follow_pods(self.api):
            self._see(events)

    def _see(self, events: list[PodEvent]) -> None:
        now = time.perf_counter()
        for event in events:
            self.ledger.see(event, now)
        for condition, future in self._waiting:
            if not future.done() and condition(self.ledger):
                future.set_result(now)

    async def until(self, condition: Condition) -> float:
        """Wait until `condition` holds and return when (perf_counter) the event that made it true came in."""
        if condition(self.ledger):
            return time.perf_counter()
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        entry = (condition, future)
        self._waiting.append(entry)
        try:
            return await future
        finally:
            self._waiting.remove(entry)
