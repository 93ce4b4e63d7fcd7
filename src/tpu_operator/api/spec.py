"""The spec of a RayCluster."""

from typing import Annotated, Final, Literal, Self

from pydantic import Field

from tpu_operator.api.auth import AuthOptions
from tpu_operator.api.autoscaler import AutoscalerOptions
from tpu_operator.api.fault_tolerance import GcsFaultToleranceOptions
from tpu_operator.api.fields import ApiObject, Flag, Text, TextMap
from tpu_operator.api.groups import HeadGroupSpec, WorkerGroupSpec
from tpu_operator.api.history_server import HistoryServerOptions
from tpu_operator.api.network_policy import NetworkPolicyOptions
from tpu_operator.api.schema import Crd, Rule

KUBERAY_OPERATOR: Final = "ray.io/kuberay-operator"
MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"

MANAGER_IS_KNOWN: Final = Rule(
    f"self in ['{KUBERAY_OPERATOR}', '{MULTIKUEUE}']", f"managedBy must be {KUBERAY_OPERATOR} or {MULTIKUEUE}"
)
MANAGER_IS_FIXED: Final = Rule("self == oldSelf", "managedBy cannot be changed")


class UpgradeStrategy(ApiObject):
    """What happens to the pods when their template changes."""

    type: Annotated[
        Literal["Recreate", "None"] | None, Crd("Recreate replaces all pods when the pod templates change.")
    ] = None


class TlsOptions(ApiObject):
    """Mutual TLS between the nodes."""

    enabled: Annotated[Flag | None, Crd("Whether the nodes talk over TLS.")] = None


class RayClusterSpec(ApiObject):
    """What the user wants."""

    head_group_spec: Annotated[HeadGroupSpec, Crd("The head node.", required=True)]
    worker_group_specs: Annotated[tuple[WorkerGroupSpec, ...], Crd("The groups of workers.")] = ()
    ray_version: Annotated[Text | None, Crd("Version of Ray in the images, on which probes and checks depend.")] = None
    enable_in_tree_autoscaling: Annotated[Flag | None, Crd("Whether Ray's autoscaler runs beside the head.")] = None
    autoscaler_options: Annotated[AutoscalerOptions | None, Crd("Options of the autoscaler.")] = None
    head_service_annotations: Annotated[TextMap, Crd("Annotations of the head service.")] = Field(default_factory=dict)
    suspend: Annotated[Flag | None, Crd("Delete all pods and keep the rest; false starts the cluster again.")] = None
    managed_by: Annotated[
        Text | None,
        Crd(
            "Who acts on this object; others than ray.io/kuberay-operator make this operator leave it alone.",
            rules=(MANAGER_IS_FIXED, MANAGER_IS_KNOWN),
            v1_only=True,
        ),
    ] = None
    upgrade_strategy: Annotated[
        UpgradeStrategy | None, Crd("What happens when the pod templates change.", v1_only=True)
    ] = None
    auth_options: Annotated[AuthOptions | None, Crd("Authentication.", v1_only=True)] = None
    gcs_fault_tolerance_options: Annotated[
        GcsFaultToleranceOptions | None, Crd("Fault tolerance of the head.", v1_only=True)
    ] = None
    history_server_options: Annotated[
        HistoryServerOptions | None, Crd("Collection of logs and events.", v1_only=True)
    ] = None
    network_policy: Annotated[NetworkPolicyOptions | None, Crd("Isolation of the pods.", v1_only=True)] = None
    tls_options: Annotated[TlsOptions | None, Crd("Mutual TLS.", v1_only=True)] = None

    @property
    def autoscaling(self) -> bool:
        """Whether Ray's autoscaler runs beside the head."""
        return bool(self.enable_in_tree_autoscaling)

    @classmethod
    def empty(cls) -> Self:
        """Stands in for a spec of which nothing can be read."""
        return cls(head_group_spec=HeadGroupSpec(template={}))
