"""The services of a cluster: to the head, to the hosts by name, to Ray Serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.addresses import head_service_name, port_number
from tpu_operator.resources.owned import owned
from tpu_operator.resources.pods.metadata import head_labels
from tpu_operator.resources.pods.ray_start import head_params
from tpu_operator.resources.pods.tpu_identity import needs_host_names
from tpu_operator.resources.tree import listed, mapping, objects, own_copy

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig

API_VERSION: Final = "v1"
KIND: Final = "Service"
SERVE_PORT: Final = "serve"


def head_service(cluster: RayCluster, config: OperatorConfig) -> JsonObject:
    """The service to the head, made from the user's headService if there is one.

    It selects by the two labels that no template can change, so it never misses the head; KubeRay selects by three
    more (quirk 60). Labels of the service itself are KubeRay's, by which others find it.
    """
    custom = cluster.spec.head_group_spec.head_service
    spec = _own_head_spec(cluster, config) if custom is None else _custom_head_spec(cluster, custom)
    spec["selector"] = {names.CLUSTER: cluster.name, names.NODE_TYPE: names.HEAD}
    given = mapping((custom or {}).get("metadata"))
    labels = {**mapping(given.get("labels")), **head_labels(cluster)}
    annotations = {**mapping(given.get("annotations")), **cluster.spec.head_service_annotations}
    manifest = owned(cluster, API_VERSION, KIND, head_service_name(cluster), labels=labels, annotations=annotations)
    return {**manifest, "spec": spec}


def _own_head_spec(cluster: RayCluster, config: OperatorConfig) -> JsonObject:
    kind = cluster.spec.head_group_spec.service_type or "ClusterIP"
    spec: JsonObject = {"type": kind, "ports": listed(head_ports(cluster))}
    if kind == "ClusterIP" and not config.head_cluster_ip_service:
        # Headless: the name leads to the pod itself, also before it is ready, which workers wait for.
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    return spec


def _custom_head_spec(cluster: RayCluster, custom: JsonObject) -> JsonObject:
    """The user's spec with the ports that it lacks; one that it has by name or number is not added (quirk 59)."""
    spec = own_copy(mapping(custom.get("spec")))
    own = objects(spec.get("ports"))
    taken = {port.get("name") for port in own} | {port.get("port") for port in own}
    missing = [p for p in head_ports(cluster) if p["name"] not in taken and p["port"] not in taken]
    spec["ports"] = listed(own + missing)
    if not spec.get("type") and (kind := cluster.spec.head_group_spec.service_type):
        spec["type"] = kind
    return spec


def head_ports(cluster: RayCluster) -> list[JsonObject]:
    """Ports of the head's Ray container by name, else Ray's usual ones; `metrics` in any case.

    Where rayStartParams moves a port, the service follows (quirk 66: KubeRay's does not).
    """
    params = head_params(cluster)
    ports = _container_ports(cluster) or {
        "client": _port(port_number(params, "ray-client-server-port", names.CLIENT_PORT)),
        "gcs-server": _port(port_number(params, "port", names.GCS_PORT)),
        "dashboard": _port(port_number(params, "dashboard-port", names.DASHBOARD_PORT)),
        SERVE_PORT: _port(names.SERVE_PORT),
    }
    ports.setdefault("metrics", _port(port_number(params, "metrics-export-port", names.METRICS_PORT)))
    return [{"name": name, **port} for name, port in sorted(ports.items())]


def _container_ports(cluster: RayCluster) -> dict[str, JsonObject]:
    found: dict[str, JsonObject] = {}
    for port in objects((cluster.spec.head_group_spec.ray_container or {}).get("ports")):
        number = port.get("containerPort")
        if isinstance(number, int):
            name = str(port.get("name") or f"{number}-port")
            found[name] = _port(number, str(port.get("protocol") or "TCP"))
    return found


def _port(number: int, protocol: str = "TCP") -> JsonObject:
    port: JsonObject = {"port": number, "protocol": protocol}
    # A hint for proxies, and nothing that goes over UDP is it.
    return port | {"appProtocol": "tcp"} if protocol == "TCP" else port


def headless_service(cluster: RayCluster, _: OperatorConfig) -> JsonObject | None:
    """The service under which hosts resolve by name, if any group needs that.

    They must resolve before they are ready, for they become ready only together.
    """
    if not any(needs_host_names(group) for group in cluster.spec.worker_group_specs):
        return None
    labels: JsonObject = {names.HEADLESS_WORKER_SVC: cluster.name}
    manifest = owned(cluster, API_VERSION, KIND, names.headless_service(cluster.name), labels=labels)
    spec: JsonObject = {
        "type": "ClusterIP",
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {names.CLUSTER: cluster.name, names.NODE_TYPE: names.WORKER},
    }
    return {**manifest, "spec": spec}


def serve_service(cluster: RayCluster, config: OperatorConfig) -> JsonObject | None:
    """The service for Ray Serve, if the annotation asks for it and the head service has a port for it.

    KubeRay stops all work on the cluster where that port is missing (quirk 61).
    """
    if cluster.annotations.get(names.ENABLE_SERVE_SERVICE) != "true":
        return None
    ports = [_serve_port(port) for port in objects(mapping(head_service(cluster, config)["spec"]).get("ports"))]
    ports = [port for port in ports if port]
    if not ports:
        return None
    labels: JsonObject = {
        names.ORIGINATED_FROM_CR: cluster.name,
        names.ORIGINATED_FROM_CRD: names.KIND,
        names.SERVE: f"{cluster.name}-serve",
    }
    manifest = owned(cluster, API_VERSION, KIND, names.serve_service(cluster.name), labels=labels)
    spec: JsonObject = {
        "type": cluster.spec.head_group_spec.service_type or "ClusterIP",
        "selector": {names.CLUSTER: cluster.name},
        "ports": listed(ports),
    }
    return {**manifest, "spec": spec}


def _serve_port(port: JsonObject) -> JsonObject:
    name = str(port.get("name") or "")
    if name != SERVE_PORT and not name.startswith(f"{SERVE_PORT}-"):
        return {}
    return {key: value for key, value in port.items() if key != "appProtocol"}


def services(cluster: RayCluster, config: OperatorConfig) -> tuple[JsonObject, ...]:
    """All services of the cluster."""
    wanted = (head_service(cluster, config), headless_service(cluster, config), serve_service(cluster, config))
    return tuple(service for service in wanted if service is not None)


def service_names(cluster: RayCluster) -> tuple[str, ...]:
    """Names that services of the cluster have or had, whatever is on now."""
    usual = names.head_service(cluster.name)
    own = head_service_name(cluster)
    others = (names.headless_service(cluster.name), names.serve_service(cluster.name))
    return tuple(dict.fromkeys((own, usual, *others)))


def is_own_head_service(labels: JsonObject) -> bool:
    """Whether these are labels of a head service that an operator made, perhaps under a name that the user has changed."""
    return labels.get(names.NODE_TYPE) == names.HEAD and labels.get(names.CREATED_BY) == names.CREATED_BY_VALUE
