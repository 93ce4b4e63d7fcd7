"""The suspend state machine: the planner acts on its step, the status tells it, and so they cannot disagree."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tpu_operator.api.conditions import ConditionType

if TYPE_CHECKING:
    from tpu_operator.planning.snapshot import Snapshot


class SuspendPhase(StrEnum):
    """What the two suspend conditions say once the pass is over."""

    RUNNING = "Running"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"


@dataclass(frozen=True, slots=True)
class SuspendStep:
    """One step: what the pass may do to pods, and the phase that the status then tells.

    `finished` is True in the step that completes a suspension: everything known of the old pods is void.
    """

    phase: SuspendPhase
    delete_pods: bool = False
    create_pods: bool = False
    finished: bool = False

    @property
    def suspending(self) -> bool:
        """Value of the condition RayClusterSuspending."""
        return self.phase is SuspendPhase.SUSPENDING

    @property
    def suspended(self) -> bool:
        """Value of the condition RayClusterSuspended."""
        return self.phase is SuspendPhase.SUSPENDED


_RUN = SuspendStep(SuspendPhase.RUNNING, create_pods=True)
_ANNOUNCE = SuspendStep(SuspendPhase.SUSPENDING)
_DRAIN = SuspendStep(SuspendPhase.SUSPENDING, delete_pods=True)
_FINISH = SuspendStep(SuspendPhase.SUSPENDED, finished=True)
_REST = SuspendStep(SuspendPhase.SUSPENDED)
_SWEEP = SuspendStep(SuspendPhase.SUSPENDED, delete_pods=True)


def suspend_step(*, spec_suspend: bool | None, suspending: bool, suspended: bool, pods_left: int) -> SuspendStep:
    """Next step from `spec.suspend`, the two stored conditions and the number of own pods, terminating ones included.

    KubeRay's rules: a suspension is stored before the first pod goes, and once begun it runs to its end whatever
    `spec.suspend` says meanwhile. Ours: an absent `suspend` resumes like `false` (quirk 23), in the same pass; without
    pods there is nothing to announce; both conditions True, which KubeRay refuses to touch, are a suspension under way;
    a pod that turns up in a suspended cluster (a create whose answer was lost) is deleted.
    """
    if suspending:
        return _DRAIN if pods_left else _FINISH
    if not spec_suspend:
        return _RUN
    if suspended:
        return _SWEEP if pods_left else _REST
    return _ANNOUNCE if pods_left else _FINISH


def step_of_suspension(snapshot: Snapshot) -> SuspendStep:
    """The step of a pass, from the spec, the stored conditions and the pods that were seen."""
    true = {c.type for c in snapshot.cluster.status.conditions if c.status == "True"}
    return suspend_step(
        spec_suspend=snapshot.cluster.spec.suspend,
        suspending=ConditionType.SUSPENDING in true,
        suspended=ConditionType.SUSPENDED in true,
        pods_left=len(snapshot.observed.pods),
    )
