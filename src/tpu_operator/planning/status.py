"""The status of a RayCluster: pure, from what was seen, planned and done."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tpu_operator.api.conditions import ConditionType
from tpu_operator.planning.conditions import condition, is_true, with_condition
from tpu_operator.planning.group_status import worker_groups
from tpu_operator.planning.head_status import endpoints, head_info, head_pod_ready, head_service
from tpu_operator.planning.kstatus import with_kstatus
from tpu_operator.planning.pod import Phase
from tpu_operator.planning.readiness import faults_of, sight_of
from tpu_operator.planning.replica_failure import with_replica_failure
from tpu_operator.resources.totals import totals

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.status import Condition, RayClusterStatus
    from tpu_operator.planning.outcome import Outcomes
    from tpu_operator.planning.plan import Plan
    from tpu_operator.planning.readiness import Fault, Sight
    from tpu_operator.planning.snapshot import Snapshot

READY: Final = "ready"
SUSPENDED: Final = "suspended"


def next_status(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> RayClusterStatus:
    """Status after a pass: told however broken the object is (quirks 48, 50).

    It stays as it is in two cases: somebody else manages the cluster, and so its status, or it is being deleted.
    lastUpdateTime moves only if something else does.
    """
    if plan.hold is not None:
        return snapshot.cluster.status
    sight = sight_of(snapshot, plan, outcomes)
    status = _with_counts(snapshot.cluster.status, sight)
    status = _with_head(status, sight)
    faults = faults_of(status, sight)
    conditions = _kuberay_conditions(status, sight, faults)
    conditions = with_replica_failure(conditions, sight.snapshot, outcomes)
    conditions = with_kstatus(conditions, sight, faults)
    status = _with_state(replace(status, conditions=conditions), sight, faults)
    old = snapshot.cluster.status
    return status if status == old else replace(status, last_update_time=snapshot.now)


def changed(old: RayClusterStatus, new: RayClusterStatus) -> JsonObject | None:
    """JSON merge patch of status that makes `old` into `new`, or None if nothing but lastUpdateTime differs.

    Lists are replaced as a whole, so conditions of other controllers go with it; fields not ours are not named (quirk 56).
    """
    patch = _merge_patch(old.to_json(), new.to_json())
    return patch if patch.keys() - {"lastUpdateTime"} else None


def is_ours(one: Condition) -> bool:
    """Whether the operator writes this condition; others are kept as they are."""
    return one.type in set(ConditionType)


def _merge_patch(old: JsonObject, new: JsonObject) -> JsonObject:
    patch: JsonObject = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            if inner := _merge_patch(before, value):
                patch[key] = inner
        elif before != value:
            patch[key] = value
    return patch


def _with_counts(status: RayClusterStatus, sight: Sight) -> RayClusterStatus:
    cluster = sight.snapshot.cluster
    ready = sum(1 for pod in sight.workers if pod.ready)
    running = sum(1 for pod in sight.workers if pod.phase == Phase.RUNNING)
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


def _kuberay_conditions(status: RayClusterStatus, sight: Sight, faults: tuple[Fault, ...]) -> tuple[Condition, ...]:
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


def _provisioned(conditions: tuple[Condition, ...], sight: Sight, faults: tuple[Fault, ...]) -> Condition | None:
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


def _with_state(status: RayClusterStatus, sight: Sight, faults: tuple[Fault, ...]) -> RayClusterStatus:
    """`state` follows the pods (ST-03).

    `ready` while the head and all wanted slices are ready, `suspended` once no pod is left, else empty. KubeRay never
    takes `ready` back (quirk 46), so that its clients cannot tell a dead cluster from a live one. As only pods count,
    an API error or a mistaken edit does not make it flicker.
    """
    state = SUSPENDED if sight.step.suspended else "" if faults else READY
    status = replace(status, state=state, reason="" if state == READY else status.reason)
    if state and state != sight.snapshot.cluster.status.state:
        times = {**status.state_transition_times, state: sight.snapshot.now}
        return replace(status, state_transition_times=times)
    return status
