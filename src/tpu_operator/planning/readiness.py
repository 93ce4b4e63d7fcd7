"""Is the cluster ready? What the parts of the status look at, and what is wanted and not ready yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.api.conditions import ConditionType
from tpu_operator.planning.after import after
from tpu_operator.planning.conditions import is_true
from tpu_operator.planning.heads import heads_of
from tpu_operator.planning.suspend import SuspendPhase, SuspendStep, step_of_suspension

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.status import RayClusterStatus
    from tpu_operator.planning.outcome import Outcomes
    from tpu_operator.planning.plan import Plan
    from tpu_operator.planning.pod import Pod
    from tpu_operator.planning.snapshot import Snapshot


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


def _held_step(snapshot: Snapshot) -> SuspendStep:
    """The phase that is stored: while the object is not served, nothing moves."""
    conditions = snapshot.cluster.status.conditions
    if is_true(conditions, ConditionType.SUSPENDING):
        return SuspendStep(SuspendPhase.SUSPENDING)
    return SuspendStep(SuspendPhase.SUSPENDED if is_true(conditions, ConditionType.SUSPENDED) else SuspendPhase.RUNNING)


def sight_of(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Sight:
    """The cluster as the pass leaves it."""
    served = all(blocker.group is not None for blocker in plan.blockers)
    seen = after(snapshot, outcomes)
    step = step_of_suspension(snapshot) if served else _held_step(snapshot)
    return Sight(seen, plan, step, next(iter(heads_of(seen)), None), served)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wanted that is not ready; `group` is None for the head."""

    text: str
    group: str | None = None


def faults_of(status: RayClusterStatus, sight: Sight) -> tuple[Fault, ...]:
    """What is not ready; nothing if the head and all slices that are wanted are.

    A slice is whole or does not count; surplus ones do no harm. Under a spec that is not served, the pods of the last
    served one are counted.
    """
    return tuple(_faults(status, sight))


def _faults(status: RayClusterStatus, sight: Sight) -> Iterator[Fault]:
    if sight.head is None or sight.head.terminating or not sight.head.ready:
        yield Fault("the head is not ready")
    if not sight.served:
        if status.ready_worker_replicas < status.desired_worker_replicas:
            yield Fault("workers are not ready")
        return
    for group in status.worker_groups:
        if group.ready_slices < group.desired_slices:
            text = f"worker group {group.group_name}: {group.ready_slices} of {group.desired_slices} slices are ready"
            yield Fault(text, group.group_name)
