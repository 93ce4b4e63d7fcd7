"""Which replica index a new slice gets: the lowest that nobody holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet


@dataclass(frozen=True, slots=True)
class Allocation:
    """`start`: indices for slices that can be created now; `waits`: index -> seconds until it may be tried again."""

    start: tuple[int, ...]
    waits: Mapping[int, float]


def allocate(
    count: int, used: AbstractSet[int], leaving: Mapping[int, float], resting: Mapping[int, float]
) -> Allocation:
    """Indices for `count` new slices.

    `leaving`: index -> seconds until its old pods should be gone (0 or less: they hang; the index is passed over, so that nothing
    blocks for ever and no identity exists twice). `resting`: index -> seconds of pause before its slice is
    recreated once more. A slice that has to wait keeps its index. Together with those that leave there are never more
    slices than wanted, whatever their indices, for a TPU host cannot be shared.
    """
    start: list[int] = []
    waits: dict[int, float] = {}
    going = [left for left in leaving.values() if left > 0]
    index = 0
    while len(start) + len(waits) < count:
        left = leaving.get(index)
        if index in used or (left is not None and left <= 0):
            pass
        elif (pause := max(left or 0.0, resting.get(index, 0.0))) > 0:
            waits[index] = pause
        elif len(start) < count - len(going):
            start.append(index)
        else:
            waits[index] = min(going)
        index += 1
    return Allocation(tuple(start), waits)
