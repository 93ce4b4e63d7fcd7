"""What one process remembers of a cluster between passes. Losing it (a restart) costs speed, never correctness."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpu_operator.resources.registry import ChildKey


class SliceKey(NamedTuple):
    """Address of a slice in a cluster: it outlives the incarnations of the slice."""

    group: str
    replica: int


class HostKey(NamedTuple):
    """One host of one incarnation of a slice."""

    slice_name: str
    host: int


@dataclass(frozen=True, slots=True)
class Backoff:
    """`count` tries in a row that did not work; no new one before `until`."""

    count: int
    until: datetime
    message: str = ""
    cause: str = ""

    def waits(self, now: datetime) -> float:
        """Seconds left, 0 if the next try may start."""
        return max(0.0, (self.until - now).total_seconds())


def next_backoff(  # noqa: PLR0913  (a rule with its parameters)
    last: Backoff | None, now: datetime, *, first: float, cap: float, message: str = "", free: int = 0
) -> Backoff:
    """`first` seconds, doubled with each try up to `cap`; the first `free` tries wait for nothing."""
    count = (last.count if last else 0) + 1
    delay = 0.0 if count <= free else min(cap, first * 2 ** min(count - free - 1, 16))
    return Backoff(count, now + timedelta(seconds=delay), message)


REPAIR_FREE: Final = 2
REPAIR_FIRST: Final = 5.0
REPAIR_CAP: Final = 300.0
"""A slice is recreated at once twice, then after 5, 10, 20 ... 300 seconds: at most ten times in ten minutes (HP-10)."""


def next_repair(last: Backoff | None, now: datetime) -> Backoff:
    """The pause before a slice is recreated once more, after a host of it failed."""
    return next_backoff(last, now, first=REPAIR_FIRST, cap=REPAIR_CAP, free=REPAIR_FREE, message="a host failed")


@dataclass(frozen=True, slots=True)
class Memory:
    """Per cluster uid.

    `refusals`: groups (head: `headgroup`) whose creates the API server refused, cleared by a new generation.
    `repairs`: slices recreated after a failure.
    `uncreated`: hosts whose creation failed in a way that leaves no doubt that they never existed.
    `complete`: names of slices of which this process has created every host, until it deletes them.
    `announced`: keys of notices already told in an Event, so that each is told once.
    `refused_children`: children other than pods that the API server refused, cleared by a new generation too.
    """

    generation: int = 0
    refusals: Mapping[str, Backoff] = field(default_factory=dict)
    repairs: Mapping[SliceKey, Backoff] = field(default_factory=dict)
    uncreated: frozenset[HostKey] = frozenset()
    complete: frozenset[str] = frozenset()
    announced: frozenset[str] = frozenset()
    refused_children: Mapping[ChildKey, Backoff] = field(default_factory=dict)

    def of_generation(self, generation: int) -> Memory:
        """A changed spec gets a fresh chance: refusals of the old one no longer hold it back."""
        if generation == self.generation:
            return self
        return replace(self, generation=generation, refusals={}, refused_children={})
