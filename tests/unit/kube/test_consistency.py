"""Own writes laid over a cache that lags: whatever order event, answer and list arrive in."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import permutations

import pytest

from tpu_operator.kube.consistency import OwnWrites, PendingWrites, Unsettled
from tpu_operator.kube.store import Store

OWNER = "owner-uid"
DEADLINE = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Meta:
    name: str
    uid: str
    resource_version: str
    namespace: str = "ns"
    deletion_timestamp: str | None = None


@dataclass(frozen=True)
class Pod:
    metadata: Meta


def pod(name: str, version: int, *, terminating: bool = False, namespace: str = "ns") -> Pod:
    return Pod(Meta(name, f"{name}-uid", str(version), namespace, "2026-01-01T00:00:00Z" if terminating else None))


@dataclass
class World:
    """A cache and own writes wired up as the operator does it, with a clock that is moved by hand."""

    now: float = 1000.0
    cache: Store[Pod] = field(default_factory=lambda: Store({}))
    own: OwnWrites[Pod, str] = field(init=False)

    def __post_init__(self) -> None:
        self.own = OwnWrites(self.cache, limit=30.0, clock=lambda: self.now)

    def shows(self, obj: Pod) -> None:
        self.own.observed(self.cache.put(obj), obj)

    def loses(self, obj: Pod) -> None:
        old = self.cache.remove(obj.metadata.uid, int(obj.metadata.resource_version))
        if old is not None:
            self.own.observed(old, None)

    def relists(self, version: int, *objects: Pod, namespace: str | None = None) -> None:
        there = {obj.metadata.uid for obj in objects}
        for old in [old for old in self.cache.objects() if old.metadata.uid not in there]:
            self.own.observed(self.cache.remove(old.metadata.uid, version), None)
        for obj in objects:
            self.shows(obj)
        self.own.relisted(namespace, version)

    @property
    def overlay(self) -> PendingWrites[Pod, str]:
        return self.own.overlay(OWNER)

    @property
    def leaks_nothing(self) -> bool:
        return not (self.own._owners or self.own._owner_of_uid or self.own._owner_of_name)


@pytest.fixture
def world() -> World:
    return World()


A = pod("a", 10)


def test_a_created_pod_is_laid_over_the_cache_until_the_cache_shows_it(world: World) -> None:
    world.own.created(OWNER, A)
    assert world.overlay == PendingWrites(created=(A,))
    assert world.own.overlay("somebody else") == PendingWrites()

    world.shows(A)
    assert not world.overlay
    assert world.leaks_nothing


def test_the_event_may_come_before_the_answer(world: World) -> None:
    world.shows(A)
    world.own.created(OWNER, A)

    assert not world.overlay
    assert world.leaks_nothing


def test_creation_and_deletion_may_both_be_seen_before_the_answer(world: World) -> None:
    world.shows(A)
    world.loses(pod("a", 11))
    world.own.created(OWNER, A)

    assert not world.overlay
    assert world.leaks_nothing


@pytest.mark.parametrize("order", list(permutations(["created", "shows", "deleted", "terminates", "loses"])))
def test_in_whatever_order_a_pods_life_is_told_nothing_is_left_of_it(world: World, order: tuple[str, ...]) -> None:
    """The answers may come late by any amount; events keep their order, as those of one object do."""
    events = iter(["shows", "terminates", "loses"])
    for step in order:
        match step if step in {"created", "deleted"} else next(events):
            case "created":
                world.own.created(OWNER, A)
            case "deleted":
                world.own.deleted(OWNER, A.metadata.uid, DEADLINE)
            case "shows":
                world.shows(A)
            case "terminates":
                world.shows(pod("a", 11, terminating=True))
            case _:
                world.loses(pod("a", 12))

    assert not world.overlay
    assert world.leaks_nothing


def test_an_older_event_of_the_pod_does_not_end_the_deletion(world: World) -> None:
    world.shows(A)
    world.own.deleted(OWNER, A.metadata.uid, DEADLINE)
    world.shows(pod("a", 11))
    assert world.overlay == PendingWrites(deleted={A.metadata.uid: DEADLINE})

    world.shows(pod("a", 12, terminating=True))
    assert not world.overlay
    assert world.leaks_nothing


def test_a_pod_that_terminates_already_needs_no_entry(world: World) -> None:
    world.shows(pod("a", 10, terminating=True))
    world.own.deleted(OWNER, A.metadata.uid, DEADLINE)

    assert not world.overlay


def test_a_pod_created_and_rolled_back_unseen_is_in_the_overlay_as_both(world: World) -> None:
    world.own.created(OWNER, A)
    world.own.deleted(OWNER, A.metadata.uid, DEADLINE)

    assert world.overlay == PendingWrites(created=(A,), deleted={A.metadata.uid: DEADLINE})

    world.shows(A)
    assert world.overlay == PendingWrites(deleted={A.metadata.uid: DEADLINE})


def test_a_list_that_is_newer_than_the_create_and_lacks_the_pod_ends_it(world: World) -> None:
    world.own.created(OWNER, A)
    world.own.deleted(OWNER, A.metadata.uid, DEADLINE)
    world.relists(10)

    assert not world.overlay
    assert world.leaks_nothing


def test_a_list_that_is_older_than_the_create_says_nothing_of_it(world: World) -> None:
    world.own.created(OWNER, A)
    world.relists(9)

    assert world.overlay.created == (A,)


def test_a_list_of_another_namespace_says_nothing_of_it(world: World) -> None:
    world.own.created(OWNER, A)
    world.relists(99, namespace="other")

    assert world.overlay.created == (A,)


def test_a_create_without_an_answer_blocks_its_name_until_the_pod_is_seen(world: World) -> None:
    world.own.unsettled(OWNER, "ns", "a", "slot 3")
    assert world.overlay == PendingWrites(unsettled=(Unsettled("ns", "a", "slot 3"),))

    world.shows(pod("a", 5, namespace="other"))
    assert world.overlay.unsettled

    world.shows(A)
    assert not world.overlay
    assert world.leaks_nothing


def test_a_create_without_an_answer_whose_pod_is_there_already_is_settled(world: World) -> None:
    world.shows(A)
    world.own.unsettled(OWNER, "ns", "a", "slot 3")

    assert not world.overlay


def test_a_get_by_name_settles_either_way(world: World) -> None:
    world.own.unsettled(OWNER, "ns", "a", "")
    world.own.unsettled(OWNER, "ns", "b", "")
    world.own.settled(OWNER, "ns", "b")  # 404
    world.own.created(OWNER, A)  # found

    assert world.overlay == PendingWrites(created=(A,))


def test_after_the_limit_the_owner_is_overdue(world: World) -> None:
    assert not world.own.overdue(OWNER)
    world.own.created(OWNER, A)
    world.now += 20
    world.own.created(OWNER, pod("b", 11))
    world.now += 10
    assert not world.own.overdue(OWNER)

    world.now += 1
    assert world.own.overdue(OWNER)
    assert not world.own.overdue("somebody else")

    world.shows(A)
    assert not world.own.overdue(OWNER), "what is overdue has come, the other one still has time"


def test_a_live_list_replaces_what_the_cache_owes(world: World) -> None:
    stale, dying, failed = pod("stale", 1), pod("dying", 2), pod("delete-failed", 3)
    for obj in (stale, dying, failed):
        world.shows(obj)
    hidden, vanished, newer = pod("hidden", 10), pod("vanished", 11), pod("newer", 99)
    for obj in (hidden, vanished, newer):
        world.own.created(OWNER, obj)
    for obj in (dying, failed):
        world.own.deleted(OWNER, obj.metadata.uid, DEADLINE)
    world.own.unsettled(OWNER, "ns", "found", "")
    world.own.unsettled(OWNER, "ns", "never", "")
    world.now += 31

    found = pod("found", 12)
    listed = [hidden, found, pod("dying", 20, terminating=True), failed]
    world.own.refreshed(OWNER, cached=[stale, dying, failed], listed=listed, resource_version=50)

    assert world.overlay == PendingWrites(
        created=(hidden, found, newer),
        deleted={dying.metadata.uid: DEADLINE},
        gone=frozenset({stale.metadata.uid}),
    )
    assert not world.own.overdue(OWNER)

    world.relists(100, hidden, found, pod("dying", 20, terminating=True), failed, newer)
    assert not world.overlay
    assert world.leaks_nothing


def test_a_forgotten_owner_leaves_no_trace(world: World) -> None:
    for number in range(1000):
        obj = pod(f"p{number}", number + 1)
        world.own.created(f"owner-{number}", obj)
        world.own.deleted(f"owner-{number}", obj.metadata.uid, DEADLINE)
        world.own.unsettled(f"owner-{number}", "ns", f"u{number}", "")
    assert len(world.own) == 1000
    for number in range(1000):
        world.own.forget(f"owner-{number}")

    assert world.leaks_nothing
