"""Public reports about the life of pods (group HP) and of other kopf operators (KF, DK): what must hold instead."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from builders import (
    NOW,
    cluster,
    created,
    creates_head,
    decide,
    deleted,
    ended,
    failed,
    group,
    head,
    pending,
    singles,
    snapshot,
    terminating,
)
from simulation import Fault, Operator, check_converged, converge, world_of
from tpu_operator.api import names
from tpu_operator.planning.memory import Backoff, Memory
from tpu_operator.planning.planner import plan
from tpu_operator.planning.pod import ContainerName


def workers(world):
    return [p for p in world.own() if p.node_type == names.WORKER and not p.terminating]


def test_an_evicted_head_is_replaced_by_exactly_one_hp_01():
    world = world_of(group(replicas=2))
    operator = Operator(world)
    converge(operator)
    before = {p.uid for p in workers(world)}
    (old,) = [p for p in world.own() if p.node_type == names.HEAD]
    world.fail(old.uid, "Evicted")
    world.creates = world.deletes = 0
    converge(operator)
    check_converged(operator)
    assert (world.creates, world.deletes) == (1, 1)
    assert {p.uid for p in workers(world)} == before


@pytest.mark.parametrize(
    ("policy", "gone"),
    [pytest.param("Never", {"w0"}, id="never"), ("OnFailure", set()), ("Always", set())],
)
def test_a_dead_ray_beside_a_living_sidecar_hp_04(policy, gone):
    assert deleted(decide(cluster(group(replicas=1)), [ended(singles(1)[0], "ray-worker", policy)])) == gone


def test_an_injected_first_container_is_not_ray_hp_05():
    worker = ended(singles(1)[0], "istio-proxy")
    containers = (ContainerName("istio-proxy"), ContainerName("ray-worker"))
    worker = replace(worker, spec=replace(worker.spec, containers=containers))
    assert decide(cluster(group(replicas=1)), [worker]).empty


def test_two_heads_do_not_stop_the_workers_hp_08():
    decided = plan(snapshot(cluster(group(replicas=2)), [head("a"), pending(head("b"))]))
    assert (deleted(decided), len(created(decided))) == ({"b"}, 2)


def test_a_node_that_fails_every_pod_sees_few_of_them_hp_10():
    world = world_of(group(replicas=1))
    operator = Operator(world)
    until = NOW + timedelta(minutes=10)
    while world.now < until:
        operator.see_pods()
        wait = operator.run().requeue_after
        for pod in workers(world):
            world.fail(pod.uid, "UnexpectedAdmissionError")
        for pod in world.own():
            if pod.node_type == names.HEAD:
                world.start(pod.uid)
        assert len(workers(world)) <= 2
        world.pass_time(max(1.0, min(wait or 1.0, 5.0)))
    assert world.creates - 1 <= 10
    converge(operator)
    check_converged(operator)


@pytest.mark.parametrize("reason", ["NodeAffinity", "NodeShutdown", "Preempting"])
def test_terminal_pods_are_replaced_once_whatever_the_reason_hp_11(reason):
    decided = decide(cluster(group(replicas=1)), [failed(singles(1)[0], reason)])
    assert (deleted(decided), created(decided)) == ({"w0"}, [("g", 0, (0,))])


@pytest.mark.parametrize(
    "memory",
    [
        pytest.param(Memory(1), id="a worker of a fails"),
        pytest.param(Memory(1, refusals={"a": Backoff(3, NOW + timedelta(seconds=60), "quota")}), id="a is refused"),
    ],
)
def test_trouble_in_one_group_does_not_hold_up_the_next_hp_13(memory):
    of = cluster(group("a", 1), group("b", 3))
    decided = decide(of, [failed(singles(1, of="a")[0])], memory=memory)
    assert len([c for c in created(decided) if c[0] == "b"]) == 3


def test_workers_that_wait_for_the_head_count_hp_14():
    decided = plan(snapshot(cluster(group(replicas=2)), [pending(head()), *map(pending, singles(2))]))
    assert decided.empty


# -- other kopf operators ----------------------------------------------------------------------------------------------


def test_a_handler_that_runs_again_and_again_makes_no_more_pods_kf_06_kf_09_kf_11_kf_24_dk_01():
    world = world_of(group(replicas=20))
    operator = Operator(world)
    for _ in range(20):
        operator.run()
        operator.see_pods()
    assert (world.creates, world.deletes) == (1 + 20, 0)


def test_one_bad_object_stops_itself_only_kf_26():
    decided = plan(snapshot(cluster(group(replicas="ten")), [head(), *singles(1)]))  # type: ignore[arg-type]
    assert decided.empty
    assert decided.blockers


def test_the_last_of_quick_changes_counts_dk_02():
    world = world_of(group(replicas=1))
    operator = Operator(world)
    for replicas in (1, 10, 2):
        world.groups[0]["replicas"] = replicas
        world.edited()
        operator.see_spec()
        operator.run()
    converge(operator)
    assert len(workers(world)) == 2


@pytest.mark.parametrize(
    ("replicas", "gone"),
    [
        pytest.param(3, {"w3", "w4"}, id="two of five"),
        pytest.param(5, set(), id="none: the whole list must not go"),
        pytest.param(0, {"w0", "w1", "w2", "w3", "w4"}, id="all"),
    ],
)
def test_exactly_the_surplus_goes_dk_05_dk_08(replicas, gone):
    assert deleted(decide(cluster(group(replicas=replicas)), singles(5))) == gone


def test_terminating_is_a_timestamp_and_no_phase_dk_07():
    pods = [*singles(3), *(terminating(p) for p in singles(2, start=3))]
    decided = decide(cluster(group(replicas=4)), pods)
    assert deleted(decided) == set()
    assert [w.what for w in decided.waiting] == ["slice g-3"]


def test_a_quota_gives_three_of_five_and_later_five_dk_11():
    world = world_of(group(replicas=5))
    operator = Operator(world)
    quota = 3

    def refuse(_: int) -> Fault | None:
        return Fault.REFUSED if len(workers(world)) >= quota else None

    for _ in range(10):
        operator.run(refuse)
        operator.see_pods()
        world.pass_time(10)
    assert len(workers(world)) == 3
    quota = 5
    converge(operator)
    check_converged(operator)
    assert (len(workers(world)), world.deletes) == (5, 0)


def test_a_lost_child_comes_back_without_a_change_of_the_spec_dk_13():
    world = world_of(group(replicas=3))
    operator = Operator(world)
    converge(operator)
    world.put(None, workers(world)[0])
    operator.see_pods()
    operator.run()
    assert len(workers(world)) == 3
    world.children.clear()
    assert not operator.run().empty
    assert operator.run().empty


def test_a_head_that_is_gone_comes_back_dk_16():
    assert creates_head(plan(snapshot(cluster(group(replicas=1)), singles(1))))
