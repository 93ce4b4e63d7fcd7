"""Head group and worker groups of a RayCluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from tpu_operator.api.fields import INT32_MAX, ApiObject, Flag, Int32, Manifest, Text, TextMap
from tpu_operator.api.schema import Core, Crd

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject


class IngressTls(ApiObject):
    """TLS of an ingress, as in networking.k8s.io/v1."""

    hosts: Annotated[tuple[Text, ...], Crd("Hosts in the certificate.", atomic=True)] = ()
    secret_name: Annotated[Text | None, Crd("Secret with the certificate.")] = None


class IngressOptions(ApiObject):
    """Where the ingress of the dashboard listens; path `/` and pathType Prefix if absent."""

    host: Annotated[Text | None, Crd("Host name; any if absent.")] = None
    path: Annotated[Text | None, Crd("Path, / if absent.")] = None
    path_type: Annotated[
        Literal["Exact", "Prefix", "ImplementationSpecific"] | None, Crd("How the path is matched, Prefix if absent.")
    ] = None
    tls: Annotated[tuple[IngressTls, ...], Crd("Certificates.")] = ()


class NodeGroup(ApiObject):
    """What head group and worker groups have in common. The Ray container is always the first of the template."""

    template: Annotated[
        Manifest, Core("api.core.v1.PodTemplateSpec"), Crd("Pod template; its first container runs Ray.", required=True)
    ]
    ray_start_params: Annotated[
        TextMap, Crd("Options of `ray start`, without the leading dashes.", v1alpha1_required=True)
    ] = Field(default_factory=dict)
    resources: Annotated[
        TextMap, Crd("Ray's logical resources of each node; they replace those in rayStartParams.", v1_only=True)
    ] = Field(default_factory=dict)
    labels: Annotated[TextMap, Crd("Ray's node labels, which are labels of the pods too.", v1_only=True)] = Field(
        default_factory=dict
    )

    @property
    def pod_spec(self) -> JsonObject:
        """`template.spec` as the user wrote it, empty if it is none."""
        spec = self.template.get("spec")
        return spec if isinstance(spec, dict) else {}

    @property
    def containers(self) -> list[JsonObject]:
        """The template's containers as the user wrote them; whatever else stands in the list is left out."""
        found = self.pod_spec.get("containers")
        return [c for c in found if isinstance(c, dict)] if isinstance(found, list) else []

    @property
    def ray_container(self) -> JsonObject | None:
        """The container that runs Ray."""
        return next(iter(self.containers), None)


class HeadGroupSpec(NodeGroup):
    """The one head node of the cluster."""

    service_type: Annotated[Text | None, Crd("Type of the head service and of the serve service.")] = None
    head_service: Annotated[
        Manifest | None,
        Core("api.core.v1.Service"),
        Crd("Head service of your own; the generated parts are merged in."),
    ] = None
    enable_ingress: Annotated[Flag | None, Crd("Whether the dashboard gets an ingress.")] = None
    ingress_options: Annotated[IngressOptions | None, Crd("Options of the ingress.", v1_only=True)] = None


class ScaleStrategy(ApiObject):
    """Orders of the autoscaler about single pods."""

    workers_to_delete: Annotated[
        tuple[Text, ...], Crd("Pods to be removed; each takes its whole slice along. Written by the autoscaler.")
    ] = ()


class WorkerGroupSpec(NodeGroup):
    """A group of like workers: `replicas` slices of `num_of_hosts` pods each.

    Numbers are as written: None where absent or null, and never clamped here (OC-12).
    """

    group_name: Annotated[Text, Crd("Name of the group.", required=True)]
    replicas: Annotated[Int32 | None, Crd("Slices wanted, kept within minReplicas and maxReplicas.", default=0)] = None
    min_replicas: Annotated[Int32 | None, Crd("Least number of slices.", required=True, default=0)] = None
    max_replicas: Annotated[Int32 | None, Crd("Greatest number of slices.", required=True, default=INT32_MAX)] = None
    num_of_hosts: Annotated[
        Int32 | None, Crd("Hosts (pods) of each slice, which live and die together.", default=1)
    ] = None
    idle_timeout_seconds: Annotated[
        Int32 | None, Crd("Seconds without work after which a slice may be removed (autoscaler v2).", v1_only=True)
    ] = None
    priority: Annotated[
        Int32 | None, Crd("Greater numbers are scaled up first (autoscaler v2).", default=0, v1_only=True)
    ] = None
    suspend: Annotated[Flag | None, Crd("Keep the group without pods.", v1_only=True)] = None
    scale_strategy: Annotated[ScaleStrategy | None, Crd("Orders of the autoscaler.")] = None

    @property
    def hosts(self) -> int:
        """Pods a slice. Anything below 1, or nothing, means 1: a CRD without the field must not delete workers (OC-13)."""
        return max(1, self.num_of_hosts or 1)

    @property
    def workers_to_delete(self) -> tuple[str, ...]:
        """Names of the pods that the autoscaler wants removed."""
        return self.scale_strategy.workers_to_delete if self.scale_strategy else ()
