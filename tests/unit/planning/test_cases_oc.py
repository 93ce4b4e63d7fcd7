"""Public reports of over- and under-creation (group OC): what must hold instead."""

from __future__ import annotations

import pytest

from builders import (
    cluster,
    created,
    decide,
    deleted,
    group,
    head,
    hosts,
    later,
    pending,
    relabelled,
    singles,
    snapshot,
    terminating,
)
from simulation import Operator, check_converged, converge, world_of
from tpu_operator.api import names
from tpu_operator.planning.planner import plan
from tpu_operator.planning.pod import OwnerReference


def running(*groups, **spec):
    """A cluster that has converged."""
    world = world_of(*groups, **spec)
    operator = Operator(world)
    converge(operator)
    world.creates = world.deletes = 0
    return world, operator


def edit(world, operator, **fields):
    world.groups[0] |= fields
    world.edited()
    operator.see_spec()


def test_a_second_pass_on_a_stale_cache_creates_nothing_again_oc_01():
    world = world_of(group(replicas=3))
    operator = Operator(world)
    for _ in range(3):
        operator.run()
    assert (world.creates, world.deletes) == (1 + 3, 0)


def test_two_quick_scale_downs_subtract_terminating_pods_oc_03():
    world, operator = running(group(replicas=6))
    before = set(world.pods)
    for replicas in (5, 4):
        edit(world, operator, replicas=replicas)
        operator.run()
    converge(operator)
    assert (world.creates, world.deletes) == (0, 2)
    assert set(world.pods) < before


def test_a_named_pod_is_counted_once_when_replicas_drop_with_it_oc_04():
    plan = decide(cluster(group(replicas=63, delete=["w7"])), singles(64))
    assert (deleted(plan), created(plan)) == ({"w7"}, [])


def test_pending_workers_go_before_running_ones_oc_06():
    waiting = [pending(p, node=None) for p in singles(2, start=4)]
    assert deleted(decide(cluster(group(replicas=4)), [*singles(4), *waiting])) == {"w4", "w5"}


def test_two_groups_of_one_name_touch_no_pod_oc_07():
    plan = decide(cluster(group(replicas=1), group(replicas=3)), singles(2))
    assert plan.empty
    assert [b.reason for b in plan.blockers] == ["InvalidRayClusterSpec"]


@pytest.mark.parametrize(
    ("numbers", "want"),
    [
        pytest.param({"replicas": 10, "high": 4}, 4, id="OC-10: replicas above maxReplicas"),
        pytest.param({"replicas": None, "low": 2, "high": 5}, 2, id="OC-12a: no replicas"),
        pytest.param({"replicas": -1, "low": 2, "high": 5}, 2, id="OC-12c: negative replicas"),
        pytest.param({"replicas": 0, "low": 2, "high": 5}, 2, id="OC-12d: none"),
        pytest.param({"replicas": None, "low": None, "high": 5}, 0, id="OC-12: no minReplicas either"),
        pytest.param({"replicas": -1, "low": None, "high": None}, 0, id="OC-12: nothing but a negative number"),
        pytest.param({"replicas": 3, "hosts": None}, 3, id="OC-13: no numOfHosts"),
        pytest.param({"replicas": 3, "hosts": 0}, 3, id="OC-13: numOfHosts 0"),
        pytest.param({"replicas": 3, "hosts": -2}, 3, id="OC-13: negative numOfHosts"),
    ],
)
def test_the_number_of_pods_is_replicas_within_the_bounds_times_hosts(numbers, want):
    assert len(created(decide(cluster(group(**numbers))))) == want


def test_replicas_null_is_no_replicas_oc_12b():
    assert len(created(decide(cluster({**group(low=2), "replicas": None})))) == 2


@pytest.mark.parametrize("absent", [None, 0])
def test_an_absent_num_of_hosts_deletes_nobody_oc_13(absent):
    assert decide(cluster(group(replicas=3, hosts=absent)), singles(3)).empty


def test_a_pod_stuck_terminating_is_no_live_pod_oc_15():
    dead = terminating(singles(2)[1], -11)
    assert created(decide(cluster(group(replicas=2)), [singles(1)[0], dead])) == [("g", 2, (0,))]


def test_a_stuck_host_costs_its_slice_which_moves_to_another_index_oc_15():
    world, operator = running(group(replicas=2, hosts=4))
    victim = next(p for p in world.own() if p.labels.get(names.HOST_INDEX) == "2")
    world.stuck.add(victim.uid)
    world.delete(victim.uid)
    converge(operator)
    check_converged(operator)
    indices = {p.labels[names.REPLICA_INDEX] for p in world.own() if p.node_type == names.WORKER and not p.terminating}
    assert len(indices) == 2
    assert victim.labels[names.REPLICA_INDEX] not in indices
    assert (world.deletes, world.creates) == (4, 4)


def test_a_foreign_finalizer_freezes_nothing_oc_16():
    world, operator = running(group(replicas=3))
    victim = next(p for p in world.own() if p.node_type == names.WORKER)
    world.stuck.add(victim.uid)
    edit(world, operator, replicas=2, scaleStrategy={"workersToDelete": [victim.name]})
    converge(operator)
    edit(world, operator, replicas=5)
    converge(operator)
    check_converged(operator)
    assert (world.deletes, world.creates) == (1, 3)


def test_a_manifest_applied_again_kills_no_autoscaled_worker_oc_18():
    assert decide(cluster(group(replicas=1, high=10), autoscaling=True), singles(8)).empty


def test_pending_pods_count_and_the_maximum_holds_oc_19():
    world = world_of(group(replicas=1, high=8), autoscaling=True)
    operator = Operator(world)
    for replicas in range(1, 50):
        edit(world, operator, replicas=replicas)
        operator.see_pods()
        operator.run()
    assert (world.creates, world.deletes) == (1 + 8, 0)


def test_pods_of_the_same_name_in_another_namespace_are_not_counted_oc_21():
    """They are told apart by the owner's uid, as the informer's index does."""
    other = OwnerReference(uid="uid-of-the-other", kind=names.KIND, name="demo", controller=True)
    foreign = [relabelled(p, owner_references=(other,), namespace="team-b") for p in singles(3)]
    sight = snapshot(cluster(group(replicas=2)), [head()], foreign=foreign)
    assert len(created(plan(sight))) == 2
    assert deleted(plan(sight)) == set()


def test_pods_of_an_older_cluster_of_that_name_are_not_counted_oc_22():
    old = OwnerReference(uid="uid-of-the-old-one", kind=names.KIND, name="demo", controller=True)
    foreign = [terminating(relabelled(p, owner_references=(old,))) for p in singles(3)]
    decided = plan(snapshot(cluster(group(replicas=3)), [head()], foreign=foreign))
    assert (len(created(decided)), deleted(decided), decided.notices) == (3, set(), ())


def test_foreign_pods_with_our_labels_are_told_of_and_left_alone():
    foreign = [relabelled(p, owner_references=()) for p in singles(2)]
    decided = plan(snapshot(cluster(group(replicas=0)), [head()], foreign=foreign))
    assert decided.empty
    assert [n.reason for n in decided.notices] == ["ForeignPod", "ForeignPod"]


def test_the_worker_of_a_slice_differs_from_the_next_only_in_its_place_oc_09():
    """Planning gives a place and a name to each pod, and nothing else (the builders' tests show the rest)."""
    (action,) = decide(cluster(group(replicas=1, hosts=3))).actions
    assert [h.host for h in action.hosts] == [0, 1, 2]


def test_a_restart_in_the_middle_creates_what_is_missing_and_no_more_oc_24():
    world, operator = running(group(replicas=4))
    operator.restart()
    assert operator.run().empty
    edit(world, operator, replicas=6)
    operator.run(lambda number: None)
    operator.restart()
    operator.run()
    assert (world.creates, world.deletes) == (2, 0)


def test_time_alone_does_nothing():
    sight = snapshot(cluster(group(replicas=2, hosts=4)), [head(), *hosts(0), *hosts(1)])
    assert plan(later(sight, 360_000)).empty
