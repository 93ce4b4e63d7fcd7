"""Events: what really happened, once, one a slice."""

from __future__ import annotations

import pytest
from msgspec import structs

from builders import NOW, cluster, group, head, hosts, singles, snapshot
from tpu_operator.planning.announce import announcements
from tpu_operator.planning.memory import Backoff, Memory
from tpu_operator.planning.outcome import Outcome, Outcomes, Result
from tpu_operator.planning.plan import (
    Apply,
    Blocker,
    CreateHead,
    CreateSlice,
    DeleteChild,
    DeleteHead,
    DeleteSlice,
    HostName,
    Notice,
    Plan,
    Reason,
)
from tpu_operator.planning.pod import ContainerState, ContainerStates, ContainerStatus, PodStatus
from tpu_operator.planning.remember import remember
from tpu_operator.resources.registry import ChildKey

HEAD_IS_LOST = (
    "Deleted head Pod team-a/h; Pod status: Running; Pod restart policy: Always; Ray container terminated status: nil"
)
SIGHT = snapshot(cluster(group(replicas=9, hosts=4)))


def create(index=0, of="g"):
    return CreateSlice(of, index, f"{of}-s{index}", 4, tuple(HostName(n, f"p{n}") for n in range(4)), Reason.SCALE_UP)


def made(index=0, of="g"):
    return Outcome(create(index, of), Result.DONE, created=hosts(index, of=of))


def gone(index=0, reason=Reason.SCALE_DOWN, detail="more slices than wanted", result=Result.DONE):
    action = DeleteSlice("g", index, f"g-s{index}", hosts(index), reason, detail)
    return Outcome(action, result, deleted=hosts(index) if result is Result.DONE else ())


def told(*outcomes, plan=None, sight=SIGHT):
    return [(a.reason, a.note) for a in announcements(sight, plan or Plan(), Outcomes(outcomes))]


@pytest.mark.parametrize(
    ("outcomes", "want"),
    [
        pytest.param([], [], id="nothing happened, nothing is told"),
        pytest.param(
            [made()],
            [("CreatedWorkerPod", "Created worker Pod team-a/g-s0-h0 (slice g-0, 4 hosts)")],
            id="one Event a slice",
        ),
        pytest.param(
            [made(n) for n in range(6)],
            [("CreatedWorkerPod", "Created worker Pod team-a/g-s0-h0, and 23 more of group g (6 slices)")],
            id="one sentence for many slices",
        ),
        pytest.param(
            [gone()],
            [
                (
                    "DeletedWorkerPod",
                    "Deleted worker Pod team-a/g-s0-h0 for group g: scaling down (slice g-0, 4 hosts)",
                )
            ],
            id="a deletion tells why",
        ),
        pytest.param(
            [gone(n) for n in range(6)],
            [
                (
                    "DeletedWorkerPod",
                    "Deleted worker Pod team-a/g-s0-h0 for group g: scaling down, and 23 more of group g (6 slices)",
                )
            ],
            id="many deletions are one sentence too",
        ),
        pytest.param(
            [gone(reason=Reason.WORKERS_TO_DELETE)],
            [
                (
                    "DeletedWorkerPod",
                    "Deleted worker Pod team-a/g-s0-h0 for group g: autoscaler scale-down request (slice g-0, 4 hosts)",
                )
            ],
            id="a wish of the autoscaler in the words that its users know",
        ),
        pytest.param(
            [gone(reason=Reason.HOST_MISSING, detail="3 of 4 hosts are there")],
            [
                (
                    "DeletedWorkerPod",
                    (
                        "Deleted worker Pod team-a/g-s0-h0 for group g: cleanup of incomplete multi-host group, "
                        "3 of 4 hosts are there (slice g-0, 4 hosts)"
                    ),
                )
            ],
            id="an incomplete slice",
        ),
        pytest.param(
            [gone(n, Reason.GROUP_SUSPENDED) for n in range(2)],
            [("DeletedWorkerPod", "Deleted all pods for suspended worker group g in RayCluster team-a/demo")],
            id="a suspended group is one Event",
        ),
        pytest.param([gone(result=Result.FAILED)], [], id="what did not work is not told as done"),
        pytest.param([Outcome(create(), Result.SKIPPED)], [], id="nor what was not tried"),
        pytest.param(
            [Outcome(CreateHead("h"), Result.DONE)], [("CreatedHeadPod", "Created head Pod team-a/h")], id="a head"
        ),
        pytest.param(
            [Outcome(DeleteHead(head("h"), Reason.POD_FAILED, "phase Failed"), Result.DONE, deleted=(head("h"),))],
            [
                (
                    "DeletedHeadPod",
                    HEAD_IS_LOST,
                )
            ],
            id="a lost head",
        ),
        pytest.param(
            [Outcome(Apply(ChildKey("Service", "s"), {}, Reason.CHILD_WANTED), Result.DONE)],
            [("CreatedService", "Created service team-a/s")],
            id="a new child",
        ),
        pytest.param(
            [Outcome(Apply(ChildKey("Service", "s"), {}, Reason.CHILD_CHANGED), Result.DONE)],
            [],
            id="a changed one not",
        ),
        pytest.param(
            [
                Outcome(Apply(ChildKey(kind, "x"), {}, Reason.CHILD_WANTED), Result.DONE)
                for kind in ("Role", "RoleBinding", "ServiceAccount", "Ingress", "Job", "Secret")
            ],
            [
                ("CreatedRole", "Created role team-a/x"),
                ("CreatedRoleBinding", "Created role binding team-a/x"),
                ("CreatedServiceAccount", "Created service account team-a/x"),
                ("CreatedIngress", "Created ingress team-a/x"),
                ("CreatedRedisCleanupJob", "Created Redis cleanup Job team-a/x"),
            ],
            id="children by the names that KubeRay gives them",
        ),
        pytest.param(
            [Outcome(Apply(ChildKey("Ingress", "i"), {}, Reason.CHILD_CHANGED), Result.DONE)],
            [("UpdatedIngress", "Updated ingress team-a/i")],
            id="but a changed ingress is told",
        ),
        pytest.param(
            [Outcome(DeleteChild(ChildKey("Ingress", "i"), "u"), Result.DONE)],
            [("DeletedIngress", "Deleted ingress team-a/i")],
            id="and one that is switched off",
        ),
        pytest.param(
            [Outcome(Apply(ChildKey("Service", "s"), {}, Reason.CHILD_CHANGED), Result.REFUSED, "immutable")],
            [("FailedToUpdateService", "Failed to update service team-a/s, immutable")],
            id="a child that is refused",
        ),
        pytest.param(
            [gone(n, Reason.SUSPENDED) for n in range(3)],
            [("DeletedPod", "Deleted Pods for RayCluster team-a/demo due to suspension")],
            id="a suspension is one Event",
        ),
        pytest.param([gone(0, Reason.UPGRADE)], [], id="an upgrade is told when the head goes, which is last"),
        pytest.param([gone(0, Reason.CLUSTER_DELETED)], [], id="who deletes a cluster knows that its pods go"),
        pytest.param(
            [Outcome(DeleteHead(head("h"), Reason.UPGRADE), Result.DONE, deleted=(head("h"),))],
            [
                (
                    "DeletedPod",
                    "Deleted all Pods for RayCluster team-a/demo due to spec change with Recreate upgradeStrategy",
                )
            ],
            id="and then once",
        ),
        pytest.param(
            [Outcome(create(n), Result.REFUSED, "quota") for n in range(3)],
            [("FailedToCreateWorkerPod", "Failed to create worker Pod for the cluster team-a/demo, quota (group g)")],
            id="one cause, one Event",
        ),
    ],
)
def test_events_tell_what_happened(outcomes, want):
    assert told(*outcomes) == want


def test_a_refusal_is_told_once_while_it_lasts():
    memory = Memory(1, refusals={"g": Backoff(1, NOW, "quota")})
    sight = snapshot(cluster(group()), memory=memory)
    assert told(Outcome(create(), Result.REFUSED, "quota"), sight=sight) == []
    assert len(told(Outcome(create(), Result.REFUSED, "another quota"), sight=sight)) == 1


def test_a_delete_that_is_refused_every_pass_is_told_once():
    outcomes = Outcomes((Outcome(gone().action, Result.REFUSED, "forbidden"),))
    sight = snapshot(cluster(group()), memory=remember(Memory(1), Plan(), outcomes, NOW))
    assert len(told(*outcomes.items)) == 1
    assert told(*outcomes.items, sight=sight) == []


def test_notices_and_mistakes_are_told_once():
    plan = Plan(
        notices=(Notice("key", "Odd", "something odd"),),
        blockers=(
            Blocker("InvalidRayClusterSpec", "spec.a", "is wrong", "fix it"),
            Blocker("Other", "spec.b", "is worse"),
        ),
    )
    text = "The RayCluster spec is invalid team-a/demo: spec.a: is wrong; fix it; spec.b: is worse"
    want = [("InvalidRayClusterSpec", text), ("Odd", "something odd")]
    assert told(plan=plan) == want
    sight = snapshot(cluster(group()), memory=remember(Memory(1), plan, Outcomes(), NOW))
    assert told(plan=plan, sight=sight) == []


FAILED = PodStatus(
    phase="Failed",
    reason="Evicted",
    container_statuses=(
        ContainerStatus("ray", state=ContainerStates(terminated=ContainerState(reason="Error", exit_code=1))),
    ),
)


@pytest.mark.parametrize(
    ("reason", "status", "want"),
    [
        (Reason.WORKERS_TO_DELETE, PodStatus(), "Deleted pod team-a/w0"),
        (Reason.SCALE_DOWN, PodStatus(), "Deleted Pod team-a/w0"),
        (
            Reason.POD_FAILED,
            FAILED,
            (
                "Deleted worker Pod team-a/w0; Pod status: Failed (Evicted); Pod restart policy: Always; "
                "Ray container terminated status: exit code 1, Error"
            ),
        ),
        (Reason.HOST_TERMINATING, PodStatus(), "Deleted worker Pod team-a/w0 for group g: why"),
    ],
)
def test_single_hosts_are_told_by_name_as_kuberay_does(reason, status, want):
    (pod,) = singles(1)
    pod = structs.replace(pod, status=status)
    action = DeleteSlice("g", 0, "w0", (pod,), reason, "why")
    sight = snapshot(cluster(group()))
    outcome = Outcome(action, Result.DONE, deleted=(pod,))
    assert told(outcome, sight=sight) == [("DeletedWorkerPod", want)]


def test_of_a_failed_slice_the_host_that_failed_is_named():
    first, second, *others = hosts(0)
    second = structs.replace(second, status=FAILED)
    action = DeleteSlice("g", 0, "g-s0", (first, second, *others), Reason.POD_FAILED, "phase Failed")
    ((_, note),) = told(Outcome(action, Result.DONE, deleted=action.pods))
    assert note.startswith(f"Deleted worker Pod team-a/{second.name} for group g: Pod status: Failed (Evicted); ")
    assert note.endswith("exit code 1, Error (slice g-0, 4 hosts)")


def test_a_created_single_host_is_told_by_name():
    action = CreateSlice("g", 0, "w0", 1, (HostName(0, "w0"),), Reason.SCALE_UP)
    outcome = Outcome(action, Result.DONE, created=singles(1))
    assert told(outcome, sight=snapshot(cluster(group()))) == [("CreatedWorkerPod", "Created worker Pod team-a/w0")]


def test_a_doubt_is_not_told_like_a_mistake():
    plan = Plan(notices=(Notice("key", "InvalidRayClusterSpec", "something odd", action="Validate"),))
    want = "The RayCluster spec may not work as meant team-a/demo: something odd"
    assert told(plan=plan) == [("InvalidRayClusterSpec", want)]
