"""Public reports about slices of several hosts (group MH), as far as the planner decides: what must hold instead."""

from __future__ import annotations

import random

import pytest

from builders import (
    cluster,
    created,
    decide,
    deleted,
    failed,
    group,
    head,
    hosts,
    old_pods,
    reasons,
    singles,
    snapshot,
    terminating,
)
from simulation import Operator, check_converged, converge, slice_of, slot, world_of
from tpu_operator.api import names
from tpu_operator.planning.plan import CreateSlice, Reason
from tpu_operator.planning.planner import plan
from tpu_operator.resources.wanted import wanted_pods


def running(*groups, **spec):
    world = world_of(*groups, **spec)
    operator = Operator(world)
    converge(operator)
    world.creates = world.deletes = 0
    return world, operator


def workers(world):
    return [p for p in world.own() if p.node_type == names.WORKER]


def host_of(world, index, number):
    return next(p for p in workers(world) if slot(p) == ("g", str(index), str(number)))


def edit(world, **fields):
    world.groups[0] |= fields
    world.edited()


def test_pods_are_counted_and_not_replicas_mh_01_mh_34():
    of = cluster(group(replicas=2, hosts=4))
    assert wanted_pods(of.spec.worker_group_specs[0]) == 8
    assert len([h for a in decide(of).actions if isinstance(a, CreateSlice) for h in a.hosts]) == 8


def test_seven_of_eight_pods_never_become_eleven_mh_03():
    world, operator = running(group(replicas=2, hosts=4))
    lost = host_of(world, 1, 2)
    world.put(None, lost)
    converge(operator)
    check_converged(operator)
    assert (world.deletes, world.creates, len(workers(world))) == (3, 4, 8)


@pytest.mark.parametrize("how", ["deleted", "failed", "evicted"])
def test_a_lost_host_costs_its_slice_and_no_other_mh_04(how):
    world, operator = running(group(replicas=2, hosts=4))
    others = {p.uid for p in workers(world) if slot(p)[1] == "0"}
    lost = host_of(world, 1, 2)
    if how == "deleted":
        world.delete(lost.uid)
    else:
        world.fail(lost.uid, "Evicted" if how == "evicted" else None)
    converge(operator)
    check_converged(operator)
    now = workers(world)
    assert {p.uid for p in now if slot(p)[1] == "0"} == others
    assert len({slice_of(p) for p in now if slot(p)[1] == "1"}) == 1
    assert (world.deletes, world.creates) == (4, 4)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(2, 4, id="MH-06: more hosts"),
        pytest.param(4, 2, id="MH-07: fewer hosts"),
        pytest.param(1, 4, id="from one"),
    ],
)
def test_a_changed_num_of_hosts_replaces_slice_by_slice(before, after):
    world, operator = running(group(replicas=3, hosts=before))
    edit(world, numOfHosts=after)
    most_gone = 0
    for _ in range(100):
        operator.see_spec()
        operator.see_pods()
        operator.run()
        for uid in tuple(world.pods):
            world.recover(uid)
        ready = {slice_of(p) for p in workers(world) if p.ready and not p.terminating}
        most_gone = max(most_gone, 3 - len(ready))
        world.pass_time(10)
    check_converged(operator)
    assert len(workers(world)) == 3 * after
    assert most_gone == 1


def test_pods_from_before_the_labels_are_adopted_and_not_doubled_mh_09():
    decided = decide(cluster(group(replicas=1, hosts=4)), old_pods(4))
    assert decided.empty
    assert [n.reason for n in decided.notices] == ["AdoptedUnlabelledPods"]


def test_a_lost_pod_from_before_the_labels_costs_its_slice_mh_09():
    decided = decide(cluster(group(replicas=2, hosts=4)), [failed(old_pods(1)[0]), *old_pods(8)[1:]])
    assert deleted(decided) == {f"old{n}" for n in range(4)}


def test_the_index_of_a_removed_slice_is_used_again_mh_10():
    world, operator = running(group(replicas=3, hosts=2), autoscaling=True)
    edit(world, replicas=2, scaleStrategy={"workersToDelete": [host_of(world, 1, 0).name]})
    converge(operator)
    assert {slot(p)[1] for p in workers(world)} == {"0", "2"}
    kept = {p.uid for p in workers(world)}
    edit(world, replicas=3)
    converge(operator)
    assert {slot(p)[1] for p in workers(world)} == {"0", "1", "2"}
    assert kept < {p.uid for p in workers(world)}


def test_a_scale_down_takes_one_whole_slice_mh_12():
    decided = decide(cluster(group(replicas=1, hosts=4)), [*hosts(0), *hosts(1)])
    assert (deleted(decided), created(decided)) == ({p.name for p in hosts(1)}, [])


@pytest.mark.parametrize(
    ("replicas", "named", "gone"),
    [
        pytest.param(1, ["g-s1-h2"], hosts(1), id="one host of one slice"),
        pytest.param(0, ["g-s0-h0", "g-s1-h3"], (*hosts(0), *hosts(1)), id="one host of each"),
        pytest.param(1, ["g-s1-h2", "g-s1-h0"], hosts(1), id="two hosts of one slice count once"),
    ],
)
def test_a_named_host_takes_its_slice_along_mh_13(replicas, named, gone):
    of = cluster(group(replicas=replicas, hosts=4, delete=named), autoscaling=True)
    decided = decide(of, [*hosts(0), *hosts(1)])
    assert (deleted(decided), created(decided)) == ({p.name for p in gone}, [])


@pytest.mark.parametrize("size", [4, 64])
def test_host_numbers_are_given_and_not_counted_mh_15(size):
    assert created(decide(cluster(group(replicas=1, hosts=size)))) == [("g", 0, tuple(range(size)))]


def test_a_lagging_cache_gives_no_number_twice_mh_15():
    world = world_of(group(replicas=1, hosts=64))
    operator = Operator(world)
    operator.run()
    operator.run()
    assert sorted(int(slot(p)[2]) for p in workers(world)) == list(range(64))


def test_single_hosts_stay_host_zero_however_often_they_are_made_mh_16():
    world, operator = running(group(replicas=2))
    for _ in range(3):
        world.delete(workers(world)[0].uid)
        converge(operator)
    assert {slot(p) for p in workers(world)} == {("g", "0", "0"), ("g", "1", "0")}


def test_groups_count_apart_mh_18():
    assert created(decide(cluster(group("a", hosts=2), group("b", hosts=4)))) == [
        ("a", 0, (0, 1)),
        ("b", 0, (0, 1, 2, 3)),
    ]


def test_a_host_number_is_given_again_only_when_its_holder_is_gone_mh_21():
    slow = [terminating(p, 60) for p in hosts(0)]
    decided = decide(cluster(group(replicas=1, hosts=4)), slow)
    assert decided.empty
    assert decided.requeue_after == 70


def test_the_head_takes_no_part_in_the_numbering_mh_25():
    decided = plan(snapshot(cluster(group(replicas=1, hosts=4))))
    assert created(decided) == [("g", 0, (0, 1, 2, 3))]


def test_a_slice_has_one_name_and_two_slices_have_two_mh_27():
    made = [a for a in decide(cluster(group(replicas=2, hosts=2))).actions if isinstance(a, CreateSlice)]
    assert len({a.slice_name for a in made}) == 2


def test_late_deaths_of_an_old_incarnation_do_not_count_mh_30():
    world, operator = running(group(replicas=1, hosts=4))
    late = host_of(world, 0, 3)
    world.stuck.add(late.uid)
    world.fail(host_of(world, 0, 1).uid)
    converge(operator)
    check_converged(operator)
    world.change(late.uid, status=failed(late).status)
    converge(operator)
    world.release(late.uid)
    converge(operator)
    assert world.creates == 4


def test_a_slice_of_one_and_a_slice_of_four_take_the_same_path_mh_31():
    for size in (1, 4):
        (action,) = decide(cluster(group(replicas=1, hosts=size))).actions
        assert (action.reason, action.index, action.size, len(action.hosts)) == (Reason.SCALE_UP, 0, size, size)


def test_the_plan_does_not_depend_on_the_order_of_lists():
    pods = [
        *hosts(0),
        *hosts(1)[:3],
        *hosts(2, 2),
        *old_pods(5),
        *singles(2, of="x"),
        *singles(3, of="b"),
        head(),
        head("z"),
    ]
    of = cluster(group(replicas=3, hosts=4, delete=["g-s0-h1"]), group("b", 2))
    want = plan(snapshot(of, pods, foreign=singles(3, of="f")))
    for seed in range(10):
        shuffled = random.Random(seed)
        mixed = shuffled.sample(pods, len(pods))
        foreign = shuffled.sample(singles(3, of="f"), 3)
        assert plan(snapshot(of, mixed, foreign=foreign)) == want


def test_reasons_tell_why_a_slice_goes():
    pods = [*hosts(0)[:3], failed(hosts(0)[3], "Evicted")]
    (action,) = decide(cluster(group(replicas=1, hosts=4)), pods).actions
    assert (action.reason, action.detail) == (Reason.POD_FAILED, "phase Failed (Evicted)")
    assert reasons(decide(cluster(group(replicas=1, hosts=4)), hosts(0)[:3])) == {Reason.HOST_MISSING}
