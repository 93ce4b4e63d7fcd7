"""Types of the conditions in a RayCluster's status."""

from __future__ import annotations

from enum import StrEnum


class ConditionType(StrEnum):
    """KubeRay's five, which its clients read, and kstatus' three, which GitOps tools and `kubectl wait` read."""

    HEAD_POD_READY = "HeadPodReady"
    PROVISIONED = "RayClusterProvisioned"
    SUSPENDED = "RayClusterSuspended"
    SUSPENDING = "RayClusterSuspending"
    REPLICA_FAILURE = "ReplicaFailure"
    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
