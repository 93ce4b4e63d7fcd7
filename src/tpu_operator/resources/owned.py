"""What all children have in common: kind, name, place and owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.resources.tree import mapping, objects

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject, JsonValue
    from tpu_operator.api.raycluster import RayCluster


def owned(  # noqa: PLR0913  (metadata has as many parts)
    cluster: RayCluster,
    api_version: str,
    kind: str,
    name: str,
    *,
    labels: JsonObject,
    annotations: JsonObject | None = None,
) -> JsonObject:
    """Begin a manifest whose object Kubernetes deletes with the cluster."""
    owner: JsonObject = dict(names.controller_reference(cluster.name, cluster.uid))
    metadata: JsonObject = {
        "name": name,
        "namespace": cluster.namespace,
        "labels": labels,
        "ownerReferences": [owner],
    }
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def common_labels(cluster: RayCluster) -> JsonObject:
    """Labels of children other than pods and services, KubeRay's."""
    return {
        names.CLUSTER: cluster.name,
        names.APP_NAME: names.APP_NAME_VALUE,
        names.CREATED_BY: names.CREATED_BY_VALUE,
    }


def owner_uid(metadata: JsonValue) -> str:
    """Uid of the RayCluster that an object belongs to, empty if to nobody.

    That is its controller; of an object that was made to outlive its cluster, the cluster that it was made for.
    """
    given = mapping(metadata)
    controller = next((o for o in objects(given.get("ownerReferences")) if o.get("controller")), None)
    if controller is not None:
        return str(controller.get("uid", ""))
    return str(mapping(given.get("annotations")).get(names.MADE_FOR, ""))
