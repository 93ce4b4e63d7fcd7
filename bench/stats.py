"""A few numbers about a handful of measurements."""

import statistics
from collections.abc import Sequence

DISTURBED = 1.3


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest of `values` that at least `share` (0 to 1) of them do not exceed (nearest rank).

    Raises ValueError for no values, or a share outside of 0 to 1.
    """
    if not values:
        raise ValueError("no values")
    if not 0 <= share <= 1:
        raise ValueError(f"a share of {share}")
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * round(share * 1000) // 1000))
    return ordered[rank - 1]


def median(values: Sequence[float]) -> float:
    """Return the middle value, the mean of two if there are two; raise StatisticsError for no values."""
    return statistics.median(values)


def disturbed(floors: Sequence[float]) -> bool:
    """Whether the same bare work, done before and after, took so different a time that the machine was not ours."""
    return max(floors) > DISTURBED * min(floors)
