"""Environment of the Ray container, and of the init containers as far as they need to find the head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.origin import creator, serves
from tpu_operator.resources.pods.metadata import STAMP
from tpu_operator.resources.pods.ray_start import command_line
from tpu_operator.resources.pods.variables import fill_in, insist, literal, pod_field

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.resources.pods.draft import Draft, RayNode

# How Ray and its autoscaler tell which pod and which group a node is; a user's value would break both.
_IDENTITY: Final = {
    "RAY_CLUSTER_NAME": f"metadata.labels['{names.CLUSTER}']",
    "RAY_CLUSTER_NAMESPACE": "metadata.namespace",
    "RAY_CLOUD_INSTANCE_ID": "metadata.name",
    "RAY_NODE_TYPE_NAME": f"metadata.labels['{names.NODE_GROUP}']",
}
# A RayService must notice the loss of a node fast.
_SERVICE_TIMEOUTS: Final = {
    "RAY_timeout_ms_task_wait_for_death_info": "0",
    "RAY_gcs_server_request_timeout_seconds": "5",
    "RAY_SERVE_KV_TIMEOUT_S": "5",
}


def head_addresses(node: RayNode) -> tuple[JsonObject, ...]:
    """Where the head is, in full and by its short name, which KubeRay calls deprecated."""
    return literal("FQ_RAY_IP", node.head_fqdn), literal("RAY_IP", node.head_fqdn.partition(".")[0])


def init_addresses(node: RayNode, draft: Draft) -> None:
    """Every init container can find the head."""
    for container in draft.init_containers:
        insist(container, *head_addresses(node))


def ray_environment(node: RayNode, draft: Draft) -> None:
    """Variables of the Ray container, in KubeRay's order."""
    ray = draft.ray
    if not node.is_head:
        insist(ray, *head_addresses(node))
    insist(ray, *(pod_field(name, path) for name, path in _IDENTITY.items()))
    insist(ray, literal("KUBERAY_GEN_RAY_START_CMD", command_line(node)))
    fill_in(ray, literal("RAY_PORT", node.head_port))
    if serves(node.cluster):
        fill_in(ray, *(literal(name, value) for name, value in _SERVICE_TIMEOUTS.items()))
    fill_in(ray, literal("RAY_ADDRESS", f"127.0.0.1:{node.head_port}" if node.is_head else node.gcs_address))
    fill_in(ray, literal("RAY_USAGE_STATS_KUBERAY_IN_USE", "1"))
    if node.is_head:
        tags = f"kuberay_version={STAMP};kuberay_crd={creator(node.cluster)}"
        insist(ray, literal("RAY_USAGE_STATS_EXTRA_TAGS", tags))
    fill_in(ray, literal("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1"))
