"""Ports of the Ray container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.resources.addresses import port_number
from tpu_operator.resources.tree import entries, objects

if TYPE_CHECKING:
    from tpu_operator.resources.pods.draft import Draft, RayNode


def metrics(node: RayNode, draft: Draft) -> None:
    """A port named metrics, where Ray does export them (quirk 66: KubeRay always says 8080)."""
    if all(port.get("name") != "metrics" for port in objects(draft.ray.get("ports"))):
        number = port_number(node.params, "metrics-export-port", names.METRICS_PORT)
        entries(draft.ray, "ports").append({"name": "metrics", "containerPort": number})
