"""Rules of suspension and upgrade."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.config import Gate
from tpu_operator.planning.validation.mistake import gate_off, group_path, spec_mistake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.planning.plan import Blocker

UPGRADE_TYPE = "spec.upgradeStrategy.type"


def suspended_group_gate(cluster: RayCluster, config: OperatorConfig) -> Iterator[Blocker]:
    """Rule 10."""
    if config.gate(Gate.JOB_DELETION_POLICY):
        return
    for index, group in enumerate(cluster.spec.worker_group_specs):
        if group.suspend:
            yield gate_off(f"{group_path(index)}.suspend", Gate.JOB_DELETION_POLICY)


def upgrade_strategy(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 9.3: a known type, and none where RayJob or RayService upgrades the cluster itself."""
    strategy = cluster.spec.upgrade_strategy
    kind = strategy.type if strategy else None
    if not kind:
        return
    if kind not in ("Recreate", "None"):
        yield spec_mistake(UPGRADE_TYPE, f"is {kind!r}, expected Recreate or None", "set it to Recreate or None")
    origin = cluster.labels.get(names.ORIGINATED_FROM_CRD)
    if origin in ("RayJob", "RayService"):
        message = f"cannot be set on a cluster that a {origin} made and upgrades"
        yield spec_mistake(UPGRADE_TYPE, message, f"remove upgradeStrategy from the {origin}'s cluster spec")
