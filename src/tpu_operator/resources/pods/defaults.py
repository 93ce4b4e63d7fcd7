"""What the administrator wants in every pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.resources.pods.variables import fill_in
from tpu_operator.resources.tree import own_copy

if TYPE_CHECKING:
    from tpu_operator.resources.pods.draft import Draft, RayNode


def sidecars(node: RayNode, draft: Draft) -> None:
    """Containers beside Ray, the last ones."""
    config = node.config
    for container in config.head_sidecar_containers if node.is_head else config.worker_sidecar_containers:
        draft.containers.append(own_copy(container))


def environment(node: RayNode, draft: Draft) -> None:
    """Variables of the Ray container; the user wins."""
    if node.config.default_container_envs:
        fill_in(draft.ray, *(own_copy(entry) for entry in node.config.default_container_envs))
