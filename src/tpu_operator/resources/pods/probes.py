"""Liveness and readiness of the Ray container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.addresses import port_number
from tpu_operator.resources.origin import serves
from tpu_operator.resources.ray_version import at_least
from tpu_operator.resources.tree import objects

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.resources.pods.draft import Draft, RayNode

UNIFIED_SINCE: Final = (2, 53, 0)
"""From this Ray on the agent answers for raylet and GCS at one endpoint."""

_RAYLET_SECONDS, _GCS_SECONDS, _SERVE_SECONDS = 2, 10, 10


def health(node: RayNode, draft: Draft) -> None:
    """Probes where the user gave none, unless the administrator wants none."""
    if not node.config.probes_injection:
        return
    draft.ray["livenessProbe"] = draft.ray.get("livenessProbe") or _liveness(node)
    draft.ray["readinessProbe"] = draft.ray.get("readinessProbe") or _readiness(node, draft)


def _liveness(node: RayNode) -> JsonObject:
    return {**_handler(node), **_timing(node, initial_delay=30, failures=120)}


def _readiness(node: RayNode, draft: Draft) -> JsonObject:
    if node.is_head or not serves(node.cluster):
        return {**_handler(node), **_timing(node, initial_delay=10, failures=10)}
    # The traffic of a RayService goes to ready workers only, so one failure takes this one out.
    checks = [*_checks(node), _wget(_serve_port(draft), "-/healthz", _SERVE_SECONDS)]
    return {**_exec(checks), **_timing(node, initial_delay=10, failures=1)}


def _timing(node: RayNode, *, initial_delay: int, failures: int) -> JsonObject:
    return {
        "initialDelaySeconds": initial_delay,
        "timeoutSeconds": 5 if node.is_head else 2,
        "periodSeconds": 5,
        "successThreshold": 1,
        "failureThreshold": failures,
    }


def _handler(node: RayNode) -> JsonObject:
    if at_least(node.cluster.spec.ray_version, UNIFIED_SINCE):
        return {"httpGet": {"path": "/api/healthz", "port": _agent_port(node)}}
    return _exec(_checks(node))


def _checks(node: RayNode) -> list[str]:
    checks = [_wget(_agent_port(node), "api/local_raylet_healthz", _RAYLET_SECONDS)]
    if node.is_head:
        dashboard = port_number(node.params, "dashboard-port", names.DASHBOARD_PORT)
        checks.append(_wget(dashboard, "api/gcs_healthz", _GCS_SECONDS))
    return checks


def _agent_port(node: RayNode) -> int:
    return port_number(node.params, "dashboard-agent-listen-port", names.AGENT_PORT)


def _serve_port(draft: Draft) -> int:
    ports = [p.get("containerPort") for p in objects(draft.ray.get("ports")) if p.get("name") == "serve"]
    return next((p for p in ports if isinstance(p, int)), names.SERVE_PORT)


def _wget(port: int, path: str, seconds: int) -> str:
    return f"wget --tries 1 -T {seconds} -q -O- http://localhost:{port}/{path} | grep success"


def _exec(checks: list[str]) -> JsonObject:
    return {"exec": {"command": ["bash", "-c", " && ".join(checks)]}}
