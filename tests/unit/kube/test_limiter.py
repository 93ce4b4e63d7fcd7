from __future__ import annotations

import asyncio

import pytest

from tpu_operator.kube.limiter import FairLimiter


async def test_no_more_than_the_capacity_are_in_flight() -> None:
    limiter: FairLimiter[str] = FairLimiter(3)
    most = 0

    async def request(key: str) -> None:
        nonlocal most
        async with limiter.slot(key):
            most = max(most, limiter.in_flight)
            await asyncio.sleep(0)

    await asyncio.gather(*(request(f"c{number % 4}") for number in range(40)))

    assert most == 3
    assert (limiter.in_flight, limiter.waiting) == (0, 0)


async def served(limiter: FairLimiter[str], arrivals: list[str]) -> list[str]:
    """Return the order in which keys get the one slot that somebody else holds at first."""
    order: list[str] = []

    async def request(key: str) -> None:
        async with limiter.slot(key):
            order.append(key)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks, limiter.slot("first"):
        for key in arrivals:
            tasks.create_task(request(key))
            await asyncio.sleep(0)
    return order


async def test_a_huge_cluster_passes_a_newcomer_at_most_once() -> None:
    order = await served(FairLimiter(1), ["huge"] * 100 + ["small"])

    assert order.index("small") <= 1
    assert len(order) == 101


async def test_keys_take_turns_in_the_order_in_which_they_came() -> None:
    assert await served(FairLimiter(1), [*"aaabbc"]) == [*"abcaba"]


@pytest.mark.parametrize("key", ["other", "same"])
async def test_somebody_who_gives_up_while_waiting_takes_no_slot_along(key: str) -> None:
    limiter: FairLimiter[str] = FairLimiter(1)

    async def request(name: str) -> None:
        async with limiter.slot(name):
            pass

    async with limiter.slot("first"):
        quitter = asyncio.create_task(request("same"))
        follower = asyncio.create_task(request(key))
        await asyncio.sleep(0)
        quitter.cancel()
        await asyncio.gather(quitter, return_exceptions=True)
        assert limiter.waiting == 1
    await follower

    assert (limiter.in_flight, limiter.waiting) == (0, 0)


async def test_somebody_who_gives_up_just_when_it_is_his_turn_hands_the_slot_on() -> None:
    limiter: FairLimiter[str] = FairLimiter(1)

    async def request(name: str) -> None:
        async with limiter.slot(name):
            pass

    slot = limiter.slot("first")
    await slot.__aenter__()
    quitter, follower = asyncio.create_task(request("a")), asyncio.create_task(request("b"))
    await asyncio.sleep(0)
    await slot.__aexit__(None, None, None)
    quitter.cancel()
    await asyncio.gather(quitter, follower, return_exceptions=True)

    assert not follower.cancelled()
    assert (limiter.in_flight, limiter.waiting) == (0, 0)


async def test_a_failed_request_gives_its_slot_back() -> None:
    limiter: FairLimiter[str] = FairLimiter(1)

    with pytest.raises(RuntimeError):
        async with limiter.slot("a"):
            raise RuntimeError

    assert limiter.in_flight == 0
