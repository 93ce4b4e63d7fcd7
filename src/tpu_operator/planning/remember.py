"""The memory after a pass: pure, from what was planned and what became of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.planning.heads import HEAD_KEY
from tpu_operator.planning.memory import Backoff, HostKey, Memory, SliceKey, next_backoff, next_repair
from tpu_operator.planning.outcome import Outcome, Outcomes, Result
from tpu_operator.planning.plan import Action, Apply, CreateHead, CreateSlice, DeleteHead, DeleteSlice, Plan, Reason
from tpu_operator.planning.troubles import trouble_key

if TYPE_CHECKING:
    from datetime import datetime

    from tpu_operator.resources.registry import ChildKey

REFUSAL_FIRST: Final = 5.0
REFUSAL_CAP: Final = 60.0
"""Refused creates wait 5, 10, 20, 40, 60, 60 ... seconds: at most ten in five minutes (AD-01)."""

CALM: Final = timedelta(minutes=10)
"""A slice that has not failed for that long starts anew."""


def remember(memory: Memory, plan: Plan, outcomes: Outcomes, now: datetime) -> Memory:
    """What the next pass should know that cannot be seen in the cluster."""
    return replace(
        memory,
        refusals=_refusals(memory, outcomes, now),
        refused_children=_refused_children(memory, outcomes, now),
        repairs=_repairs(memory, plan, outcomes, now),
        uncreated=_uncreated(memory, outcomes),
        complete=_complete(memory, outcomes),
        announced=_announced(plan, outcomes),
    )


def _refusals(memory: Memory, outcomes: Outcomes, now: datetime) -> dict[str, Backoff]:
    """Per group: refused once more, or over, because a create of it went through and none was refused."""
    refusals = dict(memory.refusals)
    results: dict[str, list[Outcome]] = {}
    for outcome in outcomes.items:
        if (group := _group(outcome)) is not None:
            results.setdefault(group, []).append(outcome)
    for group, group_outcomes in results.items():
        refused = next((o for o in group_outcomes if o.result is Result.REFUSED), None)
        if refused is None and any(o.result is Result.DONE for o in group_outcomes):
            refusals.pop(group, None)
        elif refused is not None:
            progress = any(o.result is Result.DONE for o in group_outcomes)
            last = None if progress else refusals.get(group)
            refusals[group] = next_backoff(last, now, first=REFUSAL_FIRST, cap=REFUSAL_CAP, message=refused.message)
    return refusals


def _refused_children(memory: Memory, outcomes: Outcomes, now: datetime) -> dict[ChildKey, Backoff]:
    """Per child: refused once more, or over because the API server took it."""
    refused = dict(memory.refused_children)
    for outcome in outcomes.items:
        match outcome.action:
            case Apply(key=key) if outcome.result is Result.DONE:
                refused.pop(key, None)
            case Apply(key=key) if outcome.result is Result.REFUSED:
                again = next_backoff(
                    refused.get(key), now, first=REFUSAL_FIRST, cap=REFUSAL_CAP, message=outcome.message
                )
                refused[key] = replace(again, cause=outcome.cause)
            case _:
                pass
    return refused


def _group(outcome: Outcome) -> str | None:
    match outcome.action:
        case CreateHead():
            return names.HEAD_GROUP
        case CreateSlice(group=group):
            return group
        case _:
            return None


def _repairs(memory: Memory, plan: Plan, outcomes: Outcomes, now: datetime) -> dict[SliceKey, Backoff]:
    """A repair counts once its old pods were really deleted, however often that had to be tried."""
    repairs = {key: b for key, b in memory.repairs.items() if now - b.until < CALM}
    deleted = {_slice(o.action) for o in outcomes.items if o.deleted}
    for key in plan.repairs:
        if key in deleted:
            repairs[key] = next_repair(repairs.get(key), now)
    return repairs


def _slice(action: Action) -> SliceKey | None:
    match action:
        case DeleteHead():
            return HEAD_KEY
        case DeleteSlice(group=group, index=index):
            return SliceKey(group, -1 if index is None else index)
        case _:
            return None


def _uncreated(memory: Memory, outcomes: Outcomes) -> frozenset[HostKey]:
    """Hosts of slices that are there in part. What was not even tried stays as it was known."""
    uncreated = set(memory.uncreated)
    for outcome in outcomes.items:
        match outcome.action:
            case CreateSlice(slice_name=name, hosts=hosts, reason=reason) if outcome.result is not Result.SKIPPED:
                uncreated -= {HostKey(name, host.host) for host in hosts}
                if outcome.created or reason is Reason.TOP_UP:
                    uncreated |= {HostKey(name, host) for host in outcome.uncreated}
            case DeleteSlice(slice_name=name) if outcome.deleted:
                uncreated = {key for key in uncreated if key.slice_name != name}
            case _:
                pass
    return frozenset(uncreated)


def _complete(memory: Memory, outcomes: Outcomes) -> frozenset[str]:
    """Slices of several hosts that were complete once: what they miss later is a loss, although no host has started."""
    complete = set(memory.complete)
    for outcome in outcomes.items:
        match outcome.action:
            case CreateSlice(slice_name=name, size=size) if size > 1 and outcome.result is Result.DONE:
                complete.add(name)
            case DeleteSlice(slice_name=name) if outcome.deleted:
                complete.discard(name)
            case _:
                pass
    return frozenset(complete)


def _announced(plan: Plan, outcomes: Outcomes) -> frozenset[str]:
    """What still holds has been told; what no longer holds may be told again when it comes back."""
    told = {n.key for n in plan.notices} | {str(b) for b in plan.blockers}
    return frozenset(told | {trouble_key(o) for o in outcomes.items if o.result is Result.REFUSED})
