"""How many slices and pods a worker group should have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.api.fields import INT32_MAX

if TYPE_CHECKING:
    from tpu_operator.api.groups import WorkerGroupSpec


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
    return wanted_slices(group) * group.hosts


def least_pods(group: WorkerGroupSpec) -> int:
    """Pods of the group that stay however little there is to do; 0 for a suspended group, never negative."""
    return 0 if group.suspend else max(0, bounds(group)[0]) * group.hosts
