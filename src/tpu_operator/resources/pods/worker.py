"""Worker pods."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    tpu_shape,
    volumes,
)
from tpu_operator.resources.pods.draft import Draft, RayNode, Step
from tpu_operator.resources.pods.ray_start import worker_params
from tpu_operator.resources.pods.slice_placement import SlicePlacement
from tpu_operator.resources.pods.tpu_identity import SliceIdentity, TpuIdentity
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
    tpu_shape.tell_shape,
    probes.health,
)


@dataclass(frozen=True, slots=True)
class SliceBlueprint:
    """What the pods of one slice have in common."""

    metadata: JsonObject
    labels: JsonObject
    spec: JsonObject
    identity: SliceIdentity | None

    def pod(self, place: Place, name: str) -> JsonObject:
        """The pod called `name` at `place`: only what differs from host to host is made anew."""
        labels = {**self.labels, **metadata.host_labels(place)}
        own: JsonObject = {**self.metadata, "name": name, "labels": labels}
        spec = self.spec if self.identity is None else self.identity.of_host(place.host)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": spec}


@dataclass(frozen=True, slots=True)
class WorkerBlueprint:
    """What all pods of a worker group have in common, built once.

    The pods share the parts that do not differ, so neither a pod nor a blueprint may be changed after it was made.
    """

    metadata: JsonObject
    spec: JsonObject
    identity: TpuIdentity | None
    placement: SlicePlacement | None
    slices: dict[tuple[str, int, int], SliceBlueprint] = field(default_factory=dict, compare=False, repr=False)
    """Slices of which a pod has been asked for."""

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
            spec=draft.spec,
            identity=TpuIdentity.of(cluster, group, draft.spec),
            placement=SlicePlacement.of(cluster, group, draft.spec, config),
        )

    def pod(self, place: Place, name: str) -> JsonObject:
        """The pod called `name` at `place`: what differs from slice to slice is made once for each slice."""
        key = (place.slice_name, place.index, place.hosts)
        made = self.slices.get(key)
        if made is None:
            made = self.slices[key] = self._of_slice(place)
        return made.pod(place, name)

    def _of_slice(self, place: Place) -> SliceBlueprint:
        own, spec = self.metadata, self.spec
        labels = {**mapping(own.get("labels")), **metadata.slice_labels(place)}
        if place.hosts > 1:
            own = {**own, "annotations": {**mapping(own.get("annotations")), names.NUM_OF_HOSTS: str(place.hosts)}}
        if self.placement:
            labels[names.SLICE] = self.placement.slice_label(place.slice_name)
            spec = self.placement.given_to(spec, place.slice_name)
        identity = None
        if self.identity:
            labels |= self.identity.labels(place)
            identity = self.identity.of_slice(spec, place)
        return SliceBlueprint(own, labels, spec, identity)
