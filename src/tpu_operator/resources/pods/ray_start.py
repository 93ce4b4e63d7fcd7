"""Parameters and command line of `ray start`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.pods import ray_resources
from tpu_operator.resources.pods.shell import word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpu_operator.api.raycluster import GcsFaultToleranceOptions, NodeGroup, RayCluster
    from tpu_operator.resources.pods.draft import RayNode

# These want `=true` or `=false`, where all others are switches.
_WITH_VALUE: Final = frozenset({"log-color", "include-dashboard", "include-log-monitor"})
_COMMON: Final = {
    "metrics-export-port": str(names.METRICS_PORT),
    "dashboard-agent-listen-port": str(names.AGENT_PORT),
}


def head_params(cluster: RayCluster) -> dict[str, str]:
    """Parameters of the head. `block` is always on, for without it the container would end (quirk 70 stays)."""
    defaults = {**_COMMON, "dashboard-host": "0.0.0.0"}  # noqa: S104  (KubeRay's: services lead to it)
    forced = {"block": "true"}
    if cluster.spec.autoscaling:
        forced["no-monitor"] = "true"  # Ray's own autoscaler runs in the sidecar
    forced |= _redis(cluster.spec.gcs_fault_tolerance_options)
    return _completed(cluster.spec.head_group_spec, defaults, forced)


def worker_params(group: NodeGroup, gcs_address: str) -> dict[str, str]:
    """Parameters of a worker that joins the head at `gcs_address`."""
    return _completed(group, {**_COMMON, "address": gcs_address}, {"block": "true"})


def _redis(options: GcsFaultToleranceOptions | None) -> dict[str, str]:
    """References to variables of the container: credentials stand in no command line."""
    given = {
        "redis-username": options and options.redis_username,
        "redis-password": options and options.redis_password,
    }
    return {name: f"${name.upper().replace('-', '_')}" for name, value in given.items() if value}


def _completed(group: NodeGroup, defaults: Mapping[str, str], forced: Mapping[str, str]) -> dict[str, str]:
    params = {**defaults, **ray_resources.readable(group.ray_start_params), **ray_resources.declared(group.resources)}
    if group.labels:
        params["labels"] = ",".join(f"{key}={value}" for key, value in sorted(group.labels.items()))
    params |= forced
    return params | ray_resources.detected(group.ray_container or {}, params)


def command_line(node: RayNode) -> str:
    """The command by which the node joins or makes the cluster; flags by name, as KubeRay spaces them."""
    start = "ray start --head " if node.is_head else "ray start "
    return start + "".join(_flag(name, value) for name, value in sorted(node.params.items()))


def _flag(name: str, value: str) -> str:
    if name not in _WITH_VALUE and value.lower() in ("true", "false"):
        return f" --{name} " if value.lower() == "true" else ""
    return f" --{name}={word(value)} "
