"""What the informer does over time, with a scripted API server: pauses, replays, bugs of listeners."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import Struct

from tpu_operator import errors
from tpu_operator.kube.client import Listing, WatchEvent
from tpu_operator.kube.informer import LONGEST_PAUSE, Informer
from tpu_operator.kube.resource import PODS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

    Run = Callable[[Coroutine[Any, Any, None]], None]


class Meta(Struct, frozen=True, rename="camel"):
    name: str
    uid: str
    resource_version: str
    namespace: str = "ns"
    deletion_timestamp: str | None = None


class Pod(Struct, frozen=True):
    metadata: Meta


Json = dict[str, Any]


def pod(name: str, version: int, uid: str = "") -> Json:
    return {"metadata": {"name": name, "uid": uid or f"{name}-uid", "resourceVersion": str(version)}}


def event(kind: str, obj: Json) -> WatchEvent:
    return WatchEvent(kind, msgspec.Raw(json.dumps(obj).encode()))


Step = WatchEvent | Exception | float


class Script:
    """Answers lists and watches as written down. When the script ends, watches stay open and silent."""

    def __init__(
        self, lists: list[tuple[int, list[Json]] | Exception], watches: list[list[Step]] | None = None
    ) -> None:
        self.lists = lists
        self.watches = watches or []
        self.times: list[tuple[str, float]] = []

    async def list(self, *_: Any, decode: Callable[[bytes], Any], **__: Any) -> Listing[Any]:
        self.times.append(("list", asyncio.get_running_loop().time()))
        answer = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        if isinstance(answer, Exception):
            raise answer
        version, items = answer
        return Listing([decode(json.dumps(item).encode()) for item in items], str(version))

    async def watch(
        self, *_: Any, resource_version: str, on_open: Callable[[], None] | None = None, **__: Any
    ) -> AsyncGenerator[WatchEvent, None]:
        self.times.append((f"watch from {resource_version}", asyncio.get_running_loop().time()))
        steps = self.watches.pop(0) if self.watches else [10_000.0]
        if on_open and not isinstance(steps[0], errors.Unauthorized):
            on_open()
        for step in steps:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                yield step

    def moments(self, verb: str) -> list[float]:
        return [time for what, time in self.times if what.startswith(verb)]


class World:
    def __init__(self, script: Script, **options: Any) -> None:
        self.told: list[tuple[str | None, str | None]] = []
        loop = asyncio.get_running_loop()
        self.informer: Informer[Pod] = Informer(
            script,
            PODS,
            msgspec.json.Decoder(Pod).decode,
            **{"on_change": self.note, "clock": loop.time} | options,
        )

    def note(self, old: Pod | None, new: Pod | None) -> None:
        self.told.append((old and old.metadata.resource_version, new and new.metadata.resource_version))

    async def runs(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.informer.run()
        except TimeoutError:
            return
        pytest.fail("the informer ended by itself")

    @property
    def names(self) -> set[str]:
        return {obj.metadata.name for obj in self.informer.objects()}


EXPIRED = errors.Expired("too old", status=410)
FORBIDDEN = errors.Unauthorized("cannot watch pods", status=403)


def test_each_410_costs_one_list_and_the_lists_come_at_growing_intervals(in_virtual_time: Run) -> None:
    async def story() -> None:
        script = Script([(1, [])], [[event("ADDED", pod("a", 2)), EXPIRED] for _ in range(8)])
        await World(script).runs(120)
        gaps = [after - before for before, after in pairwise(script.moments("list"))]
        assert len(gaps) == 8
        assert all(0.5 <= gap / min(LONGEST_PAUSE, 0.25 * 2**number) <= 1 for number, gap in enumerate(gaps))

    in_virtual_time(story())


def test_a_right_that_comes_back_is_noticed_within_the_longest_pause(in_virtual_time: Run) -> None:
    async def story() -> None:
        script = Script([(1, [])], [[FORBIDDEN] for _ in range(20)])
        world = World(script)
        await world.runs(60)
        assert (world.informer.healthy, world.informer.last_error) == (False, "cannot watch pods")
        assert max(script.moments("watch")) > 60 - LONGEST_PAUSE
        assert len(script.moments("list")) == 1
        script.watches.clear()
        await world.runs(LONGEST_PAUSE)
        assert (world.informer.healthy, world.informer.last_error) == (True, None)

    in_virtual_time(story())


def test_a_stream_that_works_is_opened_again_at_once_from_where_it_ended(in_virtual_time: Run) -> None:
    async def story() -> None:
        bookmark = event("BOOKMARK", {"metadata": {"resourceVersion": "77"}})
        script = Script([(1, [])], [[290.0, bookmark], [290.0]])
        await World(script).runs(600)
        assert script.times == [("list", 0), ("watch from 1", 0), ("watch from 77", 290), ("watch from 77", 580)]

    in_virtual_time(story())


def test_events_from_before_a_reconnect_change_nothing(in_virtual_time: Run) -> None:
    async def story() -> None:
        replay = [
            event("ADDED", pod("a", 2)),
            event("MODIFIED", pod("a", 3)),
            event("DELETED", pod("a", 4)),
            event("ADDED", pod("a", 5, uid="a-second")),
        ]
        world = World(Script([(1, [])], [[*replay, *replay, 1000.0]]))
        await world.runs(10)
        assert world.told == [(None, "2"), ("2", "3"), ("3", None), (None, "5")]

    in_virtual_time(story())


def test_what_a_list_lacks_was_deleted_and_a_listener_hears_it_once(in_virtual_time: Run) -> None:
    async def story() -> None:
        lists: list[Any] = [(5, [pod("a", 2), pod("b", 3)]), (9, [pod("b", 3), pod("c", 8)])]
        relists: list[tuple[str | None, int]] = []
        world = World(Script(lists, [[EXPIRED]]), on_relist=lambda *relist: relists.append(relist))
        await world.runs(10)
        assert world.told == [(None, "2"), (None, "3"), ("2", None), (None, "8")]
        assert relists == [(None, 5), (None, 9)]
        assert world.informer.recently_deleted("a-uid")

    in_virtual_time(story())


def test_one_object_that_cannot_be_read_costs_nothing_but_itself(in_virtual_time: Run) -> None:
    async def story() -> None:
        bad = {"metadata": {"uid": "a-uid", "resourceVersion": "6", "name": 7}}
        lists: list[Any] = [(5, [pod("a", 2)]), (9, [bad, pod("b", 8)])]
        steps: list[Step] = [event("MODIFIED", bad), event("ADDED", pod("c", 7)), EXPIRED]
        world = World(
            Script(
                lists,
                [steps, [event("DELETED", bad | {"metadata": bad["metadata"] | {"resourceVersion": "10"}}), 99.0]],
            )
        )
        await world.runs(10)
        assert world.informer.undecodable == 3
        assert world.told == [(None, "2"), (None, "7"), ("7", None), (None, "8"), ("2", None)]

    in_virtual_time(story())


def test_a_listener_that_fails_stops_nothing(in_virtual_time: Run) -> None:
    async def story() -> None:
        def listener(*_: object) -> None:
            raise RuntimeError

        world = World(Script([(5, [pod("a", 2), pod("b", 3)])]), on_change=listener)
        await world.runs(10)
        assert world.names == {"a", "b"}
        assert world.informer.healthy

    in_virtual_time(story())


def test_a_bug_makes_it_start_over(in_virtual_time: Run) -> None:
    async def story() -> None:
        world = World(Script([RuntimeError("bug"), (5, [pod("a", 2)])], [[RuntimeError("another")]]))
        await world.runs(10)
        assert world.names == {"a"}
        assert world.informer.healthy

    in_virtual_time(story())


def test_it_is_known_for_how_long_nothing_was_heard(in_virtual_time: Run) -> None:
    async def story() -> None:
        world = World(Script([(1, [])], [[20.0, event("BOOKMARK", {"metadata": {"resourceVersion": "2"}}), 1000.0]]))
        await world.runs(65)
        assert world.informer.silent_for == pytest.approx(45)

    in_virtual_time(story())
