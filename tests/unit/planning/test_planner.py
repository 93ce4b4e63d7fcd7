"""The order of the steps, and what keeps a pass from acting."""

from __future__ import annotations

import pytest
from msgspec import convert

from builders import (
    NOW,
    cluster,
    conditions,
    created,
    creates_head,
    deleted,
    group,
    head,
    host,
    hosts,
    reasons,
    relabelled,
    singles,
    snapshot,
    terminating,
)
from tpu_operator.api import names
from tpu_operator.config import OperatorConfig
from tpu_operator.planning.plan import Apply, DeleteHead, Hold, Reason, StampPod
from tpu_operator.planning.planner import plan
from tpu_operator.planning.pod import Pod, PodAnnotations
from tpu_operator.planning.upgrade import STAMP, recreate_hash
from tpu_operator.resources.pods.place import Place
from tpu_operator.resources.pods.worker import WorkerBlueprint

GONE = {"deletionTimestamp": "2026-03-01T11:00:00Z"}
BAD = group(low=3, high=1)
PODS = (head(), *hosts(0))


# -- what keeps a pass from acting -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "hold"),
    [
        pytest.param(cluster(group(), metadata=GONE), Hold.DELETING, id="being deleted"),
        pytest.param(
            cluster(BAD, metadata=GONE), Hold.DELETING, id="being deleted, and mistaken: deletion comes first"
        ),
        pytest.param(
            cluster(group(), managedBy="kueue.x-k8s.io/multikueue"), Hold.EXTERNALLY_MANAGED, id="managed elsewhere"
        ),
    ],
)
def test_a_cluster_that_is_not_ours_to_act_on_is_left_alone(of, hold):
    decided = plan(snapshot(of))
    assert (decided.hold, decided.actions, decided.blockers) == (hold, (), ())


def test_our_own_name_in_managed_by_is_ours():
    assert creates_head(plan(snapshot(cluster(managedBy="ray.io/kuberay-operator"))))


def test_a_mistake_stops_everything_and_is_told():
    decided = plan(snapshot(cluster(BAD), [*PODS, *singles(9)]))
    assert decided.empty
    assert [b.field for b in decided.blockers] == ["spec.workerGroupSpecs[0].minReplicas"]


def test_a_mistake_of_one_group_holds_up_that_group_only():
    wrong = group("Not_A_Pod_Name", 1)
    decided = plan(snapshot(cluster(wrong, group("b", 1)), [head(), *singles(3, of="Not_A_Pod_Name")]))
    assert [b.group for b in decided.blockers] == ["Not_A_Pod_Name"]
    assert (deleted(decided), created(decided)) == (set(), [("b", 0, (0,))])


# -- suspension --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suspend", "stored", "pods", "gone", "again"),
    [
        pytest.param(True, (), PODS, False, 0.2, id="a suspension is stored before the first pod goes"),
        pytest.param(True, ("RayClusterSuspending",), PODS, True, 5.0, id="then the pods go"),
        pytest.param(False, ("RayClusterSuspending",), PODS, True, 5.0, id="also if it was called off meanwhile"),
        pytest.param(True, ("RayClusterSuspending",), (), False, None, id="when they are gone nothing more happens"),
        pytest.param(False, ("RayClusterSuspending",), (), False, 0.2, id="unless it is to be resumed"),
        pytest.param(True, ("RayClusterSuspended",), (), False, None, id="a suspended cluster rests"),
        pytest.param(True, ("RayClusterSuspended",), PODS, True, None, id="a late pod goes"),
    ],
)
def test_a_suspension_goes_step_by_step(suspend, stored, pods, gone, again):
    decided = plan(snapshot(cluster(group(hosts=4), suspend=suspend, status=conditions(*stored)), pods))
    assert deleted(decided) == ({p.name for p in pods} if gone else set())
    assert reasons(decided) <= {Reason.SUSPENDED}
    assert (created(decided), creates_head(decided)) == ([], False)
    assert decided.requeue_after == again


@pytest.mark.parametrize("suspend", [False, None])
def test_a_resumed_cluster_starts_in_the_same_pass(suspend):
    spec = {} if suspend is None else {"suspend": suspend}
    decided = plan(snapshot(cluster(group(replicas=2, hosts=4), status=conditions("RayClusterSuspended"), **spec)))
    assert creates_head(decided)
    assert len(created(decided)) == 2


# -- upgrade -----------------------------------------------------------------------------------------------------------

RECREATE = cluster(group(hosts=4), upgradeStrategy={"type": "Recreate"})


def stamped(version: str | None, digest: str | None) -> Pod:
    return head(annotations=PodAnnotations(kuberay_version=version, recreate_hash=digest))


def test_a_changed_spec_recreates_the_workers_first_and_the_head_last():
    old = stamped(STAMP, "of another spec")
    first = plan(snapshot(RECREATE, [old, *hosts(0), *singles(1, of="removed")]))
    assert deleted(first) == {p.name for p in (*hosts(0), *singles(1, of="removed"))}
    second = plan(snapshot(RECREATE, [old, *map(terminating, hosts(0))]))
    assert (deleted(second), reasons(second)) == ({old.name}, {Reason.UPGRADE})
    third = plan(snapshot(RECREATE, [terminating(old), *map(terminating, hosts(0))]))
    assert third.empty


@pytest.mark.parametrize(
    ("of", "seen"),
    [
        pytest.param(RECREATE, stamped(STAMP, recreate_hash(RECREATE)), id="made from this spec"),
        pytest.param(RECREATE, stamped(None, None), id="without a stamp"),
        pytest.param(cluster(group(hosts=4)), stamped(STAMP, "of another spec"), id="without the strategy"),
    ],
)
def test_a_head_stays_that_was(of, seen):
    assert plan(snapshot(of, [seen, *hosts(0)])).empty


def test_a_head_of_another_version_is_stamped_and_not_recreated():
    (action,) = plan(snapshot(RECREATE, [stamped("v1.6.0", "of another spec"), *hosts(0)])).actions
    assert isinstance(action, StampPod)
    assert action.annotations == {names.RECREATE_HASH: recreate_hash(RECREATE), names.KUBERAY_VERSION: STAMP}


def test_scaling_is_no_change_of_the_spec():
    bigger = cluster(group(replicas=9, hosts=4, delete=["x"]), upgradeStrategy={"type": "Recreate"})
    assert recreate_hash(bigger) == recreate_hash(RECREATE)


# -- the plan as a value -----------------------------------------------------------------------------------------------


def test_a_converged_cluster_has_an_empty_plan():
    decided = plan(
        snapshot(
            cluster(group(replicas=2, hosts=4), group("b", 3)), [head(), *hosts(0), *hosts(1), *singles(3, of="b")]
        )
    )
    assert (decided.actions, decided.waiting, decided.requeue_after) == ((), (), None)


def test_the_same_snapshot_gives_the_same_plan_and_another_nonce_only_other_names():
    of = cluster(group(replicas=2, hosts=4))
    assert plan(snapshot(of)) == plan(snapshot(of))
    one, two = (plan(snapshot(of, nonce=nonce)) for nonce in ("1", "2"))
    assert one != two
    assert created(one) == created(two)


def test_missing_children_are_applied_before_any_pod_needs_them():
    from dataclasses import replace

    from tpu_operator.planning.snapshot import Observed

    sight = replace(snapshot(cluster(group(replicas=1, hosts=4))), observed=Observed())
    kinds = [a.key.kind for a in plan(sight).actions if isinstance(a, Apply)]
    assert kinds.count("Service") == 2


def test_deleting_everything_spares_what_is_on_its_way_out():
    pods = [head(), terminating(head("old")), *hosts(0)[:2], *map(terminating, hosts(0)[2:])]
    decided = plan(snapshot(cluster(group(hosts=4), suspend=True, status=conditions("RayClusterSuspending")), pods))
    assert deleted(decided) == {head().name, "g-s0-h0", "g-s0-h1"}
    assert len([a for a in decided.actions if isinstance(a, DeleteHead)]) == 1


# -- the pods that tests use -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 4])
def test_pods_of_these_tests_look_to_the_planner_like_those_that_the_operator_builds(size):
    of = cluster(group(hosts=size))
    blueprint = WorkerBlueprint.of(of, of.spec.worker_group_specs[0], OperatorConfig())
    built = convert(blueprint.pod(Place("s", 2, size - 1, size), "p"), Pod)
    mine = host("s", 2, size - 1, size=size, name="p")
    keys = (names.CLUSTER, names.NODE_TYPE, names.NODE_GROUP, names.REPLICA_NAME, names.REPLICA_INDEX, names.HOST_INDEX)
    assert {k: built.labels.get(k) for k in keys} == {k: mine.labels.get(k) for k in keys}
    sizes = [p.metadata.annotations.num_of_hosts if p.metadata.annotations else None for p in (built, mine)]
    assert sizes[0] == sizes[1]
    assert built.spec.containers[0] == mine.spec.containers[0]
    assert built.controller() == relabelled(mine, creation_timestamp=NOW).controller()
