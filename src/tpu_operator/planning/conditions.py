"""Conditions of a RayCluster: their names and how one is set among those of others."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tpu_operator.api.status import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from tpu_operator.api.conditions import ConditionType

MAX_MESSAGE: Final = 32768
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_MAX_REASON: Final = 1024
UNKNOWN: Final = "Unknown"


def legal_reason(text: str | None) -> str:
    """Give `text` if the CRD takes it as a reason, else `Unknown`.

    A reason that the CRD does not take makes the API server refuse the whole status (quirk 53).
    """
    fits = text is not None and len(text) <= _MAX_REASON and _REASON.fullmatch(text)
    return text if text and fits else UNKNOWN


def legal_message(text: str) -> str:
    """Cut `text` to the length that the CRD takes."""
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 3]}..."


def find(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """The condition of that type."""
    return next((c for c in conditions if c.type == kind), None)


def is_true(conditions: Iterable[Condition], kind: str) -> bool:
    """Whether the condition of that type is there and True."""
    found = find(conditions, kind)
    return found is not None and found.status == "True"


def without(conditions: tuple[Condition, ...], kind: str) -> tuple[Condition, ...]:
    """All conditions but the one of that type."""
    return tuple(c for c in conditions if c.type != kind)


def with_condition(conditions: tuple[Condition, ...], new: Condition, now: datetime) -> tuple[Condition, ...]:
    """`conditions` with `new` in the place of the old one of its type, or at the end.

    As in Kubernetes, lastTransitionTime moves only when the status flips.
    """
    old = find(conditions, new.type)
    since = old.last_transition_time if old is not None and old.status == new.status else None
    new = replace(new, last_transition_time=since or now)
    if old is None:
        return (*conditions, new)
    return tuple(new if c.type == new.type else c for c in conditions)


def condition(
    kind: ConditionType, *, true: bool, reason: str, message: str = "", generation: int | None = None
) -> Condition:
    """A condition without its time. `generation` is given for ours only: KubeRay's carry none."""
    return Condition(
        type=kind,
        status="True" if true else "False",
        reason=legal_reason(reason),
        message=legal_message(message),
        observed_generation=generation,
    )
