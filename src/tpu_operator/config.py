"""What an administrator can set. A frozen value: whoever needs a setting is given it, nobody looks it up."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from typing_extensions import override

Seconds = Annotated[float, Field(ge=0)]
# No import of api.json: this module is a leaf.
JsonDict = dict[str, Any]


class Gate(StrEnum):
    """Feature gates of KubeRay v1.7 under its names."""

    STATUS_CONDITIONS = "RayClusterStatusConditions"
    JOB_DELETION_POLICY = "RayJobDeletionPolicy"
    MULTI_HOST_INDEXING = "RayMultiHostIndexing"
    SERVICE_INCREMENTAL_UPGRADE = "RayServiceIncrementalUpgrade"
    CRON_JOB = "RayCronJob"
    SIDECAR_SUBMITTER_RESTART = "SidecarSubmitterRestart"
    NETWORK_POLICY = "RayClusterNetworkPolicy"
    EMBEDDED_STORAGE = "GCSFaultToleranceEmbeddedStorage"
    MTLS = "RayClusterMTLS"
    HISTORY_SERVER = "RayClusterHistoryServer"
    KUBERNETES_WAS = "KubernetesWAS"


DEFAULT_GATES: Final[frozenset[str]] = frozenset(
    {
        Gate.STATUS_CONDITIONS,
        Gate.JOB_DELETION_POLICY,
        Gate.MULTI_HOST_INDEXING,
        Gate.SERVICE_INCREMENTAL_UPGRADE,
    }
)


def _switched(item: str) -> tuple[str, bool]:
    name, _, value = item.partition("=")
    if value.strip().lower() not in ("true", "false"):
        raise ValueError(
            f"feature gate {item!r}: write {name.strip() or 'Name'}=true or {name.strip() or 'Name'}=false"
        )
    return name.strip(), value.strip().lower() == "true"


def enabled_gates(value: object) -> object:
    """Names of the gates that are on, from `A=true,B=false` or `{A: true}` laid over the defaults; else `value`.

    Raises ValueError for a name that is no gate, so that a typing error does not silently leave a feature off.
    """
    if isinstance(value, str):
        value = dict(_switched(item) for item in value.split(",") if item.strip())
    if not isinstance(value, Mapping):
        return value
    if unknown := sorted(str(name) for name in value if name not in list(Gate)):
        raise ValueError(f"unknown feature gate {', '.join(unknown)}; known: {', '.join(Gate)}")
    return DEFAULT_GATES - {name for name, on in value.items() if not on} | {name for name, on in value.items() if on}


def _split(value: object) -> object:
    """`a, b` as an environment variable or flag has it (KubeRay does not trim, quirk 86)."""
    return tuple(part for part in map(str.strip, value.split(",")) if part) if isinstance(value, str) else value


class OperatorConfig(BaseModel):
    """Settings with their defaults. KubeRay's defaults where KubeRay has the setting."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    namespaces: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = ()
    """Namespaces to serve; none means all."""
    cluster_domain: str = "cluster.local"
    """Domain of the cluster's DNS, for the head's address."""

    init_container_injection: bool = True
    """Give workers the wait-gcs-ready init container."""
    probes_injection: bool = True
    """Give Ray containers liveness and readiness probes where the template has none."""
    login_shell: bool = False
    """Run the generated command with `bash -cl` instead of `bash -c`."""
    deterministic_head_pod_name: bool = False
    """Name the head pod `<cluster>-head` instead of letting its name be unique."""
    head_cluster_ip_service: bool = False
    """Give the head service a ClusterIP instead of making it headless."""

    default_pod_labels: Mapping[str, str] = Field(default_factory=dict)
    """Labels of all pods that have none of the same key."""
    default_pod_annotations: Mapping[str, str] = Field(default_factory=dict)
    """Annotations of all pods that have none of the same key."""
    default_container_envs: tuple[JsonDict, ...] = ()
    """Variables (core/v1 EnvVar) of all Ray containers that have none of the same name."""
    head_sidecar_containers: tuple[JsonDict, ...] = ()
    """Containers (core/v1 Container) beside Ray in head pods."""
    worker_sidecar_containers: tuple[JsonDict, ...] = ()
    """Containers (core/v1 Container) beside Ray in worker pods."""

    feature_gates: Annotated[frozenset[str], NoDecode, BeforeValidator(enabled_gates)] = DEFAULT_GATES
    """Gates that are on. Given as `A=true,B=false` or as a mapping, which is laid over the defaults."""

    random_pod_delete: bool = False
    """Let the operator itself choose victims of a scale-down although the autoscaler is on."""

    create_parallelism: Annotated[int, Field(ge=1)] = 64
    """Most API writes in flight, all clusters together."""
    concurrent_passes: Annotated[int, Field(ge=1)] = 64
    """Most RayClusters reconciled at the same time."""
    resync: Annotated[float, Field(gt=0)] = 300.0
    """Seconds after which a cluster is looked at even if nothing was heard of it."""
    stuck_pod_slack: Seconds = 10.0
    """Seconds after the end of its grace period at which a terminating pod no longer holds back a replacement."""
    status_interval: Seconds = 1.0
    """Least seconds between two status writes of a cluster."""
    log_level: str = "info"
    log_format: str = "console"
    """`console` for people, `json` for machines."""

    @override
    def __hash__(self) -> int:
        """Of what tells configurations apart in practice; the maps cannot be hashed."""
        return hash((self.namespaces, self.cluster_domain, self.feature_gates))

    def gate(self, name: str) -> bool:
        """Whether the feature gate of that name is on."""
        return name in self.feature_gates


class EnvironmentConfig(BaseSettings, OperatorConfig):
    """The same settings read from `TPU_OPERATOR_*` variables."""

    model_config = SettingsConfigDict(env_prefix="TPU_OPERATOR_", frozen=True, extra="forbid")
