"""Labels of a RayCluster that its batch scheduler reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.planning.plan import Blocker, Notice
from tpu_operator.planning.validation.mistake import METADATA_REASON
from tpu_operator.resources.pod_groups import TOPOLOGY_TIER, highest_tier
from tpu_operator.resources.pods.batch_scheduler import KAI_QUEUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig


def network_tier(cluster: RayCluster, config: OperatorConfig) -> Iterator[Blocker]:
    """Volcano's tier is a number; KubeRay, too, does not go on with another text (section 7)."""
    text = cluster.labels.get(TOPOLOGY_TIER)
    if config.batch_scheduler == "volcano" and text and highest_tier(cluster) is None:
        field, message = f"metadata.labels[{TOPOLOGY_TIER}]", f"is {text!r}, expected a whole number"
        yield Blocker(METADATA_REASON, field, message, "write the tier as a number, such as 2, or remove the label")


def kai_queue(cluster: RayCluster, config: OperatorConfig) -> Iterator[Notice]:
    """Only a warning: without the label KAI does not know the queue, and pods stay pending where it has no default."""
    if config.batch_scheduler == "kai-scheduler" and not cluster.labels.get(KAI_QUEUE):
        message = f"the label {KAI_QUEUE} is missing: kai-scheduler may leave the pods pending"
        yield Notice("kai-queue", METADATA_REASON, message, action="Validate")
