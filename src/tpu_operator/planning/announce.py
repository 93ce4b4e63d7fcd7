"""What a pass has to tell in Events: only what really happened, one a slice, and never the same each pass."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from tpu_operator.planning.outcome import Outcome, Outcomes, Result
from tpu_operator.planning.plan import Apply, CreateHead, CreateSlice, DeleteHead, DeleteSlice, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tpu_operator.planning.memory import Memory
    from tpu_operator.planning.plan import Plan
    from tpu_operator.planning.snapshot import Snapshot

FEW: Final = 3
"""Slices of a group that are told of one by one; more in one pass are told of in one sentence."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """One Event about the RayCluster; reasons and actions are KubeRay's."""

    reason: str
    action: str
    note: str
    warning: bool = False


def announcements(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> tuple[Announcement, ...]:
    """The Events of a pass, to be sent after the writes that they tell of."""
    return (
        *_blockers(plan, snapshot.memory),
        *_notices(plan, snapshot.memory),
        *_heads_and_children(snapshot, outcomes),
        *_slices(snapshot, outcomes),
        *_troubles(snapshot, outcomes),
    )


def _blockers(plan: Plan, memory: Memory) -> Iterator[Announcement]:
    """All mistakes of the object in one Event, told when they appear."""
    if not plan.blockers or all(str(b) in memory.announced for b in plan.blockers):
        return
    text = "; ".join(str(b) for b in plan.blockers)
    yield Announcement(plan.blockers[0].reason, "Validate", text, warning=True)


def _notices(plan: Plan, memory: Memory) -> Iterator[Announcement]:
    for notice in plan.notices:
        if notice.key not in memory.announced:
            yield Announcement(notice.reason, notice.action, notice.message, notice.warning)


def _heads_and_children(snapshot: Snapshot, outcomes: Outcomes) -> Iterator[Announcement]:
    namespace = snapshot.cluster.namespace
    for outcome in outcomes.items:
        if outcome.result is not Result.DONE:
            continue
        match outcome.action:
            case CreateHead(name=name):
                yield Announcement("CreatedHeadPod", "Create", f"Created head Pod {namespace}/{name}")
            case DeleteHead(pod=pod, reason=reason, detail=detail) if reason not in _BY_SPEC:
                yield Announcement("DeletedHeadPod", "Delete", f"Deleted head Pod {namespace}/{pod.name}; {detail}")
            case Apply(key=key, reason=Reason.CHILD_WANTED):
                noun = "service" if key.kind == "Service" else key.kind
                yield Announcement(f"Created{key.kind}", "Create", f"Created {noun} {namespace}/{key.name}")
            case _:
                pass
    yield from _emptied(snapshot, outcomes)


_BY_SPEC = frozenset({Reason.SUSPENDED, Reason.UPGRADE})


def _emptied(snapshot: Snapshot, outcomes: Outcomes) -> Iterator[Announcement]:
    """All pods deleted because the spec says so: one Event for all. Of an upgrade, the head goes last."""
    done = [o.action for o in outcomes.items if o.result is Result.DONE]
    suspended = any(isinstance(a, DeleteHead | DeleteSlice) and a.reason is Reason.SUSPENDED for a in done)
    upgraded = any(isinstance(a, DeleteHead) and a.reason is Reason.UPGRADE for a in done)
    for happened, cause in ((suspended, "suspension"), (upgraded, "spec change")):
        if happened:
            name = f"{snapshot.cluster.namespace}/{snapshot.cluster.name}"
            yield Announcement("DeletedPod", "Delete", f"Deleted Pods for RayCluster {name} due to {cause}")


def _slices(snapshot: Snapshot, outcomes: Outcomes) -> Iterator[Announcement]:
    created: dict[str, list[Outcome]] = defaultdict(list)
    deleted: dict[tuple[str, Reason], list[Outcome]] = defaultdict(list)
    for outcome in outcomes.items:
        match outcome.action:
            case CreateSlice(group=group) if outcome.created:
                created[group].append(outcome)
            case DeleteSlice(group=group, reason=reason) if outcome.deleted and reason not in _BY_SPEC:
                deleted[group, reason].append(outcome)
            case _:
                pass
    for group, items in created.items():
        yield from _told(items, _CREATED, group, snapshot.cluster.namespace)
    for (group, _), items in deleted.items():
        yield from _told(items, _DELETED, group, snapshot.cluster.namespace)


class _Deed(NamedTuple):
    reason: str
    action: str
    verb: str


_CREATED = _Deed("CreatedWorkerPod", "Create", "Created")
_DELETED = _Deed("DeletedWorkerPod", "Delete", "Deleted")


def _told(items: list[Outcome], deed: _Deed, group: str, namespace: str) -> Iterator[Announcement]:
    if len(items) > FEW:
        pods = sum(len(o.created) + len(o.deleted) for o in items)
        note = f"{deed.verb} {pods} worker Pods: {len(items)} slices of group {group}{_detail(items[0])}"
        yield Announcement(deed.reason, deed.action, note)
        return
    for outcome in items:
        names_of_one = sorted(p.name for p in (*outcome.created, *outcome.deleted))
        more = f" and {len(names_of_one) - 1} more hosts of its slice" if len(names_of_one) > 1 else ""
        note = f"{deed.verb} worker Pod {namespace}/{names_of_one[0]}{more}"
        why = f" for group {group}{_detail(outcome)}" if deed is _DELETED else ""
        yield Announcement(deed.reason, deed.action, note + why)


def _detail(outcome: Outcome) -> str:
    match outcome.action:
        case DeleteSlice(detail=detail) if detail:
            return f": {detail}"
        case _:
            return ""


def _troubles(snapshot: Snapshot, outcomes: Outcomes) -> Iterator[Announcement]:
    """Refusals, each once. Of refused creates the memory holds the text until they go through, for they pause."""
    told = {b.message for b in snapshot.memory.refusals.values()}
    seen = set(snapshot.memory.announced)
    for outcome in _refused(outcomes):
        key = trouble_key(outcome)
        if outcome.message not in told and key not in seen:
            seen.add(key)
            reason, action = _failure(outcome)
            yield Announcement(reason, action, f"{_what(snapshot, outcome)}: {outcome.message}", warning=True)


def trouble_key(outcome: Outcome) -> str:
    """What identifies a refusal over passes."""
    return f"{_failure(outcome)[0]}/{outcome.message}"


def _refused(outcomes: Outcomes) -> Iterable[Outcome]:
    return (o for o in outcomes.items if o.result is Result.REFUSED)


def _failure(outcome: Outcome) -> tuple[str, str]:
    match outcome.action:
        case CreateHead():
            return "FailedToCreateHeadPod", "Create"
        case CreateSlice():
            return "FailedToCreateWorkerPod", "Create"
        case DeleteHead():
            return "FailedToDeleteHeadPod", "Delete"
        case DeleteSlice():
            return "FailedToDeleteWorkerPod", "Delete"
        case Apply(key=key):
            return f"FailedToCreate{key.kind}", "Create"
        case _:
            return "FailedToUpdate", "Update"


def _what(snapshot: Snapshot, outcome: Outcome) -> str:
    namespace, name = snapshot.cluster.namespace, snapshot.cluster.name
    match outcome.action:
        case CreateHead():
            return f"Failed to create head Pod {namespace}/{name}-head-*"
        case CreateSlice(group=group):
            return f"Failed to create worker Pod for the cluster {namespace}/{name}, group {group}"
        case DeleteHead(pod=pod):
            return f"Failed to delete head Pod {namespace}/{pod.name}"
        case DeleteSlice(group=group):
            return f"Failed to delete worker Pods of group {group}"
        case Apply(key=key):
            return f"Failed to create {key.kind} {namespace}/{key.name}"
        case action:
            return f"Failed: {type(action).__name__} for {namespace}/{name}"
