"""Public reports about workersToDelete and the autoscaler's contract (group WD): what must hold instead."""

from __future__ import annotations

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
    pending,
    reasons,
    relabelled,
    singles,
    snapshot,
    terminating,
)
from simulation import Operator, converge, world_of
from tpu_operator.api import names
from tpu_operator.planning.plan import Reason
from tpu_operator.planning.planner import plan


def autoscaled(*groups, **spec):
    return cluster(*groups, autoscaling=True, **spec)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(failed, id="failed"),
        pytest.param(pending, id="pending"),
        pytest.param(lambda p: failed(p, phase="Unknown"), id="unknown"),
    ],
)
def test_a_named_pod_goes_in_any_phase_wd_01(change):
    pods = [change(singles(1)[0]), *singles(2, start=1)]
    decided = decide(autoscaled(group(replicas=2, delete=["w0"])), pods)
    assert (deleted(decided), created(decided), reasons(decided)) == ({"w0"}, [], {Reason.WORKERS_TO_DELETE})


def test_names_of_pods_that_are_gone_do_nothing_for_ever_wd_02():
    listed = ["demo-g-worker-aaaaa"]
    assert decide(autoscaled(group(replicas=2, delete=listed)), singles(2)).empty
    assert decide(autoscaled(group(replicas=2, delete=listed)), singles(2)).notices == ()


def test_a_name_that_stays_after_its_pod_is_gone_never_comes_back_wd_02():
    world = world_of(group(replicas=2), autoscaling=True)
    operator = Operator(world)
    converge(operator)
    victim = next(p.name for p in world.own() if p.node_type == names.WORKER)
    world.groups[0]["scaleStrategy"] = {"workersToDelete": [victim]}
    world.edited()
    for _ in range(3):
        operator.restart()
        converge(operator)
    assert (world.creates, world.deletes) == (1 + 2 + 1, 1)


def test_a_named_worker_goes_though_another_died_meanwhile_wd_04():
    decided = decide(autoscaled(group(replicas=2, delete=["w0"])), [singles(1)[0], singles(3)[2]])
    assert deleted(decided) == {"w0"}
    waiting = created(decided) or [w.what for w in decided.waiting]
    assert len(waiting) == 1


@pytest.mark.parametrize(
    ("autoscaling", "left"), [pytest.param(True, 4, id="autoscaler on"), pytest.param(False, 2, id="autoscaler off")]
)
def test_fewer_names_than_the_drop_wd_05(autoscaling, left):
    gone = deleted(decide(cluster(group(replicas=2, delete=["w3"]), autoscaling=autoscaling), singles(5)))
    assert "w3" in gone
    assert 5 - len(gone) == left


def test_names_that_are_not_ours_delete_nothing_and_are_told_once_each_wd_07():
    stranger = relabelled(singles(1, of="x")[0], owner_references=())
    of = autoscaled(group(replicas=1, delete=["demo-head", "b-w0", "x-w0", "postgres-0"]), group("b", 1))
    sight = snapshot(of, [head("demo-head"), *singles(1), *singles(1, of="b")], foreign=[stranger])
    decided = plan(sight)
    assert deleted(decided) == set()
    told = [n for n in decided.notices if n.reason == "IgnoredWorkersToDelete"]
    assert len({n.key for n in told}) == len(told) == 4


def test_a_name_twice_counts_once_wd_08():
    decided = decide(autoscaled(group(replicas=2, delete=["w0", "w0"])), singles(3))
    assert (deleted(decided), created(decided)) == ({"w0"}, [])


def test_a_named_pod_that_is_terminating_is_not_asked_again_wd_08():
    decided = decide(autoscaled(group(replicas=2, delete=["w0"])), [terminating(singles(1)[0]), *singles(2, start=1)])
    assert decided.empty


def test_missing_replicas_are_accepted_wd_10():
    assert decide(autoscaled(group(replicas=None)), singles(4)).empty


def test_a_lower_number_without_names_kills_nobody_wd_11():
    assert decide(autoscaled(group(replicas=1)), singles(4)).empty


def test_names_in_a_suspended_group_are_no_error_wd_13():
    decided = decide(cluster(group(replicas=3, suspend=True, delete=["w0"])), singles(3))
    assert (deleted(decided), reasons(decided)) == ({"w0", "w1", "w2"}, {Reason.GROUP_SUSPENDED})
    assert decided.blockers == ()


def test_a_suspended_group_beside_the_autoscaler_is_a_mistake_and_deletes_nothing_wd_13():
    decided = decide(autoscaled(group(replicas=3, suspend=True)), singles(3))
    assert deleted(decided) == set()
    assert decided.blockers


# -- invariants of the autoscaler's contract ---------------------------------------------------------------------------


def test_names_do_not_block_each_other_i4():
    decided = decide(autoscaled(group(replicas=0, delete=["nobody", "w0", "w2"])), singles(3))
    assert deleted(decided) == {"w0", "w2"}


def test_the_maximum_lowered_below_what_runs_deletes_nobody_i11():
    assert decide(autoscaled(group(replicas=8, high=2)), singles(8)).empty


def test_a_name_takes_the_slice_along_and_the_count_follows_i13():
    pods = [*hosts(0), *hosts(1), *hosts(2)]
    decided = decide(autoscaled(group(replicas=1, hosts=4, delete=["g-s0-h1", "g-s2-h3"])), pods)
    assert deleted(decided) == {p.name for p in (*hosts(0), *hosts(2))}
    assert created(decided) == []


def test_a_named_slice_is_replaced_if_the_number_says_so_i2():
    decided = decide(autoscaled(group(replicas=1, delete=["w0"])), singles(1))
    assert deleted(decided) == {"w0"}
    assert [w.what for w in decided.waiting] == ["slice g-0"]


def test_suspended_clusters_leave_names_alone_i18():
    world = world_of(group(replicas=1), autoscaling=True)
    operator = Operator(world)
    converge(operator)
    victim = next(p.name for p in world.own() if p.node_type == names.WORKER)
    world.groups[0]["scaleStrategy"] = {"workersToDelete": [victim]}
    world.spec["suspend"] = True
    world.edited()
    converge(operator)
    assert world.own() == ()
    world.spec["suspend"] = False
    world.edited()
    converge(operator)
    assert len(world.own()) == 2


def test_pods_that_never_register_are_not_collected_i27():
    assert decide(autoscaled(group(replicas=1)), [pending(singles(1)[0])]).empty


def test_an_empty_list_of_groups_is_a_cluster_of_a_head_i28():
    assert decide(autoscaled()).empty
