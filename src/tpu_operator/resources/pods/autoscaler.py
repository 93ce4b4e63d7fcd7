"""Ray's autoscaler as a sidecar of the head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.pods.command import bash
from tpu_operator.resources.pods.variables import insist, literal, pod_field, value_of
from tpu_operator.resources.pods.volumes import share_logs
from tpu_operator.resources.ray_version import at_least
from tpu_operator.resources.tree import listed, own_copy, text_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import AutoscalerOptions, RayCluster
    from tpu_operator.resources.pods.draft import Draft, RayNode

CONTAINER: Final = "autoscaler"
V2_ENV: Final = "RAY_enable_autoscaler_v2"
V2_BY_DEFAULT_SINCE: Final = (2, 47, 0)

_COMMAND: Final = (
    "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"
)


def service_account(cluster: RayCluster) -> str:
    """ServiceAccount of the head: the user's, else one that the operator makes."""
    return own_service_account(cluster) or names.child_name(cluster.name)


def own_service_account(cluster: RayCluster) -> str:
    """ServiceAccount that the user names in the head's template; empty if none."""
    name = cluster.spec.head_group_spec.pod_spec.get("serviceAccountName")
    return name if isinstance(name, str) else ""


def is_v2(cluster: RayCluster) -> bool:
    """Whether autoscaler v2 runs: asked for, or by Ray's own default if nothing is said (quirk 76)."""
    if not cluster.spec.autoscaling:
        return False
    if version := _options_version(cluster):
        return version == "v2"
    switch = value_of(cluster.spec.head_group_spec.ray_container or {}, V2_ENV)
    if switch is not None and switch.get("value"):
        return str(switch["value"]).lower() in ("1", "true")
    return at_least(cluster.spec.ray_version, V2_BY_DEFAULT_SINCE)


def _options_version(cluster: RayCluster) -> str:
    options = cluster.spec.autoscaler_options
    return (options and options.version) or ""


def restart_policy(node: RayNode, draft: Draft) -> None:
    """Under v2 a container is not started again in its pod: the pod's name is the identity of the Ray node.

    By order of `autoscalerOptions.version` always, as in KubeRay; by Ray's default only if the user says nothing.
    """
    if not is_v2(node.cluster):
        return
    if _options_version(node.cluster) == "v2" or not draft.spec.get("restartPolicy"):
        draft.spec["restartPolicy"] = "Never"


def sidecar(node: RayNode, draft: Draft) -> None:
    """The container, its service account, and the version for Ray, which the head announces to the autoscaler."""
    if not node.cluster.spec.autoscaling:
        return
    draft.containers.append(_container(node, draft))
    draft.spec["serviceAccountName"] = service_account(node.cluster)
    if version := _options_version(node.cluster):
        insist(draft.ray, literal(V2_ENV, "true" if version == "v2" else "false"))


def _container(node: RayNode, draft: Draft) -> JsonObject:
    size: JsonObject = {"cpu": "500m", "memory": "512Mi"}
    image = draft.ray.get("image")
    container: JsonObject = {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": text_list(bash(node.config)),
        "args": [_COMMAND],
        "env": [
            pod_field("RAY_CLUSTER_NAME", f"metadata.labels['{names.CLUSTER}']"),
            pod_field("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
            pod_field("RAY_HEAD_POD_NAME", "metadata.name"),
            literal("KUBERAY_CRD_VER", names.VERSION),
            literal("KUBERAY_GEN_AUTOSCALER_START_CMD", _COMMAND),
        ],
        "resources": {"limits": size, "requests": size},
    }
    if options := node.cluster.spec.autoscaler_options:
        container |= _wishes(options)
    return container


def _wishes(options: AutoscalerOptions) -> JsonObject:
    """What the user wants otherwise; each replaces ours as a whole."""
    wishes: JsonObject = {
        "image": options.image,
        "imagePullPolicy": options.image_pull_policy,
        "command": text_list(list(options.command)),
        "args": text_list(list(options.args)),
        "resources": options.resources,
        "securityContext": options.security_context,
        "envFrom": listed(_copies(options.env_from)),
        "volumeMounts": listed(_copies(options.volume_mounts)),
    }
    return {field: wish for field, wish in wishes.items() if wish}


def _copies(items: Sequence[JsonObject]) -> list[JsonObject]:
    return [own_copy(item) for item in items]


def user_environment(node: RayNode, draft: Draft) -> None:
    """The user's variables for the sidecar, which win over all others."""
    options, container = node.cluster.spec.autoscaler_options, draft.container(CONTAINER)
    if node.cluster.spec.autoscaling and options and options.env and container:
        insist(container, *_copies(options.env))


def logs(node: RayNode, draft: Draft) -> None:
    """The autoscaler writes its logs where the head's dashboard looks for them."""
    if node.cluster.spec.autoscaling:
        share_logs(draft, CONTAINER)
