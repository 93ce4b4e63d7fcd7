"""The head pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.addresses import head_fqdn, head_port
from tpu_operator.resources.pods import (
    auth,
    autoscaler,
    batch_scheduler,
    command,
    defaults,
    environment,
    fault_tolerance,
    metadata,
    ports,
    probes,
    tpu_identity,
    tpu_shape,
    volumes,
)
from tpu_operator.resources.pods.draft import Draft, RayNode, Step
from tpu_operator.resources.pods.ray_start import head_params

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig

PIPELINE: Final[tuple[Step, ...]] = (
    metadata.identity,
    metadata.own_labels,
    metadata.own_annotations,
    batch_scheduler.assign,
    autoscaler.sidecar,
    autoscaler.restart_policy,
    fault_tolerance.head_storage,
    ports.metrics,
    auth.token,
    autoscaler.user_environment,
    defaults.sidecars,
    defaults.environment,
    volumes.shared_memory,
    autoscaler.logs,
    environment.init_addresses,
    command.start_ray,
    environment.ray_environment,
    tpu_identity.head_identity,
    tpu_shape.tell_shape,
    probes.health,
)


def head_pod(cluster: RayCluster, config: OperatorConfig, *, name: str, recreate_hash: str) -> JsonObject:
    """Build the head pod called `name`; `recreate_hash` tells what it was made from.

    The group has a template with a container at least; validation sees to that.
    """
    group = cluster.spec.head_group_spec
    node = RayNode(
        cluster=cluster,
        config=config,
        group=group,
        group_name=names.HEAD_GROUP,
        params=head_params(cluster),
        head_fqdn=head_fqdn(cluster, config),
        head_port=head_port(cluster),
    )
    draft = Draft.of(group.template)
    for step in PIPELINE:
        step(node, draft)
    metadata.made_by(draft, recreate_hash)
    if config.deterministic_head_pod_name:
        draft.metadata.pop("generateName")
    draft.metadata["name"] = name
    return {"apiVersion": "v1", "kind": "Pod", "metadata": draft.metadata, "spec": draft.spec}
