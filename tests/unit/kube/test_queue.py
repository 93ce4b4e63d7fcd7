from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tpu_operator.kube.queue import WorkQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Run = Callable[[Coroutine[Any, Any, None]], None]


class Passes:
    """A process function that notes who ran when, and runs for `seconds`."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.log: list[tuple[float, str]] = []
        self.now: set[str] = set()
        self.most = 0
        self.failing: set[str] = set()

    async def __call__(self, key: str) -> None:
        assert key not in self.now, "two passes of one key at the same time"
        self.log.append((asyncio.get_running_loop().time(), key))
        self.now.add(key)
        self.most = max(self.most, len(self.now))
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.now.discard(key)
        if key in self.failing:
            raise RuntimeError(key)

    @property
    def keys(self) -> list[str]:
        return [key for _, key in self.log]

    @property
    def times(self) -> list[float]:
        return [round(time, 3) for time, _ in self.log]


def queue_of(passes: Passes, **options: Any) -> WorkQueue[str]:
    queue: WorkQueue[str] = WorkQueue(passes, jitter=lambda: 1.0, **options)
    queue.open()
    return queue


def test_a_key_that_waits_is_there_once_and_keys_are_served_in_order(in_virtual_time: Run) -> None:
    async def story() -> None:
        passes = Passes(1.0)
        queue = queue_of(passes, workers=1)
        for key in "abcabcab":
            queue.add(key)
        assert (queue.depth, queue.running) == (3, 1)  # a runs and is wanted again; b and c wait
        await queue.idle()
        assert passes.keys == [*"abca"]

    in_virtual_time(story())


def test_a_key_added_while_it_runs_gets_exactly_one_more_pass(in_virtual_time: Run) -> None:
    async def story() -> None:
        passes = Passes(1.0)
        queue = queue_of(passes)
        queue.add("a")
        await asyncio.sleep(0.5)
        for _ in range(5):
            queue.add("a")
        await queue.idle()
        assert passes.times == [0.0, 1.0]

    in_virtual_time(story())


def test_passes_of_different_keys_run_together_up_to_the_bound(in_virtual_time: Run) -> None:
    async def story() -> None:
        passes = Passes(1.0)
        queue = queue_of(passes, workers=3)
        for number in range(9):
            queue.add(str(number))
        await queue.idle()
        assert passes.most == 3
        assert asyncio.get_running_loop().time() == 3.0

    in_virtual_time(story())


def test_of_several_delays_the_earliest_holds(in_virtual_time: Run) -> None:
    async def story() -> None:
        passes = Passes()
        queue = queue_of(passes)
        for seconds in (20.0, 5.0, 30.0):
            queue.add_after("a", seconds)
        assert queue.delayed == 1
        await asyncio.sleep(100)
        assert passes.times == [5.0]

    in_virtual_time(story())


def test_an_event_does_not_wait_for_the_timer_of_its_key(in_virtual_time: Run) -> None:
    async def story() -> None:
        passes = Passes()
        queue = queue_of(passes)
        queue.add_after("a", 5.0)
        queue.add("a")
        await asyncio.sleep(100)
        assert passes.times == [0.0, 5.0]

    in_virtual_time(story())


def test_a_pass_that_fails_is_tried_again_with_growing_pauses(in_virtual_time: Run) -> None:
    async def story() -> None:
        passes = Passes()
        passes.failing.add("a")
        queue = queue_of(passes, base=0.5, cap=4.0)
        queue.add("a")
        await asyncio.sleep(16)
        assert passes.times == [0.0, 0.5, 1.5, 3.5, 7.5, 11.5, 15.5]
        passes.failing.clear()
        await asyncio.sleep(4)
        assert queue.retry("a") == 0.5, "a pass that works resets the pause"

    in_virtual_time(story())


def test_a_pass_may_ask_for_its_own_retry_and_keeps_its_failures(in_virtual_time: Run) -> None:
    async def story() -> None:
        pauses: list[float] = []

        async def process(key: str) -> None:
            await asyncio.sleep(0)
            if len(pauses) < 4:
                pauses.append(queue.retry(key))

        queue: WorkQueue[str] = WorkQueue(process, jitter=lambda: 1.0)
        queue.open()
        queue.add("a")
        await asyncio.sleep(100)
        assert pauses == [0.5, 1.0, 2.0, 4.0]
        assert queue.retry("a") == 0.5

    in_virtual_time(story())


@pytest.mark.parametrize(("jitter", "want"), [(0.0, 0.25), (0.5, 0.375), (1.0, 0.5)])
def test_half_of_a_pause_is_random(in_virtual_time: Run, jitter: float, want: float) -> None:
    async def story() -> None:
        assert WorkQueue(Passes(), jitter=lambda: jitter).retry("a") == want

    in_virtual_time(story())


def test_a_key_that_fails_does_not_hold_up_the_others(in_virtual_time: Run) -> None:
    async def story() -> None:
        passes = Passes()
        passes.failing.add("bad")
        queue = queue_of(passes, workers=1)
        for key in ("bad", "b", "c"):
            queue.add(key)
        await queue.idle()
        assert passes.log == [(0.0, "bad"), (0.0, "b"), (0.0, "c")]

    in_virtual_time(story())


def test_a_closed_queue_gathers_keys_and_an_opened_one_serves_them(in_virtual_time: Run) -> None:
    async def story() -> None:
        passes = Passes()
        queue: WorkQueue[str] = WorkQueue(passes)
        queue.add("a")
        queue.add("a")
        queue.add_after("b", 1.0)
        await asyncio.sleep(10)
        assert (passes.log, queue.depth) == ([], 2)
        queue.open()
        await queue.idle()
        assert passes.keys == ["a", "b"]
        queue.close()
        queue.add("c")
        await asyncio.sleep(10)
        assert passes.keys == ["a", "b"]

    in_virtual_time(story())


def test_draining_waits_for_passes_and_cuts_off_those_that_hang(in_virtual_time: Run) -> None:
    async def story() -> None:
        passes = Passes(60.0)
        queue = queue_of(passes)
        queue.add("slow")
        await asyncio.sleep(55)
        queue.add("hangs")
        queue.add_after("later", 1.0)
        queue.close()
        await queue.stop(grace=10.0)
        assert asyncio.get_running_loop().time() == 65.0
        assert (queue.running, queue.delayed) == (0, 0)
        assert passes.keys == ["slow", "hangs"]

    in_virtual_time(story())


def test_a_stopped_queue_can_be_opened_again(in_virtual_time: Run) -> None:
    async def story() -> None:
        passes = Passes(60.0)
        queue = queue_of(passes)
        queue.add("a")
        await queue.stop(grace=0.0)
        assert queue.running == 0
        queue.open()
        queue.add("a")
        await queue.idle()
        assert passes.times == [0.0, 0.0]

    in_virtual_time(story())


def test_a_dropped_key_leaves_no_trace(in_virtual_time: Run) -> None:
    async def story() -> None:
        passes = Passes()
        queue: WorkQueue[str] = WorkQueue(passes, jitter=lambda: 1.0)
        for number in range(1000):
            queue.add(str(number))
            queue.retry(str(number))
        for number in range(1000):
            queue.drop(str(number))
        queue.open()
        await asyncio.sleep(100)
        assert (queue.depth, queue.delayed, passes.log) == (0, 0, [])
        assert not queue._failures

    in_virtual_time(story())
