"""PodGroups, in which Volcano and the coscheduling plugin are told which pods to place together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.gang import Gang, asks_for_gang
from tpu_operator.resources.origin import creator
from tpu_operator.resources.owned import owned

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig

RAY_JOB: Final = "RayJob"
KIND: Final = "PodGroup"
VOLCANO_VERSION: Final = "scheduling.volcano.sh/v1beta1"
PLUGINS_VERSION: Final = "scheduling.x-k8s.io/v1alpha1"

VOLCANO_QUEUE: Final = "volcano.sh/queue-name"
PRIORITY_CLASS: Final = "ray.io/priority-class-name"
TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
TOPOLOGY_TIER: Final = "volcano.sh/network-topology-highest-tier-allowed"

# How tools keep track of the RayCluster itself; on another object they would claim that one, too.
_OF_THE_CLUSTER_ONLY: Final = frozenset(
    {"kubectl.kubernetes.io/last-applied-configuration", "argocd.argoproj.io/tracking-id"}
)


def volcano_pod_group_name(cluster: RayCluster) -> str:
    """Name of the PodGroup: of the cluster's own, or of the one that the RayJob which made the cluster has."""
    job = cluster.labels.get(names.ORIGINATED_FROM_CR) if creator(cluster) == RAY_JOB else None
    return f"ray-{job or cluster.name}-pg"


def volcano_pod_group_names(cluster: RayCluster) -> tuple[str, ...]:
    """The name, unless the PodGroup is a RayJob's."""
    return () if creator(cluster) == RAY_JOB else (volcano_pod_group_name(cluster),)


def volcano_pod_groups(cluster: RayCluster, config: OperatorConfig) -> tuple[JsonObject, ...]:
    """The PodGroup under Volcano. None for the cluster of a RayJob, which has its own, and none while suspended.

    Kept up to date in all of its parts (KubeRay: in the numbers only, quirk 88). Volcano sets the status itself.
    """
    if config.batch_scheduler != "volcano" or creator(cluster) == RAY_JOB or cluster.spec.suspend:
        return ()
    annotations: JsonObject = {k: v for k, v in cluster.annotations.items() if k not in _OF_THE_CLUSTER_ONLY}
    manifest = owned(
        cluster,
        VOLCANO_VERSION,
        KIND,
        volcano_pod_group_name(cluster),
        labels={names.CLUSTER: cluster.name},
        annotations=annotations,
    )
    return ({**manifest, "spec": Gang.of(cluster).spec() | _volcano_wishes(cluster)},)


def _volcano_wishes(cluster: RayCluster) -> JsonObject:
    labels = cluster.labels
    wishes: JsonObject = {}
    if queue := labels.get(VOLCANO_QUEUE):
        wishes["queue"] = queue
    if priority := labels.get(PRIORITY_CLASS):
        wishes["priorityClassName"] = priority
    topology: JsonObject = {}
    if mode := labels.get(TOPOLOGY_MODE):
        topology["mode"] = mode
    if (tier := highest_tier(cluster)) is not None:
        topology["highestTierAllowed"] = tier
    return wishes | {"networkTopology": topology} if topology else wishes


def highest_tier(cluster: RayCluster) -> int | None:
    """The greatest network distance allowed; None if nothing, or nothing that is a number, is said."""
    text = cluster.labels.get(TOPOLOGY_TIER, "")
    return int(text) if text.isascii() and text.isdigit() else None


def plugins_pod_groups(cluster: RayCluster, config: OperatorConfig) -> tuple[JsonObject, ...]:
    """The PodGroup under the coscheduling plugin, if the cluster asks for a gang; none while suspended.

    It follows the size of the cluster; KubeRay's keeps the size that the cluster was made with (quirk 87).
    """
    if config.batch_scheduler != "scheduler-plugins" or not asks_for_gang(cluster) or cluster.spec.suspend:
        return ()
    manifest = owned(cluster, PLUGINS_VERSION, KIND, cluster.name, labels={names.CLUSTER: cluster.name})
    return ({**manifest, "spec": Gang.of(cluster).spec()},)


def plugins_pod_group_names(cluster: RayCluster) -> tuple[str, ...]:
    """The cluster's own name."""
    return (cluster.name,)
