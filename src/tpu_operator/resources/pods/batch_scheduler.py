"""What a batch scheduler wants to find in a pod."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.gang import asks_for_gang, members_of
from tpu_operator.resources.pod_groups import PRIORITY_CLASS, VOLCANO_QUEUE, volcano_pod_group_name
from tpu_operator.resources.pods import autoscaler, defaults
from tpu_operator.resources.pods.draft import Draft
from tpu_operator.resources.totals import container_resources
from tpu_operator.resources.tree import inner

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import NodeGroup
    from tpu_operator.config import BatchScheduler
    from tpu_operator.resources.pods.draft import RayNode, Step

KAI_QUEUE: Final = "kai.scheduler/queue"
TASK_GROUPS: Final = "yunikorn.apache.org/task-groups"
TASK_GROUP_NAME: Final = "yunikorn.apache.org/task-group-name"

# Where the scheduler's own name is not that of KubeRay's plug-in for it.
_NAMES: Final[Mapping[BatchScheduler, str]] = {"scheduler-plugins": "scheduler-plugins-scheduler"}


def assign(node: RayNode, draft: Draft) -> None:
    """Hand the pod to the batch scheduler that the administrator has chosen, whatever the template says."""
    scheduler = node.config.batch_scheduler
    if not scheduler:
        return
    draft.spec["schedulerName"] = _NAMES.get(scheduler, scheduler)
    _STEPS[scheduler](node, draft)


def _volcano(node: RayNode, draft: Draft) -> None:
    draft.annotations["scheduling.k8s.io/group-name"] = volcano_pod_group_name(node.cluster)
    draft.annotations["volcano.sh/task-spec"] = node.group_name
    _copy_labels(node, draft, {VOLCANO_QUEUE: VOLCANO_QUEUE, PRIORITY_CLASS: PRIORITY_CLASS})


def _yunikorn(node: RayNode, draft: Draft) -> None:
    """YuniKorn reads the gang from its pods. A group of which it needs none is no part of it: it refuses a size of 0."""
    app_and_queue = {"yunikorn.apache.org/app-id": "applicationId", "yunikorn.apache.org/queue": "queue"}
    _copy_labels(node, draft, app_and_queue)
    if not asks_for_gang(node.cluster):
        return
    own = node.cluster.annotations.get(TASK_GROUPS)
    groups = list(_task_groups(node))
    draft.annotations[TASK_GROUPS] = own or json.dumps(groups, separators=(",", ":"))
    if own or any(group["name"] == node.group_name for group in groups):
        draft.annotations[TASK_GROUP_NAME] = node.group_name


def _task_groups(node: RayNode) -> Iterator[JsonObject]:
    cluster = node.cluster
    yield _task_group(node, cluster.spec.head_group_spec, names.HEAD_GROUP, 1)
    for group in cluster.spec.worker_group_specs:
        if members := members_of(cluster, group):
            yield _task_group(node, group, group.group_name, members)


def _task_group(node: RayNode, group: NodeGroup, name: str, members: int) -> JsonObject:
    """Number and kind of the placeholders. A pod that is larger than its placeholder does not fit, so sidecars count."""
    draft = Draft.of(group.template)
    kin = replace(node, group=group, group_name=name)
    for step in (autoscaler.sidecar, defaults.sidecars) if kin.is_head else (defaults.sidecars,):
        step(kin, draft)
    resources = container_resources(draft.containers)
    task_group: JsonObject = {
        "name": name,
        "minMember": members,
        "minResource": {resource: str(amount) for resource, amount in resources.items()},
    }
    return task_group | {
        field: value for field in ("nodeSelector", "tolerations", "affinity") if (value := draft.spec.get(field))
    }


def _scheduler_plugins(node: RayNode, draft: Draft) -> None:
    if asks_for_gang(node.cluster):
        inner(draft.metadata, "labels")["scheduling.x-k8s.io/pod-group"] = node.cluster.name


def _kai(node: RayNode, draft: Draft) -> None:
    """KAI makes its PodGroups itself, from the owner of the pods."""
    _copy_labels(node, draft, {KAI_QUEUE: KAI_QUEUE})


def _copy_labels(node: RayNode, draft: Draft, names_in_pod: Mapping[str, str]) -> None:
    """Labels of the cluster that are not empty, under their names in the pod."""
    labels = inner(draft.metadata, "labels")
    labels |= {name: value for label, name in names_in_pod.items() if (value := node.cluster.labels.get(label))}


_STEPS: Final[Mapping[BatchScheduler, Step]] = {
    "volcano": _volcano,
    "yunikorn": _yunikorn,
    "scheduler-plugins": _scheduler_plugins,
    "kai-scheduler": _kai,
}
