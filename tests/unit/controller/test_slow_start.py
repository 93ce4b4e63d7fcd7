"""Slow start: one, then more with each success, none after a refusal."""

from __future__ import annotations

import asyncio

import pytest

from tpu_operator.controller.slow_start import SlowStart


class Work:
    """Counts how many items are under way; `verdict` says how each ends."""

    def __init__(self, verdict) -> None:
        self.verdict = verdict
        self.now = 0
        self.peaks: list[int] = []
        self.done: list[int] = []

    async def __call__(self, item: int) -> bool | None:
        self.now += 1
        self.peaks.append(self.now)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.now -= 1
        self.done.append(item)
        return self.verdict(item)


async def test_every_item_is_worked_on_once() -> None:
    work = Work(lambda _: True)
    assert await SlowStart(work, 16).run(range(100)) == []
    assert sorted(work.done) == list(range(100))


async def test_it_starts_with_one_and_grows_to_the_limit_and_not_beyond() -> None:
    work = Work(lambda _: True)
    await SlowStart(work, 8).run(range(200))
    assert work.peaks[0] == 1
    assert max(work.peaks) == 8


async def test_the_number_under_way_doubles_at_most() -> None:
    work = Work(lambda _: True)
    await SlowStart(work, 64).run(range(200))
    for n in (1, 3, 7, 15):
        assert max(work.peaks[:n]) <= (n + 1) // 2 + 1


async def test_without_success_it_does_not_grow() -> None:
    work = Work(lambda _: False)
    await SlowStart(work, 8).run(range(20))
    assert max(work.peaks) == 1


async def test_a_refusal_leaves_the_rest() -> None:
    work = Work(lambda item: None if item == 0 else True)
    assert await SlowStart(work, 8).run(range(50)) == list(range(1, 50))


async def test_a_refusal_late_costs_only_what_is_under_way() -> None:
    work = Work(lambda item: None if item == 10 else True)
    rest = await SlowStart(work, 4).run(range(1000))
    assert len(work.done) + len(rest) == 1000
    assert len(work.done) <= 10 + 4 + 4


async def test_an_error_in_the_work_is_not_swallowed() -> None:
    async def fails(item: int) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as caught:
        await SlowStart(fails, 4).run([1])
    assert caught.group_contains(ZeroDivisionError)


async def test_nothing_to_do_is_fine() -> None:
    assert await SlowStart(Work(lambda _: True), 4).run([]) == []
