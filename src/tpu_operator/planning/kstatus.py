"""Ready, Reconciling and Stalled, by which kstatus, `kubectl wait` and GitOps tools judge any object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.api.conditions import ConditionType
from tpu_operator.planning.conditions import condition, with_condition
from tpu_operator.planning.suspend import SuspendPhase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tpu_operator.api.status import Condition
    from tpu_operator.planning.readiness import Fault, Sight


def with_kstatus(conditions: tuple[Condition, ...], sight: Sight, faults: tuple[Fault, ...]) -> tuple[Condition, ...]:
    """Set the three; unlike KubeRay's conditions they tell the generation that they speak of."""
    for item in (_ready(sight, faults), _reconciling(sight, faults), _stalled(sight)):
        conditions = with_condition(conditions, item, sight.snapshot.now)
    return conditions


def _generation(sight: Sight) -> int:
    return sight.snapshot.cluster.generation


def _ready(sight: Sight, faults: tuple[Fault, ...]) -> Condition:
    kind, generation = ConditionType.READY, _generation(sight)
    if sight.plan.blockers:
        text = _joined(("the object has mistakes: see the condition Stalled", *_texts(faults)))
        return condition(kind, true=False, reason="Stalled", message=text, generation=generation)
    if sight.step.phase is not SuspendPhase.RUNNING:
        return condition(kind, true=False, reason=sight.step.phase, generation=generation)
    if faults:
        return condition(
            kind, true=False, reason="PodsNotReady", message=_joined(_texts(faults)), generation=generation
        )
    text = "the head and all slices are ready"
    return condition(kind, true=True, reason="AllPodsReady", message=text, generation=generation)


def _reconciling(sight: Sight, faults: tuple[Fault, ...]) -> Condition:
    """True while the operator works on it: what only the user can move does not count, or it would look busy for ever."""
    kind, generation = ConditionType.RECONCILING, _generation(sight)
    if sight.step.suspending:
        text = "pods are being deleted"
        return condition(kind, true=True, reason=sight.step.phase, message=text, generation=generation)
    held = {blocker.group for blocker in sight.plan.blockers if blocker.group is not None}
    open_ends = [fault for fault in faults if fault.group not in held]
    if sight.served and not sight.step.suspended and open_ends:
        waiting = (f"{item.what} waits: {item.why}" for item in sight.plan.waiting)
        text = _joined((*_texts(open_ends), *waiting))
        return condition(kind, true=True, reason="Progressing", message=text, generation=generation)
    return condition(kind, true=False, reason="Idle", generation=generation)


def _stalled(sight: Sight) -> Condition:
    """True while a person must change the object: all its mistakes, each with what to write instead."""
    kind, generation, blockers = ConditionType.STALLED, _generation(sight), sight.plan.blockers
    if not blockers:
        return condition(kind, true=False, reason="NoMistake", generation=generation)
    text = _joined(map(str, blockers))
    return condition(kind, true=True, reason=blockers[0].reason, message=text, generation=generation)


def _texts(faults: Iterable[Fault]) -> list[str]:
    return [fault.text for fault in faults]


def _joined(texts: Iterable[str]) -> str:
    """One sentence part each, nothing twice, so that the text stays the same from pass to pass."""
    return "; ".join(dict.fromkeys(texts))
