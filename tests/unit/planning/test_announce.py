"""Events: what really happened, once, one a slice."""

from __future__ import annotations

import pytest

from builders import NOW, cluster, group, head, hosts, singles, snapshot
from tpu_operator.planning.announce import announcements
from tpu_operator.planning.memory import Backoff, Memory
from tpu_operator.planning.outcome import Outcome, Outcomes, Result
from tpu_operator.planning.plan import (
    Apply,
    Blocker,
    CreateHead,
    CreateSlice,
    DeleteHead,
    DeleteSlice,
    HostName,
    Notice,
    Plan,
    Reason,
)
from tpu_operator.planning.remember import remember
from tpu_operator.resources.registry import ChildKey

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
            [("CreatedWorkerPod", "Created worker Pod team-a/g-s0-h0 and 3 more hosts of its slice")],
            id="one Event a slice",
        ),
        pytest.param(
            [made(n) for n in range(4)],
            [("CreatedWorkerPod", "Created 16 worker Pods: 4 slices of group g")],
            id="one sentence for many slices",
        ),
        pytest.param(
            [gone()],
            [
                (
                    "DeletedWorkerPod",
                    "Deleted worker Pod team-a/g-s0-h0 and 3 more hosts of its slice for group g: more slices than wanted",
                )
            ],
            id="a deletion tells why",
        ),
        pytest.param([gone(result=Result.FAILED)], [], id="what did not work is not told as done"),
        pytest.param([Outcome(create(), Result.SKIPPED)], [], id="nor what was not tried"),
        pytest.param(
            [Outcome(CreateHead("h"), Result.DONE)], [("CreatedHeadPod", "Created head Pod team-a/h")], id="a head"
        ),
        pytest.param(
            [Outcome(DeleteHead(head("h"), Reason.POD_FAILED, "phase Failed"), Result.DONE, deleted=(head("h"),))],
            [("DeletedHeadPod", "Deleted head Pod team-a/h; phase Failed")],
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
            [gone(n, Reason.SUSPENDED) for n in range(3)],
            [("DeletedPod", "Deleted Pods for RayCluster team-a/demo due to suspension")],
            id="a suspension is one Event",
        ),
        pytest.param([gone(0, Reason.UPGRADE)], [], id="an upgrade is told when the head goes, which is last"),
        pytest.param(
            [Outcome(DeleteHead(head("h"), Reason.UPGRADE), Result.DONE, deleted=(head("h"),))],
            [("DeletedPod", "Deleted Pods for RayCluster team-a/demo due to spec change")],
            id="and then once",
        ),
        pytest.param(
            [Outcome(create(n), Result.REFUSED, "quota") for n in range(3)],
            [("FailedToCreateWorkerPod", "Failed to create worker Pod for the cluster team-a/demo, group g: quota")],
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
    want = [("InvalidRayClusterSpec", "spec.a: is wrong; fix it; spec.b: is worse"), ("Odd", "something odd")]
    assert told(plan=plan) == want
    sight = snapshot(cluster(group()), memory=remember(Memory(1), plan, Outcomes(), NOW))
    assert told(plan=plan, sight=sight) == []


def test_single_hosts_are_told_by_name():
    action = CreateSlice("g", 0, "w0", 1, (HostName(0, "w0"),), Reason.SCALE_UP)
    assert told(Outcome(action, Result.DONE, created=singles(1))) == [
        ("CreatedWorkerPod", "Created worker Pod team-a/w0")
    ]
