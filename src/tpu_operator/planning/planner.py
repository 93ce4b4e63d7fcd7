"""The heart: what to do next, from a snapshot, as a value. Pure, total, deterministic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.planning.children import plan_children
from tpu_operator.planning.heads import heads_of, plan_head
from tpu_operator.planning.plan import Action, DeleteHead, DeleteSlice, Hold, Notice, Part, Plan, Reason, Waiting
from tpu_operator.planning.slices import partition
from tpu_operator.planning.suspend import step_of_suspension
from tpu_operator.planning.upgrade import outdated, restamp
from tpu_operator.planning.validation import validate, warnings
from tpu_operator.planning.workers import plan_workers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.planning.pod import Pod
    from tpu_operator.planning.snapshot import Snapshot
    from tpu_operator.planning.suspend import SuspendStep

OPERATOR = "ray.io/kuberay-operator"
"""The value of spec.managedBy that means an operator in this cluster; anything else is somebody else's business."""

SUSPENSION = 0.2
"""Seconds after which a suspension goes on: its steps are stored in the status, which wakes nobody."""

DRAINING = 5.0
"""Seconds between two looks at pods that leave: their events wake the pass, so this is for events that were lost."""


def plan(snapshot: Snapshot) -> Plan:
    """Decide a pass.

    Deletion is looked at before validity, so that an object that has become invalid can still go (quirk 12). Mistakes in the
    object become blockers: nothing is created or deleted then.
    """
    cluster = snapshot.cluster
    if cluster.spec.managed_by is not None and cluster.spec.managed_by != OPERATOR:
        return Plan(hold=Hold.EXTERNALLY_MANAGED)
    if cluster.metadata.deletion_timestamp is not None:
        return Plan(hold=Hold.DELETING)
    blockers = validate(cluster, snapshot.config)
    if any(b.group is None for b in blockers):
        return Plan(blockers=blockers)
    held_groups = frozenset(b.group for b in blockers if b.group is not None)
    told = Part(blockers=blockers, notices=(*warnings(cluster, snapshot.config), *_foreign_pods(snapshot)))
    return Plan.of((told, plan_children(snapshot), *_pods(snapshot, held_groups)))


def _pods(snapshot: Snapshot, held_groups: frozenset[str]) -> Iterator[Part]:
    step = step_of_suspension(snapshot)
    if step.delete_pods:
        yield Part(actions=delete_all(snapshot, Reason.SUSPENDED, "the RayCluster is suspended"))
    yield Part(waiting=tuple(_suspension(step, snapshot)))
    if not step.create_pods:
        return
    head = next(iter(heads_of(snapshot)), None)
    if outdated(snapshot.cluster, head):
        yield Part(actions=_recreate(snapshot))
        return
    yield restamp(snapshot.cluster, head)
    yield plan_head(snapshot)
    yield from plan_workers(snapshot, held_groups)


def _suspension(step: SuspendStep, snapshot: Snapshot) -> Iterator[Waiting]:
    """What moves a suspension on where no event does."""
    if step.suspending and step.delete_pods:
        yield Waiting("suspension", "pods are still there", DRAINING)
    elif step.suspending:
        yield Waiting("suspension", "it has just been announced", SUSPENSION)
    elif step.finished and not snapshot.cluster.spec.suspend:
        yield Waiting("resumption", "the suspension before it has just ended", SUSPENSION)


def _recreate(snapshot: Snapshot) -> tuple[Action, ...]:
    """Delete the workers, and only then the head: it alone tells that the pods are of an old spec (quirk 38)."""
    text = "the spec has changed and upgradeStrategy is Recreate"
    return tuple(_delete_workers(snapshot, Reason.UPGRADE, text)) or delete_all(snapshot, Reason.UPGRADE, text)


def delete_all(snapshot: Snapshot, reason: Reason, detail: str) -> tuple[Action, ...]:
    """Delete every own pod that is not on its way out, slice by slice."""
    heads = tuple(DeleteHead(h, reason, detail) for h in heads_of(snapshot) if h.uid and not h.terminating)
    return (*heads, *_delete_workers(snapshot, reason, detail))


def _delete_workers(snapshot: Snapshot, reason: Reason, detail: str) -> Iterator[DeleteSlice]:
    by_group: dict[str, list[Pod]] = {}
    for pod in sorted(snapshot.observed.pods, key=lambda p: p.name):
        if pod.node_type == names.WORKER and pod.uid and not pod.terminating:
            by_group.setdefault(pod.group, []).append(pod)
    specs = {g.group_name: g for g in snapshot.cluster.spec.worker_group_specs}
    for group, pods in sorted(by_group.items()):
        if group in specs:
            for s in partition(specs[group], pods):
                yield DeleteSlice(group, s.index, s.name, s.pods, reason, detail)
        else:
            yield DeleteSlice(group, None, group, tuple(pods), reason, detail)


def _foreign_pods(snapshot: Snapshot) -> Iterator[Notice]:
    """Pods with our cluster label and another owner are told of, never touched (quirk 2)."""
    for pod in sorted(snapshot.observed.foreign_pods, key=lambda p: p.name):
        owner = pod.controller()
        if owner is not None and owner.kind == names.KIND:
            continue  # of a cluster of this name that was deleted a moment ago: the garbage collector's
        text = f"pod {pod.name} carries the label {names.CLUSTER} of this cluster but is not controlled by it: ignored"
        yield Notice(f"foreign-pod/{pod.uid}", "ForeignPod", text, action="Adopt")
