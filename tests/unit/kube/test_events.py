from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tpu_operator import errors
from tpu_operator.kube.events import EventSink, ObjectReference

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tpu_operator.kube.resource import Resource

Run = Callable[[Coroutine[Any, Any, None]], None]

CLUSTER = ObjectReference("ray.io/v1", "RayCluster", "ns", "demo", "uid-1")
POD = ObjectReference("v1", "Pod", "ns", "demo-worker", "uid-2")
START = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Writer:
    """Notes what is written; raises what it was told to, one error a call."""

    def __init__(self) -> None:
        self.writes: list[tuple[float, str, Mapping[str, Any]]] = []
        self.errors: list[Exception | None] = []
        self.names: list[str] = []

    async def create(self, resource: Resource, namespace: str | None, body: Mapping[str, Any], **_: Any) -> object:
        return self._write("create", body["metadata"]["name"], body)

    async def patch(self, resource: Resource, namespace: str | None, name: str, body: Mapping[str, Any]) -> object:
        return self._write("patch", name, body)

    def _write(self, verb: str, name: str, body: Mapping[str, Any]) -> None:
        self.writes.append((asyncio.get_running_loop().time(), verb, body))
        self.names.append(name)
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error

    @property
    def brief(self) -> list[tuple[float, str, int]]:
        return [(time, verb, body.get("series", {}).get("count", 1)) for time, verb, body in self.writes]


@asynccontextmanager
async def running(writer: Writer, **options: Any) -> AsyncIterator[EventSink]:
    loop = asyncio.get_running_loop()
    sink = EventSink(
        writer,
        reporting_controller="raycluster-controller",
        reporting_instance="operator-0",
        now=lambda: START + timedelta(seconds=loop.time()),
        **options,
    )
    task = asyncio.create_task(sink.run())
    yield sink
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def tell(sink: EventSink, note: str = "created 4 hosts", **changes: Any) -> None:
    told: dict[str, Any] = {"reason": "CreatedSlice", "type": "Normal", "action": "CreateSlice", "note": note}
    sink.emit(changes.pop("regarding", CLUSTER), **told | changes)


def test_an_event_has_every_field_that_the_api_asks_for(in_virtual_time: Run) -> None:
    async def story() -> None:
        writer = Writer()
        async with running(writer) as sink:
            tell(sink, related=POD)
            await sink.idle()
        (_, _, body) = writer.writes[0]
        metadata = body["metadata"]
        assert metadata["namespace"] == "ns"
        assert metadata["name"].startswith("demo.")
        assert {key: value for key, value in body.items() if key != "metadata"} == {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "eventTime": "2026-01-01T12:00:00.000000Z",
            "reportingController": "raycluster-controller",
            "reportingInstance": "operator-0",
            "action": "CreateSlice",
            "reason": "CreatedSlice",
            "type": "Normal",
            "note": "created 4 hosts",
            "regarding": {
                "apiVersion": "ray.io/v1", "kind": "RayCluster", "namespace": "ns", "name": "demo", "uid": "uid-1",
            },
            "related": {
                "apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "demo-worker", "uid": "uid-2",
            },
        }  # fmt: skip

    in_virtual_time(story())


def test_the_same_thing_told_each_second_is_one_event_written_at_growing_intervals(in_virtual_time: Run) -> None:
    async def story() -> None:
        writer = Writer()
        async with running(writer) as sink:
            for _ in range(200):
                tell(sink)
                await asyncio.sleep(1)
        assert writer.brief == [
            (0, "create", 1),
            (10, "patch", 10),
            (30, "patch", 30),
            (70, "patch", 70),
            (150, "patch", 150),
        ]
        assert len(set(writer.names)) == 1
        assert writer.writes[1][2]["series"]["lastObservedTime"] == "2026-01-01T12:00:09.000000Z"

    in_virtual_time(story())


def test_the_last_of_a_series_is_written_too(in_virtual_time: Run) -> None:
    async def story() -> None:
        writer = Writer()
        async with running(writer) as sink:
            tell(sink)
            await sink.idle()
            tell(sink)
            tell(sink)
            await asyncio.sleep(60)
        assert writer.brief == [(0, "create", 1), (10, "patch", 3)]

    in_virtual_time(story())


@pytest.mark.parametrize(
    "changes",
    [{"note": "other"}, {"reason": "Other"}, {"type": "Warning"}, {"regarding": POD}],
    ids=lambda changes: next(iter(changes)),
)
def test_what_differs_is_another_event(in_virtual_time: Run, changes: dict[str, Any]) -> None:
    async def story() -> None:
        writer = Writer()
        async with running(writer) as sink:
            tell(sink)
            tell(sink, **changes)
            await sink.idle()
        assert writer.brief == [(0, "create", 1), (0, "create", 1)]
        assert len(set(writer.names)) == 2

    in_virtual_time(story())


def test_after_ten_minutes_of_silence_it_is_a_new_event(in_virtual_time: Run) -> None:
    async def story() -> None:
        writer = Writer()
        async with running(writer) as sink:
            tell(sink)
            await asyncio.sleep(601)
            tell(sink)
            await sink.idle()
        assert writer.brief == [(0, "create", 1), (601, "create", 1)]

    in_virtual_time(story())


def test_one_object_cannot_flood_and_gets_its_budget_back_slowly(in_virtual_time: Run) -> None:
    async def story() -> None:
        writer = Writer()
        async with running(writer) as sink:
            for number in range(100):
                tell(sink, f"note {number}")
            tell(sink, regarding=POD)
            await sink.idle()
            assert (len(writer.writes), sink.dropped) == (26, 75)
            await asyncio.sleep(301)
            tell(sink, "one more")
            tell(sink, "one too many")
            await sink.idle()
            assert (len(writer.writes), sink.dropped) == (27, 76)

    in_virtual_time(story())


def test_a_full_queue_drops_the_oldest(in_virtual_time: Run) -> None:
    async def story() -> None:
        writer = Writer()
        async with running(writer, capacity=3) as sink:
            for number in range(5):
                tell(sink, f"note {number}")
            await sink.idle()
            assert sink.dropped == 2
        assert [body["note"] for _, _, body in writer.writes] == ["note 2", "note 3", "note 4"]

    in_virtual_time(story())


def test_a_long_note_is_cut_to_what_the_api_takes(in_virtual_time: Run) -> None:
    async def story() -> None:
        writer = Writer()
        async with running(writer) as sink:
            tell(sink, "ü" * 2000, regarding=ObjectReference("v1", "Pod", "ns", "n" * 253, "u"))
            await sink.idle()
        note = writer.writes[0][2]["note"]
        assert len(note.encode()) <= 1024
        assert note.endswith("ü...")
        assert len(writer.names[0]) <= 253

    in_virtual_time(story())


def test_an_overloaded_server_is_asked_again_with_the_same_name(in_virtual_time: Run) -> None:
    async def story() -> None:
        writer = Writer()
        writer.errors = [errors.Transient("429", retry_after=7), errors.AnswerLost("cut"), errors.Conflict("exists")]
        async with running(writer) as sink:
            tell(sink)
            await sink.idle()
            assert sink.failed == 0
            await asyncio.sleep(60)
            tell(sink)
            await sink.idle()
            await asyncio.sleep(1)
        assert [(time, verb) for time, verb, _ in writer.writes] == [
            (0, "create"), (7, "create"), (11, "create"), (71, "patch"),
        ]  # fmt: skip
        assert len(set(writer.names)) == 1

    in_virtual_time(story())


def test_an_event_that_the_server_has_expired_is_created_again(in_virtual_time: Run) -> None:
    async def story() -> None:
        writer = Writer()
        async with running(writer) as sink:
            tell(sink)
            await sink.idle()
            writer.errors = [errors.Gone("not found")]
            tell(sink)
            await asyncio.sleep(60)
        assert writer.brief == [(0, "create", 1), (10, "patch", 2), (10, "create", 2)]

    in_virtual_time(story())


def test_a_missing_right_is_logged_once_and_stops_nothing(
    in_virtual_time: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        writer = Writer()
        writer.errors = [errors.Unauthorized("cannot create"), errors.Unauthorized("cannot create"), None]
        async with running(writer) as sink:
            for number in range(3):
                tell(sink, f"note {number}")
            await sink.idle()
            assert (len(writer.writes), sink.failed) == (3, 2)

    in_virtual_time(story())
    assert caplog.text.count("no right to write Events") == 1


@pytest.mark.parametrize("error", [errors.Refused("quota"), errors.Gone("namespace"), RuntimeError("bug")])
def test_whatever_goes_wrong_the_next_event_is_written(in_virtual_time: Run, error: Exception) -> None:
    async def story() -> None:
        writer = Writer()
        writer.errors = [error]
        async with running(writer) as sink:
            tell(sink, "lost")
            tell(sink, "written")
            await sink.idle()
            assert (len(writer.writes), sink.failed) == (2, 1)

    in_virtual_time(story())
