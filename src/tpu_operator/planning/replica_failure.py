"""Condition ReplicaFailure: pods that could not be created or deleted, in words that stay the same from try to try."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.api.conditions import ConditionType
from tpu_operator.planning.conditions import condition, with_condition, without
from tpu_operator.planning.outcome import Outcome, Outcomes, Result
from tpu_operator.planning.plan import CreateHead, CreateSlice, DeleteHead, DeleteSlice, Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.status import Condition
    from tpu_operator.planning.snapshot import Snapshot

_EVERYTHING = frozenset({Reason.SUSPENDED, Reason.UPGRADE, Reason.CLUSTER_DELETED})


def with_replica_failure(
    conditions: tuple[Condition, ...], snapshot: Snapshot, outcomes: Outcomes
) -> tuple[Condition, ...]:
    """Set while something fails, removed once nothing does, left alone while an answer is missing.

    A group whose creates were refused keeps failing while it waits for its next try.
    """
    failures = sorted({*_failures(outcomes), *_waiting(snapshot, outcomes)})
    if failures:
        reason = failures[0][0]
        text = "\n".join((reason, *dict.fromkeys(message for _, message in failures if message)))
        new = condition(ConditionType.REPLICA_FAILURE, true=True, reason=reason, message=text)
        return with_condition(conditions, new, snapshot.now)
    return conditions if _unsettled(outcomes) else without(conditions, ConditionType.REPLICA_FAILURE)


def _failures(outcomes: Outcomes) -> Iterator[tuple[str, str]]:
    for outcome in outcomes.troubles:
        if (marker := _marker(outcome)) is not None:
            yield marker, outcome.message


def _marker(outcome: Outcome) -> str | None:
    """KubeRay's name for what failed; None for an action that is not about a pod."""
    match outcome.action:
        case DeleteHead(reason=reason) | DeleteSlice(reason=reason) if reason in _EVERYTHING:
            return "FailedDeleteAllPods"
        case CreateHead():
            return "FailedCreateHeadPod"
        case CreateSlice():
            return "FailedCreateWorkerPod"
        case DeleteHead():
            return "FailedDeleteHeadPod"
        case DeleteSlice():
            return "FailedDeleteWorkerPod"
        case _:
            return None


def _waiting(snapshot: Snapshot, outcomes: Outcomes) -> Iterator[tuple[str, str]]:
    """Refusals of earlier passes that this pass has not overcome."""
    tried = {_group(o) for o in outcomes.items if o.result is not Result.SKIPPED}
    for group, refusal in sorted(snapshot.memory.refusals.items()):
        if group not in tried:
            head = group == names.HEAD_GROUP
            yield "FailedCreateHeadPod" if head else "FailedCreateWorkerPod", refusal.message


def _group(outcome: Outcome) -> str | None:
    match outcome.action:
        case CreateHead():
            return names.HEAD_GROUP
        case CreateSlice(group=group):
            return group
        case _:
            return None


def _unsettled(outcomes: Outcomes) -> bool:
    undecided = (Result.UNSETTLED, Result.SKIPPED)
    return any(o.result in undecided and _marker(o) is not None for o in outcomes.items)
