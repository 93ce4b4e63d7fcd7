"""How many slices and pods a worker group should have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tpu_operator.api.raycluster import WorkerGroupSpec

INT32_MAX: Final = 2**31 - 1
INT32_MIN: Final = -(2**31)


def saturated(number: int) -> int:
    """`number` kept in the range that the CRD's int32 fields can hold (quirk 57)."""
    return max(INT32_MIN, min(INT32_MAX, number))


def hosts(group: WorkerGroupSpec) -> int:
    """Pods a slice: `numOfHosts`, and 1 for anything below, so that a 0 never deletes workers (quirk 27)."""
    return max(1, group.num_of_hosts or 1)


def bounds(group: WorkerGroupSpec) -> tuple[int, int]:
    """`(minReplicas, maxReplicas)` with what the CRD fills in where they are absent."""
    low = 0 if group.min_replicas is None else group.min_replicas
    high = INT32_MAX if group.max_replicas is None else group.max_replicas
    return low, high


def wanted_slices(group: WorkerGroupSpec) -> int:
    """`replicas` clamped to `[minReplicas, maxReplicas]`, 0 for a suspended group; KubeRay's rule, never negative.

    Like KubeRay, the lower bound is looked at first; validation refuses groups where it exceeds the upper one.
    """
    if group.suspend:
        return 0
    low, high = bounds(group)
    wanted = group.replicas or 0
    return max(0, low if wanted < low else min(wanted, high))


def wanted_pods(group: WorkerGroupSpec) -> int:
    """Pods of the group: slices times hosts."""
    return wanted_slices(group) * hosts(group)
