"""The heart: what to do next, from a snapshot, as a value. Pure, total, deterministic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.planning.children import plan_children
from tpu_operator.planning.deletion import plan_deletion
from tpu_operator.planning.emptying import delete_all, delete_workers
from tpu_operator.planning.heads import heads_of, plan_head
from tpu_operator.planning.not_yet import not_offered, without_effect
from tpu_operator.planning.plan import Action, Hold, Notice, Part, Plan, Reason, Waiting
from tpu_operator.planning.prerequisites import prerequisites
from tpu_operator.planning.suspend import step_of_suspension
from tpu_operator.planning.upgrade import outdated, restamp
from tpu_operator.planning.validation import validate, warnings
from tpu_operator.planning.workers import plan_workers

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    if cluster.metadata.deletion_timestamp is not None:
        return plan_deletion(snapshot)
    if cluster.spec.managed_by is not None and cluster.spec.managed_by != OPERATOR:
        return Plan(hold=Hold.EXTERNALLY_MANAGED)
    blockers = (*validate(cluster, snapshot.config), *not_offered(cluster))
    if any(b.group is None for b in blockers):
        return Plan(blockers=blockers)
    held_groups = frozenset(b.group for b in blockers if b.group is not None)
    doubts = (*warnings(cluster, snapshot.config), *without_effect(cluster))
    told = Part(blockers=blockers, notices=(*doubts, *_foreign_pods(snapshot)))
    first = prerequisites(snapshot)
    decided = Plan.of((told, first, plan_children(snapshot), *_pods(snapshot, held_groups)))
    return decided.without_new_pods() if first.waiting else decided


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
    return tuple(delete_workers(snapshot, Reason.UPGRADE, text)) or delete_all(snapshot, Reason.UPGRADE, text)


def _foreign_pods(snapshot: Snapshot) -> Iterator[Notice]:
    """Pods with our cluster label and another owner are told of, never touched (quirk 2)."""
    for pod in sorted(snapshot.observed.foreign_pods, key=lambda p: p.name):
        owner = pod.controller()
        if owner is not None and owner.kind == names.KIND:
            continue  # of a cluster of this name that was deleted a moment ago: the garbage collector's
        text = f"pod {pod.name} carries the label {names.CLUSTER} of this cluster but is not controlled by it: ignored"
        yield Notice(f"foreign-pod/{pod.uid}", "ForeignPod", text, action="Adopt")
