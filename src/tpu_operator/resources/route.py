"""The route to the dashboard, OpenShift's kind of an ingress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.addresses import head_service_name
from tpu_operator.resources.front_door import dashboard_port, door, is_wanted

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig

API_VERSION: Final = "route.openshift.io/v1"
KIND: Final = "Route"
_OPENSHIFT: Final = ("route.openshift.io/", "security.openshift.io/", "config.openshift.io/")
_HOST_LABEL: Final = 62
_SHORTEST: Final = 20


def is_openshift(served: frozenset[str] | None) -> bool:
    """Whether the API server is OpenShift's, by any of the groups that KubeRay looks for."""
    return any(version.startswith(_OPENSHIFT) for version in served or ())


def route_name(cluster: RayCluster) -> str:
    """Name of the route. `<name>-<namespace>` becomes one label of its host, which has 63 characters at most."""
    limit = max(_SHORTEST, _HOST_LABEL - len(cluster.namespace))
    return names.child_name(f"{cluster.name}-head-route", limit)


def route_names(cluster: RayCluster) -> tuple[str, ...]:
    """The one name that a route of the cluster has."""
    return (route_name(cluster),)


def routes(cluster: RayCluster, config: OperatorConfig) -> tuple[JsonObject, ...]:
    """The route, if the user wants the dashboard to be reached. ingressOptions do not apply to it, as in KubeRay."""
    if not is_wanted(cluster):
        return ()
    manifest = door(cluster, API_VERSION, KIND, route_name(cluster))
    spec: JsonObject = {
        "to": {"kind": "Service", "name": head_service_name(cluster), "weight": 100},
        "port": {"targetPort": dashboard_port(cluster, config)},
        "wildcardPolicy": "None",
    }
    return ({**manifest, "spec": spec},)
