"""The ingress of the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.addresses import head_service_name
from tpu_operator.resources.front_door import (
    INGRESS_CLASS,
    dashboard_port,
    door,
    is_wanted,
)
from tpu_operator.resources.tree import listed, text_list

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import IngressTls, RayCluster
    from tpu_operator.config import OperatorConfig

API_VERSION: Final = "networking.k8s.io/v1"
KIND: Final = "Ingress"
_PATH: Final = "/"
_PATH_TYPE: Final = "Prefix"


def ingress_name(cluster: RayCluster) -> str:
    """Name of the ingress, different for different clusters (quirk 8)."""
    return names.child_name(f"{cluster.name}-head-ingress")


def ingress_names(cluster: RayCluster) -> tuple[str, ...]:
    """The one name that an ingress of the cluster has."""
    return (ingress_name(cluster),)


def ingresses(cluster: RayCluster, config: OperatorConfig) -> tuple[JsonObject, ...]:
    """One rule that leads to the dashboard, if the user wants it."""
    if not is_wanted(cluster):
        return ()
    manifest = door(cluster, API_VERSION, KIND, ingress_name(cluster))
    return ({**manifest, "spec": _spec(cluster, config)},)


def _spec(cluster: RayCluster, config: OperatorConfig) -> JsonObject:
    options = cluster.spec.head_group_spec.ingress_options
    service: JsonObject = {"name": head_service_name(cluster), "port": {"number": dashboard_port(cluster, config)}}
    path: JsonObject = {
        "path": (options and options.path) or _PATH,
        "pathType": (options and options.path_type) or _PATH_TYPE,
        "backend": {"service": service},
    }
    rule: JsonObject = {"http": {"paths": [path]}}
    if options and options.host:
        rule["host"] = options.host
    spec: JsonObject = {"rules": [rule]}
    if options and options.tls:
        spec["tls"] = listed([_tls(entry) for entry in options.tls])
    if given := cluster.annotations.get(INGRESS_CLASS):
        spec["ingressClassName"] = given
    return spec


def _tls(entry: IngressTls) -> JsonObject:
    tls: JsonObject = {"hosts": text_list(list(entry.hosts))} if entry.hosts else {}
    return tls | {"secretName": entry.secret_name} if entry.secret_name else tls
