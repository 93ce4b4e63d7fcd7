"""What an Ingress and an OpenShift Route to the dashboard have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.owned import common_labels, owned
from tpu_operator.resources.services import head_service
from tpu_operator.resources.tree import mapping, objects

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig

INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
"""The annotation of the cluster that becomes the class of the ingress."""

_NOT_FOR_CONTROLLERS: Final = ("ray.io/", "tpu-operator.io/", "kubectl.kubernetes.io/", "kopf.dev/")


def is_wanted(cluster: RayCluster) -> bool:
    """Whether the user wants the dashboard to be reached from outside."""
    return bool(cluster.spec.head_group_spec.enable_ingress)


def door_labels(cluster: RayCluster) -> JsonObject:
    """KubeRay's labels of an ingress."""
    return {**common_labels(cluster), names.IDENTIFIER: names.identifier(cluster.name, names.HEAD)}


def door_annotations(cluster: RayCluster) -> JsonObject:
    """Annotations of the cluster, which users write there for their ingress controller.

    KubeRay copies those of kubectl and Ray too, so that edits which concern nobody rewrite the ingress (quirk 63).
    """
    return {
        key: value
        for key, value in cluster.annotations.items()
        if key != INGRESS_CLASS and not key.startswith(_NOT_FOR_CONTROLLERS)
    }


def door(cluster: RayCluster, api_version: str, kind: str, name: str) -> JsonObject:
    """An object of either kind, all but its spec."""
    return owned(cluster, api_version, kind, name, labels=door_labels(cluster), annotations=door_annotations(cluster))


def dashboard_port(cluster: RayCluster, config: OperatorConfig) -> int:
    """Port of the head service for the dashboard."""
    ports = objects(mapping(head_service(cluster, config)["spec"]).get("ports"))
    found = next((port.get("port") for port in ports if port.get("name") == "dashboard"), None)
    return found if isinstance(found, int) else names.DASHBOARD_PORT
