"""Whether somebody else's controller made this RayCluster, and what for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names

if TYPE_CHECKING:
    from tpu_operator.api.raycluster import RayCluster

RAY_SERVICE: Final = "RayService"
_CREATORS: Final = ("RayCluster", "RayJob", RAY_SERVICE)


def creator(cluster: RayCluster) -> str:
    """Kind that the cluster was made for, by its label; a RayCluster by itself otherwise."""
    kind = cluster.labels.get(names.ORIGINATED_FROM_CRD, "")
    return kind if kind in _CREATORS else names.KIND


def serves(cluster: RayCluster) -> bool:
    """Whether a RayService runs on it, which changes probes, timeouts and the serve label."""
    return creator(cluster) == RAY_SERVICE
