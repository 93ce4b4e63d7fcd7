"""The status of a RayCluster: pure, from what was seen, planned and done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.planning.after import after
from tpu_operator.planning.conditions import ConditionType, condition, is_true, with_condition
from tpu_operator.planning.group_status import worker_groups
from tpu_operator.planning.head_status import endpoints, head_info, head_pod_ready, head_service
from tpu_operator.planning.heads import heads_of
from tpu_operator.planning.replica_failure import with_replica_failure
from tpu_operator.planning.suspend import SuspendPhase, SuspendStep, suspend_step
from tpu_operator.planning.totals import totals

if TYPE_CHECKING:
    from tpu_operator.api.status import Condition, RayClusterStatus
    from tpu_operator.planning.outcome import Outcomes
    from tpu_operator.planning.plan import Plan
    from tpu_operator.planning.pod import Pod
    from tpu_operator.planning.snapshot import Snapshot

READY: Final = "ready"
SUSPENDED: Final = "suspended"


@dataclass(frozen=True, slots=True)
class Sight:
    """What the parts of the status are made from. `snapshot` is as the pass leaves it.

    `served` is False while a mistake in the object keeps the whole of it from being acted on: then numbers of what is
    wanted stay those of the last spec that was served.
    """

    snapshot: Snapshot
    plan: Plan
    step: SuspendStep
    head: Pod | None
    served: bool

    @property
    def workers(self) -> tuple[Pod, ...]:
        pods = self.snapshot.observed.pods
        return tuple(p for p in pods if p.node_type == names.WORKER and not p.terminating)


def step_of(snapshot: Snapshot) -> SuspendStep:
    """Where the cluster stands between running and suspended, from its spec and its stored conditions."""
    conditions = snapshot.cluster.status.conditions
    return suspend_step(
        spec_suspend=snapshot.cluster.spec.suspend,
        suspending=is_true(conditions, ConditionType.SUSPENDING),
        suspended=is_true(conditions, ConditionType.SUSPENDED),
        pods_left=len(snapshot.observed.pods),
    )


def _held_step(snapshot: Snapshot) -> SuspendStep:
    """The phase that is stored: while the object is not served, nothing moves."""
    conditions = snapshot.cluster.status.conditions
    if is_true(conditions, ConditionType.SUSPENDING):
        return SuspendStep(SuspendPhase.SUSPENDING)
    return SuspendStep(SuspendPhase.SUSPENDED if is_true(conditions, ConditionType.SUSPENDED) else SuspendPhase.RUNNING)


def _sight(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Sight:
    served = all(blocker.group is not None for blocker in plan.blockers)
    seen = after(snapshot, outcomes)
    step = step_of(snapshot) if served else _held_step(snapshot)
    return Sight(seen, plan, step, next(iter(heads_of(seen)), None), served)


def next_status(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> RayClusterStatus:
    """Status after a pass. It is never skipped, however broken the object is (quirks 48, 50), with two exceptions:

    a cluster that somebody else manages, whose status is theirs, and one that is being deleted.
    """
    if plan.hold is not None:
        return snapshot.cluster.status
    sight = _sight(snapshot, plan, outcomes)
    status = _with_counts(snapshot.cluster.status, sight)
    status = _with_head(status, sight)
    faults = unready(status, sight)
    conditions = _kuberay_conditions(status, sight, faults)
    conditions = with_replica_failure(conditions, sight.snapshot, outcomes)
    conditions = _own_conditions(conditions, sight, faults)
    return _with_state(replace(status, conditions=conditions), sight, faults)


def _with_counts(status: RayClusterStatus, sight: Sight) -> RayClusterStatus:
    cluster = sight.snapshot.cluster
    ready = sum(1 for pod in sight.workers if pod.ready)
    running = sum(1 for pod in sight.workers if pod.running)
    counted = replace(
        status,
        ready_worker_replicas=ready,
        available_worker_replicas=running,
        observed_generation=cluster.metadata.generation,
    )
    if not sight.served:
        return counted
    sums = totals(cluster.spec)
    return replace(
        counted,
        desired_worker_replicas=sums.desired,
        min_worker_replicas=sums.least,
        max_worker_replicas=sums.most,
        desired_cpu=sums.cpu,
        desired_memory=sums.memory,
        desired_gpu=sums.gpu,
        desired_tpu=sums.tpu,
        worker_groups=worker_groups(sight.snapshot),
    )


def _with_head(status: RayClusterStatus, sight: Sight) -> RayClusterStatus:
    service = head_service(sight.snapshot)
    return replace(status, head=head_info(sight.head, service), endpoints=endpoints(service))


def unready(status: RayClusterStatus, sight: Sight) -> tuple[str, ...]:
    """Why the cluster is not ready, a reason a line; none if the head and all slices that are wanted are ready.

    Slices are whole or do not count; surplus ones do no harm. Under a spec that is not served, the pods of the last
    served one are counted.
    """
    head_ready = sight.head is not None and not sight.head.terminating and sight.head.ready
    faults = () if head_ready else ("the head is not ready",)
    if not sight.served:
        missing = (status.desired_worker_replicas or 0) - (status.ready_worker_replicas or 0)
        return (*faults, "workers are not ready") if missing > 0 else faults
    return faults + tuple(
        f"worker group {g.group_name}: {g.ready_slices} of {g.desired_slices} slices are ready"
        for g in status.worker_groups
        if g.ready_slices < g.desired_slices
    )


def _kuberay_conditions(status: RayClusterStatus, sight: Sight, faults: tuple[str, ...]) -> tuple[Condition, ...]:
    """The conditions that KubeRay's clients read, in the order in which it writes them first."""
    conditions, now = status.conditions, sight.snapshot.now
    new = (
        head_pod_ready(sight.head),
        _provisioned(conditions, sight, faults),
        condition(ConditionType.SUSPENDED, true=sight.step.suspended, reason=ConditionType.SUSPENDED),
        condition(ConditionType.SUSPENDING, true=sight.step.suspending, reason=ConditionType.SUSPENDING),
    )
    for item in new:
        conditions = conditions if item is None else with_condition(conditions, item, now)
    return conditions


def _provisioned(conditions: tuple[Condition, ...], sight: Sight, faults: tuple[str, ...]) -> Condition | None:
    """RayClusterProvisioned: True once every wanted pod was ready (not only those that exist: quirk 45), until suspension."""
    kind = ConditionType.PROVISIONED
    provisioning = "RayClusterPodsProvisioning"
    if sight.step.finished:
        return condition(kind, true=False, reason=provisioning, message="RayCluster has been suspended")
    if is_true(conditions, kind) or sight.step.suspended:
        return None
    if sight.served and not faults:
        text = "All Ray Pods are ready for the first time"
        return condition(kind, true=True, reason="AllPodRunningAndReadyFirstTime", message=text)
    text = "RayCluster Pods are being provisioned for first time"
    return condition(kind, true=False, reason=provisioning, message=text)


def _own_conditions(conditions: tuple[Condition, ...], sight: Sight, faults: tuple[str, ...]) -> tuple[Condition, ...]:
    """Ready, Reconciling and Stalled, by which kstatus, kubectl wait and GitOps tools judge any object."""
    for item in (_ready(sight, faults), _reconciling(sight, faults), _stalled(sight)):
        conditions = with_condition(conditions, item, sight.snapshot.now)
    return conditions


def _generation(sight: Sight) -> int:
    return sight.snapshot.cluster.metadata.generation


def _ready(sight: Sight, faults: tuple[str, ...]) -> Condition:
    kind, generation = ConditionType.READY, _generation(sight)
    if sight.plan.blockers:
        text = "; ".join(("the object has mistakes: see the condition Stalled", *faults))
        return condition(kind, true=False, reason="Stalled", message=text, generation=generation)
    if sight.step.phase is not SuspendPhase.RUNNING:
        return condition(kind, true=False, reason=sight.step.phase, generation=generation)
    if faults:
        return condition(kind, true=False, reason="PodsNotReady", message="; ".join(faults), generation=generation)
    text = "the head and all slices are ready"
    return condition(kind, true=True, reason="AllPodsReady", message=text, generation=generation)


def _reconciling(sight: Sight, faults: tuple[str, ...]) -> Condition:
    """True while the operator is bringing the cluster to where it should be."""
    kind, generation = ConditionType.RECONCILING, _generation(sight)
    if sight.step.suspending:
        text = "pods are being deleted"
        return condition(kind, true=True, reason=sight.step.phase, message=text, generation=generation)
    if sight.served and not sight.step.suspended and faults:
        waiting = dict.fromkeys(f"{w.what} waits: {w.why}" for w in sight.plan.waiting)
        text = "; ".join((*faults, *waiting))
        return condition(kind, true=True, reason="Progressing", message=text, generation=generation)
    return condition(kind, true=False, reason="Idle", generation=generation)


def _stalled(sight: Sight) -> Condition:
    """True while a person must change the object: all its mistakes, each with what to write instead."""
    kind, generation, blockers = ConditionType.STALLED, _generation(sight), sight.plan.blockers
    if not blockers:
        return condition(kind, true=False, reason="NoMistake", generation=generation)
    text = "; ".join(dict.fromkeys(str(blocker) for blocker in blockers))
    return condition(kind, true=True, reason=blockers[0].reason, message=text, generation=generation)


def _with_state(status: RayClusterStatus, sight: Sight, faults: tuple[str, ...]) -> RayClusterStatus:
    """`state` follows the pods (ST-03).

    `ready` while the head and all wanted slices are ready, `suspended` once no pod is left, else empty. KubeRay never
    takes `ready` back (quirk 46), so that its clients cannot tell a dead cluster from a live one. As only pods count,
    an API error or a mistaken edit does not make it flicker.
    """
    old = status.state or ""
    state = SUSPENDED if sight.step.suspended else "" if faults else READY
    status = replace(status, state=state, reason="" if state == READY else status.reason)
    if state and state != old:
        times = {**status.state_transition_times, state: sight.snapshot.now}
        return replace(status, state_transition_times=times)
    return status
