"""Which slices go when there are more than wanted: an explicit order, never that of a map or a list (quirk 35)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.planning.pod import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tpu_operator.planning.slices import ObservedSlice, SliceState

UNSCHEDULED, PENDING, NOT_READY, READY = range(4)


def by_worth(slices: Iterable[tuple[ObservedSlice, SliceState]]) -> list[ObservedSlice]:
    """The slices, the least worth keeping first.

    Of another size, then forming, then whole; among those unscheduled, pending, not ready, ready (the ranking of a ReplicaSet,
    OC-06); then the youngest; then the highest index.
    """
    return [piece for piece, _ in sorted(slices, key=lambda item: _worth(*item))]


def _worth(piece: ObservedSlice, state: SliceState) -> tuple[int, int, float, int, str]:
    born = piece.born
    age = -born.timestamp() if born else float("-inf")
    index = -piece.index if piece.index is not None else 0
    return (state, _progress(piece), age, index, piece.name)


def _progress(piece: ObservedSlice) -> int:
    """How far the host that is furthest behind has come."""
    if any(not pod.spec.node_name for pod in piece.live):
        return UNSCHEDULED
    if any(pod.phase == Phase.PENDING for pod in piece.live):
        return PENDING
    return READY if piece.ready else NOT_READY
