"""A pod being built, and what the steps of its pipeline may know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tpu_operator.api import names
from tpu_operator.resources.tree import entries, inner, mapping, own_copy

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import NodeGroup, RayCluster
    from tpu_operator.config import OperatorConfig


@dataclass(frozen=True, slots=True)
class RayNode:
    """The Ray node that a pod runs: its group, and the completed parameters of its `ray start`.

    `head_fqdn` and `head_port` say where the GCS is; `group_name` is `headgroup` for the head.
    """

    cluster: RayCluster
    config: OperatorConfig
    group: NodeGroup
    group_name: str
    params: Mapping[str, str]
    head_fqdn: str
    head_port: str

    @property
    def is_head(self) -> bool:
        return self.group is self.cluster.spec.head_group_spec

    @property
    def node_type(self) -> str:
        return names.HEAD if self.is_head else names.WORKER

    @property
    def gcs_address(self) -> str:
        """host:port of the GCS as other pods reach it."""
        return f"{self.head_fqdn}:{self.head_port}"


@dataclass(slots=True)
class Draft:
    """Metadata and spec of a pod, a private copy of the template which the steps fill in."""

    metadata: JsonObject
    spec: JsonObject

    @classmethod
    def of(cls, template: JsonObject) -> Draft:
        """Copy a pod template, which has a container at least."""
        return cls(own_copy(mapping(template.get("metadata"))), own_copy(mapping(template.get("spec"))))

    @property
    def containers(self) -> list[JsonObject]:
        return entries(self.spec, "containers")

    @property
    def ray(self) -> JsonObject:
        """The container that runs Ray: always the first."""
        return self.containers[0]

    @property
    def init_containers(self) -> list[JsonObject]:
        """Init containers; to look at, for an empty list is not put into the pod."""
        return entries(self.spec, "initContainers") if self.spec.get("initContainers") else []

    @property
    def annotations(self) -> JsonObject:
        return inner(self.metadata, "annotations")

    def container(self, name: str) -> JsonObject | None:
        """The init or other container of that name."""
        return next((c for c in (*self.init_containers, *self.containers) if c.get("name") == name), None)


Step: TypeAlias = Callable[[RayNode, Draft], None]
"""One concern: puts its part into the draft. Steps run in the order of the pipeline and never fail."""
