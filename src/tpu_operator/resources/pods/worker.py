"""Worker pods."""

from __future__ import annotations

from dataclasses import dataclass
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
    init_containers,
    metadata,
    ports,
    probes,
    volumes,
)
from tpu_operator.resources.pods.draft import Draft, RayNode, Step
from tpu_operator.resources.pods.ray_start import worker_params
from tpu_operator.resources.pods.tpu_identity import TpuIdentity
from tpu_operator.resources.tree import mapping

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster, WorkerGroupSpec
    from tpu_operator.config import OperatorConfig
    from tpu_operator.resources.pods.place import Place

PIPELINE: Final[tuple[Step, ...]] = (
    init_containers.wait_for_gcs,  # first, for it gets what the user gave the Ray container and no more
    metadata.identity,
    metadata.own_labels,
    metadata.own_annotations,
    batch_scheduler.assign,
    autoscaler.restart_policy,
    fault_tolerance.worker_patience,
    ports.metrics,
    auth.token,
    defaults.sidecars,
    defaults.environment,
    volumes.shared_memory,
    environment.init_addresses,
    command.start_ray,
    environment.ray_environment,
    probes.health,
)


@dataclass(frozen=True, slots=True)
class WorkerBlueprint:
    """What all pods of a worker group have in common, built once.

    The pods share the parts that do not differ, so neither a pod nor a blueprint may be changed after it was made.
    """

    metadata: JsonObject
    labels: JsonObject
    annotations: JsonObject
    spec: JsonObject
    identity: TpuIdentity | None

    @classmethod
    def of(cls, cluster: RayCluster, group: WorkerGroupSpec, config: OperatorConfig) -> WorkerBlueprint:
        """Run the pipeline for a group, whose template has a container at least; validation sees to that."""
        fqdn, port = head_fqdn(cluster, config), head_port(cluster)
        node = RayNode(
            cluster=cluster,
            config=config,
            group=group,
            group_name=group.group_name,
            params=worker_params(group, f"{fqdn}:{port}"),
            head_fqdn=fqdn,
            head_port=port,
        )
        draft = Draft.of(group.template)
        for step in PIPELINE:
            step(node, draft)
        return cls(
            metadata=draft.metadata,
            labels=mapping(draft.metadata.get("labels")),
            annotations=mapping(draft.metadata.get("annotations")),
            spec=draft.spec,
            identity=TpuIdentity.of(cluster, group, draft.spec),
        )

    def pod(self, place: Place, name: str) -> JsonObject:
        """The pod called `name` at `place`: only what differs from host to host is made anew."""
        labels = {**self.labels, **metadata.place_labels(place)}
        own: JsonObject = {**self.metadata, "name": name, "labels": labels}
        if place.hosts > 1:
            own["annotations"] = {**self.annotations, names.NUM_OF_HOSTS: str(place.hosts)}
        spec = self.spec if self.identity is None else self.identity.given_to(self.spec, place)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": spec}
