"""The operator dies before each write of a plan in turn, and every time the cluster ends up as if it had not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from builders import group
from simulation import Crashed, Fault, Operator, World, check_converged, converge, slice_of, slot, world_of
from tpu_operator.api import names

Edit = Callable[[World], None]


def scale(replicas: int) -> Edit:
    def edit(world: World) -> None:
        world.groups[0]["replicas"] = replicas

    return edit


def name_one(world: World) -> None:
    """The autoscaler names one host of slice 1 and lowers the number by one."""
    victim = next(p for p in world.own() if slot(p) == ("g", "1", "0"))
    world.groups[0] |= {"replicas": 2, "scaleStrategy": {"workersToDelete": [victim.name]}}


def fail_host(world: World) -> None:
    world.fail(next(p.uid for p in world.own() if slot(p)[:2] == ("g", "1")), "Evicted")


def fail_head(world: World) -> None:
    world.fail(next(p.uid for p in world.own() if p.node_type == names.HEAD))


def evict_host(world: World) -> None:
    world.delete(next(p.uid for p in world.own() if slot(p)[:2] == ("g", "0")))


def resize(world: World) -> None:
    world.groups[0]["numOfHosts"] = 2


def suspend(world: World) -> None:
    world.spec["suspend"] = True


def resume(world: World) -> None:
    world.spec["suspend"] = False


def rename(world: World) -> None:
    world.groups[0]["groupName"] = "h"


def new_image(world: World) -> None:
    world.spec["headGroupSpec"]["template"]["spec"]["containers"][0]["image"] = "new"


SCENARIOS = [
    pytest.param((), scale(3), {}, id="scale up by three slices of four"),
    pytest.param((scale(3),), scale(1), {}, id="scale down by two"),
    pytest.param((scale(3),), scale(0), {}, id="scale down to zero"),
    pytest.param((scale(3),), name_one, {"enableInTreeAutoscaling": True}, id="one host of a slice is named"),
    pytest.param((scale(3),), fail_host, {}, id="a host failed"),
    pytest.param((scale(3),), evict_host, {}, id="a host is deleted from outside"),
    pytest.param((scale(2),), fail_head, {}, id="the head failed"),
    pytest.param((scale(2),), resize, {}, id="numOfHosts changed"),
    pytest.param((scale(2),), suspend, {}, id="suspend"),
    pytest.param((scale(2), suspend), resume, {}, id="resume"),
    pytest.param((scale(2),), rename, {}, id="the group was renamed"),
]


def begin(first: tuple[Edit, ...], spec: dict[str, object]) -> tuple[World, Operator]:
    world = world_of(group("g", 0, hosts=4), **spec)
    operator = Operator(world)
    converge(operator)
    for edit in first:
        edit(world)
        world.edited()
        converge(operator)
    return world, operator


def final(world: World) -> tuple[list[tuple[str, str, str]], int]:
    pods = [p for p in world.own() if not p.terminating]
    return sorted(slot(p) for p in pods), len({slice_of(p) for p in pods})


def writes_of(first: tuple[Edit, ...], edit: Edit, spec: dict[str, object]) -> tuple[int, object]:
    """How many writes the first pass after the edit makes, and where it all ends without a crash."""
    world, operator = begin(first, spec)
    edit(world)
    world.edited()
    operator.see_spec()
    operator.see_pods()
    count = 0

    def counting(number: int) -> None:
        nonlocal count
        count = number + 1

    operator.run(counting)
    converge(operator)
    check_converged(operator)
    return count, final(world)


@pytest.mark.parametrize("lag", [False, True], ids=["up to date", "with a cache that lags"])
@pytest.mark.parametrize(("first", "edit", "spec"), SCENARIOS)
def test_a_crash_before_any_write_leads_to_the_same_cluster(first, edit, spec, lag):
    count, want = writes_of(first, edit, spec)
    for write in range(count):
        world, operator = begin(first, spec)
        edit(world)
        world.edited()
        operator.see_spec()
        if not lag:
            operator.see_pods()
        with contextlib.suppress(Crashed):
            operator.run(crash_before=write)
        converge(operator)
        check_converged(operator)
        assert final(world) == want


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize(("first", "edit", "spec"), SCENARIOS)
def test_a_fault_at_any_write_leads_to_the_same_cluster(first, edit, spec, fault):
    count, want = writes_of(first, edit, spec)
    for write in range(count):
        world, operator = begin(first, spec)
        edit(world)
        world.edited()
        operator.see_spec()
        operator.see_pods()
        operator.run(lambda number, write=write: fault if number == write else None)
        converge(operator)
        check_converged(operator)
        assert final(world) == want


@pytest.mark.parametrize("lost", [False, True], ids=["crash", "crash, and what leaves is gone"])
def test_an_upgrade_leaves_no_old_pod_wherever_it_stops(lost):
    spec = {"upgradeStrategy": {"type": "Recreate"}}
    count, want = writes_of((scale(2),), new_image, spec)
    assert count == 8, "the workers of both slices go first"
    for passes, write in ((passes, write) for passes in range(3) for write in range(count + 1)):
        world, operator = begin((scale(2),), spec)
        old = {p.uid for p in world.own()}
        new_image(world)
        world.edited()
        operator.see_spec()
        for _ in range(passes):
            operator.run()
            operator.see_pods()
        with contextlib.suppress(Crashed):
            operator.run(crash_before=write)
        if lost:
            world.pass_time(60)
            operator.restart()
        converge(operator)
        check_converged(operator)
        assert final(world) == want
        assert not old & {p.uid for p in world.own()}
