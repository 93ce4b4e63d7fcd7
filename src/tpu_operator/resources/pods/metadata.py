"""Names, labels and annotations of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator import __version__
from tpu_operator.api import names
from tpu_operator.resources.origin import serves
from tpu_operator.resources.tree import listed, mapping, objects

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.resources.pods.draft import Draft, RayNode
    from tpu_operator.resources.pods.place import Place

STAMP: Final = f"tpu-operator/{__version__}"
"""Who made the pod. It differs from KubeRay's, so that neither operator takes a pod of the other for an outdated one."""

# What a template says about the object that it is itself, or that the operator decides.
_NOT_CARRIED_OVER: Final = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "generation",
)


def identity(node: RayNode, draft: Draft) -> None:
    """Namespace, name prefix and owner. What else the template's metadata holds is carried over."""
    cluster, metadata = node.cluster, draft.metadata
    others = [owner for owner in objects(metadata.get("ownerReferences")) if not owner.get("controller")]
    for field in _NOT_CARRIED_OVER:
        metadata.pop(field, None)
    prefix = names.head_prefix(cluster.name) if node.is_head else names.worker_prefix(cluster.name, node.group_name)
    metadata["generateName"] = f"{prefix}-"
    metadata["namespace"] = cluster.namespace
    owner: JsonObject = dict(names.controller_reference(cluster.name, cluster.uid))
    metadata["ownerReferences"] = listed([*others, owner])


def own_labels(node: RayNode, draft: Draft) -> None:
    """Ours, then the template's, then the group's, then the three that nobody may change, then the administrator's."""
    cluster, kind = node.cluster, node.node_type
    ours: JsonObject = {
        names.IS_RAY_NODE: "yes",
        names.IDENTIFIER: names.identifier(cluster.name, kind),
        names.APP_NAME: names.APP_NAME_VALUE,
        names.CREATED_BY: names.CREATED_BY_VALUE,
    }
    if serves(cluster):
        ours[names.SERVE] = "false" if node.is_head else "true"
    fixed = {names.CLUSTER: cluster.name, names.NODE_TYPE: kind, names.NODE_GROUP: node.group_name}
    template = mapping(draft.metadata.get("labels"))
    draft.metadata["labels"] = {
        **node.config.default_pod_labels,
        **ours,
        **template,
        **node.group.labels,
        **fixed,
    }


def slice_labels(place: Place) -> JsonObject:
    """Labels that tell one slice of a group from another; a single host needs its replica's index only."""
    index: JsonObject = {names.REPLICA_INDEX: str(place.index)}
    return index if place.hosts == 1 else {names.REPLICA_NAME: place.slice_name, **index}


def host_labels(place: Place) -> JsonObject:
    """Labels that tell one host of a slice from another."""
    return {} if place.hosts == 1 else {names.HOST_INDEX: str(place.host)}


def own_annotations(node: RayNode, draft: Draft) -> None:
    """The wish to keep the container's command, and the administrator's defaults."""
    ours = draft.annotations
    if node.cluster.annotations.get(names.OVERWRITE_CONTAINER_CMD, "").lower() == "true":
        ours[names.OVERWRITE_CONTAINER_CMD] = "true"
    for key, value in node.config.default_pod_annotations.items():
        ours.setdefault(key, value)
    if not ours:
        del draft.metadata["annotations"]


def made_by(draft: Draft, recreate_hash: str) -> None:
    """Stamp of the head, by which the Recreate strategy sees that the templates have changed since."""
    draft.annotations[names.RECREATE_HASH] = recreate_hash
    draft.annotations[names.KUBERAY_VERSION] = STAMP


def head_labels(cluster: RayCluster) -> dict[str, str]:
    """Labels of the head service, by which KubeRay and others find it."""
    template = mapping(mapping(cluster.spec.head_group_spec.template.get("metadata")).get("labels"))
    return {
        names.CLUSTER: cluster.name,
        names.NODE_TYPE: names.HEAD,
        names.IDENTIFIER: names.identifier(cluster.name, names.HEAD),
        names.APP_NAME: str(template.get(names.APP_NAME) or names.APP_NAME_VALUE),
        names.CREATED_BY: names.CREATED_BY_VALUE,
    }
