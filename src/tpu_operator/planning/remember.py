"""The memory after a pass: pure, from what was planned and what became of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.planning.memory import Backoff, HostKey, Memory, SliceKey, next_backoff
from tpu_operator.planning.outcome import Outcome, Outcomes, Result
from tpu_operator.planning.plan import CreateHead, CreateSlice, Plan

if TYPE_CHECKING:
    from datetime import datetime

REFUSAL_FIRST: Final = 5.0
REFUSAL_CAP: Final = 60.0
"""Refused creates wait 5, 10, 20, 40, 60, 60 ... seconds: at most ten in five minutes (AD-01)."""

REPAIR_FREE: Final = 2
REPAIR_FIRST: Final = 5.0
REPAIR_CAP: Final = 300.0
"""A slice is recreated at once twice, then after 5, 10, 20 ... 300 seconds: at most ten times in ten minutes (HP-10)."""

CALM: Final = timedelta(minutes=10)
"""A slice that has not failed for that long starts anew."""


def remember(memory: Memory, plan: Plan, outcomes: Outcomes, now: datetime) -> Memory:
    """What the next pass should know that cannot be seen in the cluster."""
    return replace(
        memory,
        refusals=_refusals(memory, outcomes, now),
        repairs=_repairs(memory, plan, now),
        uncreated=_uncreated(memory, outcomes),
        announced=_announced(plan),
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


def _group(outcome: Outcome) -> str | None:
    match outcome.action:
        case CreateHead():
            return names.HEAD_GROUP
        case CreateSlice(group=group):
            return group
        case _:
            return None


def _repairs(memory: Memory, plan: Plan, now: datetime) -> dict[SliceKey, Backoff]:
    repairs = {key: b for key, b in memory.repairs.items() if now - b.until < CALM}
    for key in plan.repairs:
        repairs[key] = next_backoff(
            repairs.get(key), now, first=REPAIR_FIRST, cap=REPAIR_CAP, free=REPAIR_FREE, message="a host failed"
        )
    return repairs


def _uncreated(memory: Memory, outcomes: Outcomes) -> frozenset[HostKey]:
    uncreated = set(memory.uncreated)
    for outcome in outcomes.items:
        if isinstance(outcome.action, CreateSlice):
            name = outcome.action.slice_name
            uncreated -= {HostKey(name, host.host) for host in outcome.action.hosts}
            if outcome.created:
                uncreated |= {HostKey(name, host) for host in outcome.uncreated}
    return frozenset(uncreated)


def _announced(plan: Plan) -> frozenset[str]:
    """What still holds has been told; what no longer holds may be told again when it comes back."""
    return frozenset(n.key for n in plan.notices) | frozenset(str(b) for b in plan.blockers)
