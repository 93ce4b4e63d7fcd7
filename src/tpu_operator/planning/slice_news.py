"""Events about slices: one for each, or one for all where there are many."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.planning.announcement import Announcement
from tpu_operator.planning.fate import ended, fate
from tpu_operator.planning.plan import CreateSlice, DeleteSlice, Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.planning.outcome import Outcome, Outcomes
    from tpu_operator.planning.pod import Pod
    from tpu_operator.planning.snapshot import Snapshot

FEW: Final = 5
"""Slices of a group that are told of one by one; more in one pass are told of in one sentence."""

_BY_SPEC = frozenset({Reason.SUSPENDED, Reason.UPGRADE, Reason.CLUSTER_DELETED})
"""Reasons for which all pods go: told of in one Event elsewhere, or not at all, if whoever did it knows."""


def told_of_slices(snapshot: Snapshot, outcomes: Outcomes) -> Iterator[Announcement]:
    """Events about slices that were created or deleted."""
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
        texts = [f"Created worker Pod {snapshot.cluster.namespace}/{o.created[0].name}" for o in items]
        yield from _told(snapshot, group, "CreatedWorkerPod", "Create", list(zip(items, texts, strict=True)))
    for (group, reason), items in deleted.items():
        if reason is Reason.GROUP_SUSPENDED:
            cluster = f"{snapshot.cluster.namespace}/{snapshot.cluster.name}"
            note = f"Deleted all pods for suspended worker group {group} in RayCluster {cluster}"
            yield Announcement("DeletedWorkerPod", "Delete", note)
            continue
        texts = [_deleted(snapshot, group, reason, o) for o in items]
        yield from _told(snapshot, group, "DeletedWorkerPod", "Delete", list(zip(items, texts, strict=True)))


def _told(
    snapshot: Snapshot, group: str, reason: str, action: str, items: list[tuple[Outcome, str]]
) -> Iterator[Announcement]:
    """One Event a slice, or one in all if there are many; each begins with the text about its first pod."""
    slices = _multi_host(snapshot, group)
    if len(items) > FEW:
        pods = sum(_hosts(outcome) for outcome, _ in items)
        more = f", and {pods - 1} more of group {group}" + (f" ({len(items)} slices)" if slices else "")
        yield Announcement(reason, action, items[0][1] + more)
        return
    for outcome, text in items:
        yield Announcement(reason, action, text + (_slice(outcome) if slices or _hosts(outcome) > 1 else ""))


def _multi_host(snapshot: Snapshot, group: str) -> bool:
    return any(g.group_name == group and g.hosts > 1 for g in snapshot.cluster.spec.worker_group_specs)


def _hosts(outcome: Outcome) -> int:
    return len(outcome.created) + len(outcome.deleted)


def _slice(outcome: Outcome) -> str:
    hosts = _hosts(outcome)
    size = "1 host" if hosts == 1 else f"{hosts} hosts"
    match outcome.action:
        case CreateSlice(group=group, index=int(index)) | DeleteSlice(group=group, index=int(index)):
            return f" (slice {group}-{index}, {size})"
        case _:
            return f" ({size})"


_FAILED = frozenset({Reason.POD_FAILED, Reason.RAY_CONTAINER_ENDED})
_INCOMPLETE = frozenset({Reason.HOST_TERMINATING, Reason.HOST_MISSING, Reason.CREATE_REFUSED})


def _deleted(snapshot: Snapshot, group: str, reason: Reason, outcome: Outcome) -> str:
    """What is told of the first pod of a slice that was deleted; of a failed slice, that is the pod that failed."""
    pod = _culprit(snapshot, outcome.deleted, reason)
    name = f"{snapshot.cluster.namespace}/{pod.name}"
    detail = outcome.action.detail if isinstance(outcome.action, DeleteSlice) else ""
    if not _multi_host(snapshot, group):
        return _deleted_single(name, group, reason, pod, detail)
    if reason in _FAILED:
        detail = fate(pod)
    elif reason in _INCOMPLETE:
        detail = f"cleanup of incomplete multi-host group, {detail}"
    return f"Deleted worker Pod {name} for group {group}: {_ASKED_FOR.get(reason, detail)}"


_ASKED_FOR: Final = {
    Reason.WORKERS_TO_DELETE: "autoscaler scale-down request",
    Reason.SCALE_DOWN: "scaling down",
}


def _deleted_single(name: str, group: str, reason: Reason, pod: Pod, detail: str) -> str:
    """KubeRay's spelling tells a named worker (`pod`) from a surplus one (`Pod`)."""
    if reason is Reason.WORKERS_TO_DELETE:
        return f"Deleted pod {name}"
    if reason is Reason.SCALE_DOWN:
        return f"Deleted Pod {name}"
    if reason in _FAILED:
        return f"Deleted worker Pod {name}; {fate(pod)}"
    return f"Deleted worker Pod {name} for group {group}: {detail}"


def _culprit(snapshot: Snapshot, pods: tuple[Pod, ...], reason: Reason) -> Pod:
    """The pod for whose sake the slice goes: the failed, ended or named one, else its first host."""
    first = min(pods, key=lambda p: (p.label_number(names.HOST_INDEX) or 0, p.name))
    match reason:
        case Reason.POD_FAILED:
            return next((p for p in pods if p.terminal), first)
        case Reason.RAY_CONTAINER_ENDED:
            return next((p for p in pods if ended(p)), first)
        case Reason.WORKERS_TO_DELETE:
            listed = {n for g in snapshot.cluster.spec.worker_group_specs for n in g.workers_to_delete}
            return next((p for p in pods if p.name in listed), first)
        case _:
            return first
