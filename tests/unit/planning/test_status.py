"""Status from what was seen, planned and done."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from tpu_operator.api import names
from tpu_operator.api.raycluster import RayCluster
from tpu_operator.api.status import Condition
from tpu_operator.config import OperatorConfig
from tpu_operator.planning.memory import Backoff, Memory
from tpu_operator.planning.outcome import Outcome, Outcomes, Result
from tpu_operator.planning.plan import (
    Blocker,
    CreateHead,
    CreateSlice,
    DeleteHead,
    DeleteSlice,
    Hold,
    Plan,
    Reason,
    Waiting,
)
from tpu_operator.planning.pod import Pod
from tpu_operator.planning.snapshot import Observed, Snapshot
from tpu_operator.planning.status import changed, is_ours, next_status
from tpu_operator.resources.registry import ChildKey

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
READY = [{"type": "Ready", "status": "True"}]
NOT_READY = [{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "not ready"}]
PENDING = {"phase": "Pending"}
RUNNING = {"phase": "Running", "conditions": READY, "podIP": "10.0.0.1"}
UNREADY = {"phase": "Running", "conditions": NOT_READY, "podIP": "10.0.0.1"}
TEMPLATE = {"spec": {"containers": [{"name": "ray", "resources": {"limits": {"cpu": "1"}}}]}}


def pod(name: str, labels: dict[str, str], status: dict, **metadata: object) -> Pod:
    meta = {"name": name, "uid": name, "creationTimestamp": "2026-05-01T11:00:00Z", "labels": labels, **metadata}
    return msgspec.convert({"metadata": meta, "status": status}, Pod)


def head(status: dict = RUNNING, name: str = "demo-head", **metadata: object) -> Pod:
    return pod(name, {names.NODE_TYPE: "head", names.NODE_GROUP: "headgroup"}, status, **metadata)


def host(index: int, host_index: int, status: dict = RUNNING, group: str = "g", **metadata: object) -> Pod:
    labels = {
        names.NODE_TYPE: "worker",
        names.NODE_GROUP: group,
        names.REPLICA_NAME: f"{group}-{index}",
        names.REPLICA_INDEX: str(index),
        names.HOST_INDEX: str(host_index),
    }
    annotations = {names.NUM_OF_HOSTS: "2"}
    return pod(f"w-{group}-{index}-{host_index}", labels, status, annotations=annotations, **metadata)


def slices(count: int, status: dict = RUNNING) -> tuple[Pod, ...]:
    return tuple(host(i, h, status) for i in range(count) for h in range(2))


def service(**spec: object) -> dict:
    labels = {names.CLUSTER: "demo", names.NODE_TYPE: "head", names.IDENTIFIER: "demo-head"}
    return {"metadata": {"name": "demo-head-svc", "labels": labels}, "spec": {"clusterIP": "None", **spec}}


def manifest(replicas: int = 2, **spec: object) -> dict:
    group = {"groupName": "g", "replicas": replicas, "maxReplicas": 4, "numOfHosts": 2, "template": TEMPLATE}
    return {
        "metadata": {"name": "demo", "namespace": "team", "uid": "u", "generation": 3},
        "spec": {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [group], **spec},
    }


def snapshot(*pods: Pod, status=None, raw: dict | None = None, now=NOW, children=None, memory=None) -> Snapshot:
    cluster = RayCluster.parse(raw or manifest())
    if status is not None:
        cluster = replace(cluster, status=status)
    services = {ChildKey("Service", "demo-head-svc"): service()} if children is None else children
    return Snapshot(cluster, Observed(pods, children=services), memory or Memory(), OperatorConfig(), now, "n")


def status_of(*pods: Pod, plan: Plan | None = None, outcomes: Outcomes | None = None, **fields: object):
    return next_status(snapshot(*pods, **fields), plan or Plan(), outcomes or Outcomes())


def conditions(status) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in status.conditions}


def condition(status, kind: str) -> Condition:
    return next(c for c in status.conditions if c.type == kind)


WHOLE = (head(), *slices(2))


def test_a_fresh_cluster_tells_the_conditions_in_kuberays_order():
    assert [c.type for c in status_of().conditions] == [
        "HeadPodReady",
        "RayClusterProvisioned",
        "RayClusterSuspended",
        "RayClusterSuspending",
        "Ready",
        "Reconciling",
        "Stalled",
    ]


def test_ours_alone_tell_the_generation():
    told = {c.type for c in status_of(*WHOLE).conditions if c.observed_generation == 3}
    assert told == {"Ready", "Reconciling", "Stalled"}


def test_a_whole_cluster_is_ready_and_provisioned():
    status = status_of(*WHOLE)
    assert status.state == "ready"
    assert status.state_transition_times == {"ready": NOW}
    assert (status.desired_worker_replicas, status.ready_worker_replicas, status.available_worker_replicas) == (4, 4, 4)
    assert (status.min_worker_replicas, status.max_worker_replicas) == (0, 8)
    assert (status.desired_cpu, status.desired_tpu) == ("5", "0")
    assert status.observed_generation == 3
    assert conditions(status) == {
        "HeadPodReady": ("True", "HeadPodRunningAndReady"),
        "RayClusterProvisioned": ("True", "AllPodRunningAndReadyFirstTime"),
        "RayClusterSuspended": ("False", "RayClusterSuspended"),
        "RayClusterSuspending": ("False", "RayClusterSuspending"),
        "Ready": ("True", "AllPodsReady"),
        "Reconciling": ("False", "Idle"),
        "Stalled": ("False", "NoMistake"),
    }


@pytest.mark.parametrize(
    ("pods", "ready", "available", "groups"),
    [
        pytest.param((head(),), 0, 0, (0, 0, 0), id="ST-01 the head is no worker"),
        pytest.param((head(), *slices(1)), 2, 2, (1, 0, 0), id="half of the slices"),
        pytest.param((head(), *slices(1), host(1, 0, PENDING)), 2, 2, (1, 1, 0), id="a slice that forms"),
        pytest.param((head(), *slices(1), host(1, 0)), 3, 3, (1, 0, 1), id="a slice that lost a host"),
        pytest.param((head(), *slices(1), host(1, 0), host(1, 1, UNREADY)), 3, 4, (1, 1, 0), id="a host not ready"),
        pytest.param(
            (head(), *slices(1), host(1, 0), host(1, 1, deletionTimestamp="2026-05-01T11:59:00Z")),
            3,
            3,
            (1, 0, 1),
            id="quirk 47 a terminating host does not count",
        ),
        pytest.param((head(), *slices(1), host(1, 0), host(1, 1, {"phase": "Failed"})), 3, 3, (1, 0, 1), id="failed"),
        pytest.param((head(PENDING), *slices(2)), 4, 4, (2, 0, 0), id="the head alone is missing"),
        pytest.param((head(UNREADY), *slices(2)), 4, 4, (2, 0, 0), id="the head is not ready"),
        pytest.param(
            (head(deletionTimestamp="2026-05-01T11:59:00Z"), *slices(2)), 4, 4, (2, 0, 0), id="the head is leaving"
        ),
        pytest.param(slices(2), 4, 4, (2, 0, 0), id="no head"),
    ],
)
def test_an_incomplete_cluster_is_not_ready(pods, ready, available, groups):
    status = status_of(*pods)
    assert (status.ready_worker_replicas, status.available_worker_replicas) == (ready, available)
    (group,) = status.worker_groups
    assert (group.ready_slices, group.forming_slices, group.broken_slices) == groups
    assert (group.group_name, group.desired_slices) == ("g", 2)
    assert status.state == ""
    got = conditions(status)
    assert got["RayClusterProvisioned"] == ("False", "RayClusterPodsProvisioning")
    assert (got["Ready"][0], got["Reconciling"][0], got["Stalled"][0]) == ("False", "True", "False")


def test_a_surplus_slice_does_no_harm():
    assert status_of(head(), *slices(3, RUNNING)).state == "ready"


def test_running_without_a_ready_condition_counts_as_ready():
    bare = {"phase": "Running"}
    status = status_of(head(bare), *slices(2, bare))
    assert status.state == "ready"
    assert conditions(status)["HeadPodReady"] == ("False", "Unknown")


@pytest.mark.parametrize("lost", [slices(1), (*slices(1), host(1, 0, PENDING), host(1, 1, PENDING))])
def test_ready_is_taken_back_when_a_wanted_slice_is_lost(lost):
    first = status_of(*WHOLE)
    second = status_of(head(), *lost, status=first, now=LATER)
    assert second.state == ""
    assert conditions(second)["Ready"][0] == "False"
    assert conditions(second)["RayClusterProvisioned"][0] == "True"
    third = status_of(*WHOLE, status=second, now=LATER)
    assert (third.state, third.state_transition_times) == ("ready", {"ready": LATER})


def test_a_transient_error_does_not_take_ready_back():
    first = status_of(*WHOLE)
    action = CreateSlice("g", 2, "g-2", 2, (), Reason.SCALE_UP)
    failed = Outcomes((Outcome(action, Result.FAILED, "no answer from the API server"),))
    second = status_of(*WHOLE, status=first, outcomes=failed, now=LATER)
    assert (second.state, conditions(second)["Ready"][0]) == ("ready", "True")


def test_what_the_pass_did_is_told_at_once():
    created = Outcome(CreateHead("demo-head"), Result.DONE, created=(head(PENDING),))
    action = DeleteSlice("g", 1, "g-1", slices(2)[2:], Reason.SCALE_DOWN)
    deleted = Outcome(action, Result.DONE, deleted=slices(2)[2:])
    status = status_of(*slices(2), outcomes=Outcomes((created, deleted)))
    assert status.head.pod_name == "demo-head"
    assert status.ready_worker_replicas == 2


@pytest.mark.parametrize(
    ("pod_status", "want"),
    [
        pytest.param(RUNNING, ("True", "HeadPodRunningAndReady", ""), id="ready"),
        pytest.param(PENDING, ("False", "Unknown", ""), id="no condition yet"),
        pytest.param(UNREADY, ("False", "ContainersNotReady", "not ready"), id="not ready"),
        pytest.param(
            {
                **UNREADY,
                "containerStatuses": [
                    {"name": "a", "state": {"running": {}}},
                    {"name": "b", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}},
                    {"name": "c", "state": {"terminated": {"reason": "Error"}}},
                ],
            },
            ("False", "CrashLoopBackOff", "not ready; b: back-off"),
            id="the first container that does not run explains it",
        ),
        pytest.param(
            {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
                "containerStatuses": [
                    {"name": "b", "state": {"terminated": {"reason": "OOMKilled", "message": "big"}}}
                ],
            },
            ("False", "OOMKilled", "b: big"),
            id="no prefix without a message of the pod",
        ),
        pytest.param(
            {**UNREADY, "containerStatuses": [{"name": "b", "state": {"waiting": {"reason": "bad reason!"}}}]},
            ("False", "Unknown", "not ready; b: "),
            id="quirk 53 an illegal reason is Unknown",
        ),
        pytest.param(
            {**UNREADY, "containerStatuses": [{"name": "b", "state": {"waiting": {"reason": ""}}}]},
            ("False", "Unknown", "not ready; b: "),
            id="quirk 53 an empty reason is Unknown",
        ),
        pytest.param(
            {"phase": "Running", "conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeLost"}]},
            ("Unknown", "NodeLost", ""),
            id="the node is lost",
        ),
    ],
)
def test_head_pod_ready_copies_the_pods_own_condition(pod_status, want):
    told = condition(status_of(head(pod_status)), "HeadPodReady")
    assert (told.status, told.reason, told.message) == want


def test_no_head_and_a_leaving_head_are_told():
    assert conditions(status_of())["HeadPodReady"] == ("False", "HeadPodNotFound")
    leaving = head(deletionTimestamp="2026-05-01T11:59:00Z")
    assert conditions(status_of(leaving))["HeadPodReady"] == ("False", "HeadPodTerminating")


def test_two_heads_and_no_service_do_not_stop_the_status():
    status = status_of(head(PENDING, "demo-head-2"), head(), *slices(2), children={})
    assert (status.head.pod_name, status.head.service_name, status.endpoints) == ("demo-head", "", {})
    assert status.state == "ready"


@pytest.mark.parametrize(
    ("spec", "ip", "ports"),
    [
        pytest.param({}, "10.0.0.1", {}, id="headless: the pod's address"),
        pytest.param({"clusterIP": "10.9.9.9"}, "10.9.9.9", {}, id="an address of its own"),
        pytest.param({"clusterIP": ""}, "10.0.0.1", {}, id="no address yet"),
        pytest.param(
            {
                "ports": [
                    {"name": "client", "port": 10001, "targetPort": 10001},
                    {"name": "dashboard", "port": 80, "targetPort": 8265, "nodePort": 30001},
                    {"name": "serve", "port": 8000, "targetPort": "serve"},
                    {"port": 1},
                ]
            },
            "10.0.0.1",
            {"client": "10001", "dashboard": "30001", "serve": "serve"},
            id="named ports: node port, target port, text",
        ),
    ],
)
def test_head_addresses_and_endpoints(spec, ip, ports):
    old = replace(status_of(), endpoints={"gone": "1"})
    status = status_of(head(), status=old, children={ChildKey("Service", "demo-head-svc"): service(**spec)})
    assert status.endpoints == ports
    info = status.head
    assert (info.pod_name, info.pod_ip, info.service_name, info.service_ip) == (
        "demo-head",
        "10.0.0.1",
        "demo-head-svc",
        ip,
    )


def test_a_head_service_of_another_name_is_found_by_its_labels():
    other = {**service(), "metadata": {**service()["metadata"], "name": "mine"}}
    children = {ChildKey("Service", "mine"): other, ChildKey("Service", "demo-headless"): {"metadata": {}}}
    assert status_of(head(), children=children).head.service_name == "mine"


BLOCKER = Blocker("InvalidRayClusterSpec", "spec.x", "is wrong", "set x to 1")


def test_a_mistake_is_told_with_field_rule_and_fix():
    status = status_of(plan=Plan(blockers=(BLOCKER, replace(BLOCKER, field="spec.y"))))
    stalled = condition(status, "Stalled")
    assert (stalled.status, stalled.reason) == ("True", "InvalidRayClusterSpec")
    assert stalled.message == "spec.x: is wrong; set x to 1; spec.y: is wrong; set x to 1"
    assert conditions(status)["Reconciling"] == ("False", "Idle")
    assert conditions(status)["Ready"] == ("False", "Stalled")
    assert status.observed_generation == 3


def test_a_mistaken_edit_leaves_a_running_cluster_ready_by_its_pods():
    first = status_of(*WHOLE)
    raw = manifest(replicas=4)
    second = status_of(*WHOLE, status=first, raw=raw, plan=Plan(blockers=(BLOCKER,)), now=LATER)
    assert (second.state, second.desired_worker_replicas) == ("ready", 4)
    assert conditions(second)["Ready"] == ("False", "Stalled")
    third = status_of(head(), *slices(1), status=second, raw=raw, plan=Plan(blockers=(BLOCKER,)), now=LATER)
    assert (third.state, third.ready_worker_replicas) == ("", 2)


def test_a_mistake_in_one_group_does_not_look_busy_for_ever():
    raw = manifest()
    raw["spec"]["workerGroupSpecs"].append({"groupName": "a/b", "replicas": 1, "template": TEMPLATE})
    blocker = replace(BLOCKER, group="a/b")
    got = conditions(status_of(*WHOLE, raw=raw, plan=Plan(blockers=(blocker,))))
    assert (got["Stalled"][0], got["Reconciling"][0], got["Ready"][0]) == ("True", "False", "False")
    got = conditions(status_of(head(), raw=raw, plan=Plan(blockers=(blocker,))))
    assert (got["Stalled"][0], got["Reconciling"][0]) == ("True", "True")


@pytest.mark.parametrize("hold", list(Hold))
def test_a_cluster_that_is_not_ours_to_serve_keeps_its_status(hold):
    old = status_of(*WHOLE)
    assert status_of(status=old, plan=Plan(hold=hold), now=LATER) == old


def test_waiting_is_told():
    plan = Plan(waiting=(Waiting("group g", "the API server refused it", 5.0),))
    assert "group g waits: the API server refused it" in condition(status_of(plan=plan), "Reconciling").message


REFUSED = "pods is forbidden: exceeded quota: few-pods"
CREATE = CreateSlice("g", 0, "g-0", 2, (), Reason.SCALE_UP)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (CreateHead("demo-head"), "FailedCreateHeadPod"),
        (CREATE, "FailedCreateWorkerPod"),
        (DeleteHead(head(), Reason.POD_FAILED), "FailedDeleteHeadPod"),
        (DeleteSlice("g", 0, "g-0", (), Reason.SCALE_DOWN), "FailedDeleteWorkerPod"),
        (DeleteSlice("g", 0, "g-0", (), Reason.SUSPENDED), "FailedDeleteAllPods"),
        (DeleteHead(head(), Reason.UPGRADE), "FailedDeleteAllPods"),
    ],
)
@pytest.mark.parametrize("result", [Result.REFUSED, Result.FAILED])
def test_what_failed_is_told_with_kuberays_reason(action, reason, result):
    told = condition(status_of(outcomes=Outcomes((Outcome(action, result, REFUSED),))), "ReplicaFailure")
    assert (told.status, told.reason, told.message) == ("True", reason, f"{reason}\n{REFUSED}")


def test_replica_failure_lasts_until_a_create_works():
    refusal = Memory(refusals={"g": Backoff(1, LATER, REFUSED)})
    first = status_of(head(), outcomes=Outcomes((Outcome(CREATE, Result.REFUSED, REFUSED),)))
    waiting = status_of(head(), status=first, memory=refusal, now=LATER)
    assert condition(waiting, "ReplicaFailure") == condition(first, "ReplicaFailure")
    unsettled = status_of(head(), status=first, outcomes=Outcomes((Outcome(CREATE, Result.UNSETTLED),)), memory=refusal)
    assert condition(unsettled, "ReplicaFailure") == condition(first, "ReplicaFailure")
    done = status_of(head(), status=first, outcomes=Outcomes((Outcome(CREATE, Result.DONE),)), memory=refusal)
    assert "ReplicaFailure" not in conditions(done)


def test_two_failures_read_the_same_in_whatever_order_they_are_tried():
    other = replace(CREATE, group="h")
    memory = Memory(refusals={"g": Backoff(1, LATER, "a"), "h": Backoff(1, LATER, "b")})
    one = status_of(memory=memory, outcomes=Outcomes((Outcome(other, Result.REFUSED, "b"),)))
    two = status_of(memory=memory, outcomes=Outcomes((Outcome(CREATE, Result.REFUSED, "a"),)))
    assert condition(one, "ReplicaFailure") == condition(two, "ReplicaFailure")


def test_a_suspension_from_announcement_to_resumption():
    suspended = manifest(suspend=True)
    status = status_of(*WHOLE)
    status = status_of(*WHOLE, status=status, raw=suspended)
    got = conditions(status)
    assert (got["RayClusterSuspending"][0], got["RayClusterSuspended"][0], status.state) == ("True", "False", "ready")
    assert (got["Ready"], got["Reconciling"][0]) == (("False", "Suspending"), "True")

    status = status_of(status=status, raw=suspended, now=LATER)
    got = conditions(status)
    assert (got["RayClusterSuspending"][0], got["RayClusterSuspended"][0], status.state) == (
        "False",
        "True",
        "suspended",
    )
    assert status.state_transition_times == {"ready": NOW, "suspended": LATER}
    assert condition(status, "RayClusterProvisioned").message == "RayCluster has been suspended"
    assert (got["Ready"], got["Reconciling"][0], status.head.pod_name) == (("False", "Suspended"), "False", "")

    assert status_of(status=status, raw=suspended, now=LATER) == status

    status = status_of(status=status, now=LATER)
    got = conditions(status)
    assert (got["RayClusterSuspended"][0], status.state, got["Reconciling"][0]) == ("False", "", "True")
    assert status_of(*WHOLE, status=status).state == "ready"


def test_a_mistake_does_not_move_a_suspension():
    running = status_of(*WHOLE)
    status = status_of(*WHOLE, status=running, raw=manifest(suspend=True), plan=Plan(blockers=(BLOCKER,)))
    assert conditions(status)["RayClusterSuspending"][0] == "False"


def test_conditions_of_others_are_kept_and_known_as_such():
    foreign = Condition("example.com/Quota", "True", "Ok", "", NOW)
    status = status_of(status=replace(status_of(), conditions=(foreign,)), now=LATER)
    assert status.conditions[0] == foreign
    assert [is_ours(c) for c in status.conditions] == [False] + [True] * 7


def test_a_condition_keeps_its_time_until_its_status_flips():
    first = status_of(head(PENDING))
    second = status_of(head(UNREADY), status=first, now=LATER)
    third = status_of(head(), status=second, now=LATER)
    times = [condition(s, "HeadPodReady").last_transition_time for s in (first, second, third)]
    assert times == [NOW, NOW, LATER]


def test_the_same_sight_gives_the_same_status():
    first = status_of(*WHOLE)
    assert status_of(*reversed(WHOLE), status=first, now=LATER) == first
    assert changed(first, first) is None


def test_a_status_survives_the_way_through_the_api_server():
    first = status_of(*WHOLE, now=NOW.replace(microsecond=250_000))
    stored = RayCluster.parse({**manifest(), "status": json.loads(json.dumps(first.to_json()))}).status
    assert changed(stored, status_of(*WHOLE, status=stored, now=LATER)) is None


def test_last_update_time_moves_with_other_changes_only():
    first = status_of(*WHOLE)
    assert first.last_update_time == NOW
    assert changed(first, replace(first, last_update_time=LATER)) is None
    second = status_of(head(), status=first, now=LATER)
    assert second.last_update_time == LATER


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param({"state": "ready"}, {}, {"state": None}, id="an empty field is removed"),
        pytest.param({}, {"observed_generation": 4}, {"observedGeneration": 4}, id="quirk 49 the generation"),
        pytest.param({"desired_cpu": "1"}, {"desired_cpu": "2"}, {"desiredCPU": "2"}, id="quirk 49 resources"),
        pytest.param(
            {"endpoints": {"a": "1", "b": "2"}},
            {"endpoints": {"b": "3"}},
            {"endpoints": {"a": None, "b": "3"}},
            id="quirk 55 a port that is gone",
        ),
        pytest.param({"endpoints": {"a": "1"}}, {"endpoints": {"a": "1"}}, None, id="nothing"),
    ],
)
def test_the_patch_holds_what_differs(old, new, want):
    empty = RayCluster.parse({}).status
    assert changed(replace(empty, **old), replace(empty, **new)) == want


def test_a_changed_condition_takes_the_whole_list_along():
    old = status_of()
    patch = changed(old, replace(old, conditions=(*old.conditions, Condition("x", "True", "Y", "", NOW))))
    assert patch is not None
    assert [c["type"] for c in patch["conditions"]] == [*(c.type for c in old.conditions), "x"]


def test_the_text_of_a_condition_fits_the_crd():
    blockers = tuple(replace(BLOCKER, field=f"spec.{i}", message="m" * 1000) for i in range(50))
    assert len(condition(status_of(plan=Plan(blockers=blockers)), "Stalled").message) == 32768
