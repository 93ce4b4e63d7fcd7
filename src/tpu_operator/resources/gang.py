"""The pods of a cluster that are of use only together, so that a scheduler should place all or none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpu_operator.api.fields import INT32_MAX
from tpu_operator.resources.totals import resources_of
from tpu_operator.resources.wanted import least_pods, wanted_pods

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster, WorkerGroupSpec
    from tpu_operator.resources.totals import Resources

GANG_LABEL: Final = "ray.io/gang-scheduling-enabled"


def asks_for_gang(cluster: RayCluster) -> bool:
    """Whether the label is there, with any value but `false`.

    To KubeRay `false` means yes as well (quirk 87). Volcano knows gangs only and does not ask.
    """
    return cluster.labels.get(GANG_LABEL, "false").strip().lower() != "false"


@dataclass(frozen=True, slots=True)
class Gang:
    """Number of pods, the head among them, and what they need together."""

    members: int
    resources: Resources

    @classmethod
    def of(cls, cluster: RayCluster) -> Gang:
        """Gang of the whole cluster. Both numbers come from the same clamped number of slices (quirk 51)."""
        groups = cluster.spec.worker_group_specs
        members = 1 + sum(members_of(cluster, group) for group in groups)
        resources = resources_of(cluster.spec, lambda group: members_of(cluster, group))
        return cls(min(members, INT32_MAX), resources)

    def spec(self) -> JsonObject:
        """The two fields of that name and meaning in every PodGroup."""
        resources: JsonObject = {name: str(amount) for name, amount in self.resources.items() if amount}
        return {"minMember": self.members, "minResources": resources}


def members_of(cluster: RayCluster, group: WorkerGroupSpec) -> int:
    """Pods (not slices, MH-34) of a group that the gang cannot do without.

    All that are wanted; under the autoscaler the least, because what it adds must not wait for what is not there yet.
    """
    return least_pods(group) if cluster.spec.autoscaling else wanted_pods(group)
