"""What a pass has to tell in Events: only what really happened, one a slice, and never the same each pass.

Texts begin as KubeRay's do, so that what looks for its phrases finds them; what we have to add comes behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tpu_operator.planning.announcement import Announcement
from tpu_operator.planning.fate import fate
from tpu_operator.planning.nouns import NOUNS
from tpu_operator.planning.outcome import Outcomes, Result
from tpu_operator.planning.plan import Apply, CreateHead, DeleteChild, DeleteHead, DeleteSlice, Reason
from tpu_operator.planning.slice_news import told_of_slices
from tpu_operator.planning.troubles import troubles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.planning.plan import Plan
    from tpu_operator.planning.snapshot import Snapshot
    from tpu_operator.resources.registry import ChildKey


def announcements(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> tuple[Announcement, ...]:
    """The Events of a pass, to be sent after the writes that they tell of."""
    return (
        *_blockers(snapshot, plan),
        *_notices(snapshot, plan),
        *_heads_and_children(snapshot, outcomes),
        *_emptied(snapshot, outcomes),
        *told_of_slices(snapshot, outcomes),
        *troubles(snapshot, outcomes),
    )


def _of(snapshot: Snapshot) -> str:
    return f"{snapshot.cluster.namespace}/{snapshot.cluster.name}"


# -- mistakes and notices ----------------------------------------------------------------------------------------------

_INVALID: Final = {
    "InvalidRayClusterMetadata": "The RayCluster metadata is invalid",
    "InvalidRayClusterSpec": "The RayCluster spec is invalid",
}
_DOUBT: Final = "The RayCluster spec may not work as meant"


def _blockers(snapshot: Snapshot, plan: Plan) -> Iterator[Announcement]:
    """All mistakes of the object in one Event, told when they appear."""
    if not plan.blockers or all(str(b) in snapshot.memory.announced for b in plan.blockers):
        return
    reason = plan.blockers[0].reason
    opening = _INVALID.get(reason, "The RayCluster is invalid")
    text = "; ".join(str(b) for b in plan.blockers)
    yield Announcement(reason, "Validate", f"{opening} {_of(snapshot)}: {text}", warning=True)


def _notices(snapshot: Snapshot, plan: Plan) -> Iterator[Announcement]:
    """Each once while it holds. One with the reason of a mistake is a doubt, for the object is served."""
    for notice in plan.notices:
        if notice.key not in snapshot.memory.announced:
            opening = f"{_DOUBT} {_of(snapshot)}: " if notice.reason in _INVALID else ""
            yield Announcement(notice.reason, notice.action, opening + notice.message, notice.warning)


# -- the head, other children, all pods at once ------------------------------------------------------------------------


def _heads_and_children(snapshot: Snapshot, outcomes: Outcomes) -> Iterator[Announcement]:
    namespace = snapshot.cluster.namespace
    for outcome in outcomes.items:
        if outcome.result is not Result.DONE:
            continue
        match outcome.action:
            case CreateHead(name=name):
                yield Announcement("CreatedHeadPod", "Create", f"Created head Pod {namespace}/{name}")
            case DeleteHead(pod=pod, reason=reason, detail=detail) if reason not in _BY_SPEC:
                why = fate(pod) if reason in _LOST else detail
                yield Announcement("DeletedHeadPod", "Delete", f"Deleted head Pod {namespace}/{pod.name}; {why}")
            case Apply(key=key, reason=Reason.CHILD_WANTED):
                yield from _child(snapshot, key, _CREATE)
            case Apply(key=key) if key.kind in NOUNS and NOUNS[key.kind].updates:
                yield from _child(snapshot, key, _UPDATE)
            case DeleteChild(key=key):
                yield from _child(snapshot, key, _DELETE)
            case _:
                pass


class _Deed(NamedTuple):
    """The verb of an Event's action, and how it is told once it is done."""

    action: str
    done: str


_CREATE = _Deed("Create", "Created")
_UPDATE = _Deed("Update", "Updated")
_DELETE = _Deed("Delete", "Deleted")


def _child(snapshot: Snapshot, key: ChildKey, deed: _Deed) -> Iterator[Announcement]:
    if noun := NOUNS.get(key.kind):
        note = f"{deed.done} {noun.text} {snapshot.cluster.namespace}/{key.name}"
        yield Announcement(f"{deed.done}{noun.word}", deed.action, note)


_BY_SPEC = frozenset({Reason.SUSPENDED, Reason.UPGRADE, Reason.CLUSTER_DELETED})
_LOST = frozenset({Reason.POD_FAILED, Reason.RAY_CONTAINER_ENDED})


def _emptied(snapshot: Snapshot, outcomes: Outcomes) -> Iterator[Announcement]:
    """All pods deleted because the spec says so: one Event for all. Of an upgrade, the head goes last."""
    done = [o.action for o in outcomes.items if o.result is Result.DONE]
    if any(isinstance(a, DeleteHead | DeleteSlice) and a.reason is Reason.SUSPENDED for a in done):
        yield Announcement("DeletedPod", "Delete", f"Deleted Pods for RayCluster {_of(snapshot)} due to suspension")
    if any(isinstance(a, DeleteHead) and a.reason is Reason.UPGRADE for a in done):
        cause = "due to spec change with Recreate upgradeStrategy"
        yield Announcement("DeletedPod", "Delete", f"Deleted all Pods for RayCluster {_of(snapshot)} {cause}")
