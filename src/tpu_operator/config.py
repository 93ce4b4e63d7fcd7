"""What an administrator can set. A frozen value: whoever needs a setting is given it, nobody looks it up.

A setting is one field of OperatorConfig. Its flag, environment variable, key in a file, help and documentation follow
from the field's name, type, default, docstring and the names that KubeRay has for it (see cli/setting.py).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from typing_extensions import override

Seconds = Annotated[float, Field(ge=0)]
SomeSeconds = Annotated[float, Field(gt=0)]
# No import of api.json: this module is a leaf.
JsonDict = dict[str, Any]

BatchScheduler: TypeAlias = Literal["", "volcano", "yunikorn", "scheduler-plugins", "kai-scheduler"]

A_DAY: Final = 86400.0


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


@dataclass(frozen=True, slots=True)
class KubeRay:
    """Names that KubeRay v1.7 has for a setting: of its flag, environment variable and key in a Configuration file.

    `read` turns the text of its variable into a value of ours where the two mean different things.
    """

    flag: str = ""
    env: str = ""
    key: str = ""
    read: Callable[[str], object] | None = None


@dataclass(frozen=True, slots=True)
class Also:
    """Further flags of ours for a setting."""

    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddsUp:
    """What one source gives is laid over what weaker sources give; `read` makes the mapping that is laid over."""

    read: Callable[[object], Mapping[str, bool]]


@dataclass(frozen=True, slots=True)
class NotYet:
    """The setting is accepted and has no effect in this version."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?` for the closest of `known`, or nothing where none is close."""
    by_lower = {item.lower(): item for item in known}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=1)
    return f"; did you mean {by_lower[close[0]]}?" if close else ""


def _switched(item: str) -> tuple[str, bool]:
    name, _, value = item.partition("=")
    name, value = name.strip(), value.strip().lower()
    if value not in ("true", "false"):
        raise ValueError(f"feature gate {item!r}: write {name or 'Name'}=true or {name or 'Name'}=false")
    return name, value == "true"


def given_gates(value: object) -> Mapping[str, bool]:
    """Gates and their states from `A=true,B=false`, `{A: true}` or, as in Helm values, `[{name: A, enabled: true}]`.

    Raises ValueError for a name that is no gate, so that a typing error does not silently leave a feature off.
    """
    if isinstance(value, str):
        given: Mapping[Any, Any] = dict(_switched(item) for item in value.split(",") if item.strip())
    elif isinstance(value, list | tuple):
        given = dict(_named(item) for item in value)
    elif isinstance(value, Mapping):
        given = value
    else:
        raise ValueError(f"feature gates {value!r}: write A=true,B=false or a mapping of names to true or false")  # noqa: TRY004  (pydantic turns only ValueError into its own)
    for name, on in given.items():
        if name not in list(Gate):
            raise ValueError(f"unknown feature gate {name}{did_you_mean(str(name), Gate)}; known: {', '.join(Gate)}")
        if not isinstance(on, bool):
            raise ValueError(f"feature gate {name}: {on!r} is neither true nor false")  # noqa: TRY004
    return given


def _named(item: object) -> tuple[object, object]:
    if not isinstance(item, Mapping) or item.keys() != {"name", "enabled"}:
        raise ValueError(f"feature gate {item!r}: write {{name: Name, enabled: true}}")
    return item["name"], item["enabled"]


def enabled_gates(value: object) -> object:
    """Names of the gates that are on, from what `given_gates` reads laid over the defaults; a set of names as it is."""
    if isinstance(value, frozenset | set):
        return frozenset(value)
    given = given_gates(value)
    return DEFAULT_GATES - {name for name, on in given.items() if not on} | {name for name, on in given.items() if on}


def _split(value: object) -> object:
    """`a, b` as an environment variable or flag has it (KubeRay does not trim, quirk 86)."""
    if isinstance(value, str):
        value = [part for part in map(str.strip, value.split(",")) if part]
    return tuple(value) if isinstance(value, list) else value


def _namespaces(value: tuple[str, ...]) -> tuple[str, ...]:
    for name in value:
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
            raise ValueError(f"{name!r} is no name of a namespace: lower case letters, digits and dashes, at most 63")
    return tuple(dict.fromkeys(value))


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _address(value: str) -> str:
    if value != "0" and not re.fullmatch(r"[^\s]*:\d{1,5}", value):
        raise ValueError(f"{value!r} is no address: write :8080, 127.0.0.1:8080, or 0 for none")
    return value


def _rare_resync(text: str) -> object:
    """KubeRay's 0 and below mean never; changes that a watch has lost would then never be found, so: once a day."""
    try:
        seconds = int(text)
    except ValueError:
        return text
    return seconds if seconds > 0 else A_DAY


Address = Annotated[str, AfterValidator(_address)]
Containers = Annotated[tuple[JsonDict, ...], BeforeValidator(_tuple)]


class OperatorConfig(BaseModel):
    """Settings with their defaults. KubeRay's defaults where KubeRay has the setting."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    namespaces: Annotated[
        tuple[str, ...],
        BeforeValidator(_split),
        AfterValidator(_namespaces),
        KubeRay(flag="watch-namespace", key="watchNamespace"),
        Also(("namespace", "n")),
    ] = ()
    """Namespaces to serve; none means all."""
    cluster_domain: Annotated[str, KubeRay(env="CLUSTER_DOMAIN")] = "cluster.local"
    """Domain of the cluster's DNS, for the head's address."""

    init_container_injection: Annotated[bool, KubeRay(env="ENABLE_INIT_CONTAINER_INJECTION")] = True
    """Give workers the wait-gcs-ready init container."""
    probes_injection: Annotated[bool, KubeRay(env="ENABLE_PROBES_INJECTION")] = True
    """Give Ray containers liveness and readiness probes where the template has none."""
    login_shell: Annotated[bool, KubeRay(env="ENABLE_LOGIN_SHELL")] = False
    """Run the generated command with `bash -cl` instead of `bash -c`."""
    deterministic_head_pod_name: Annotated[bool, KubeRay(env="ENABLE_DETERMINISTIC_HEAD_POD_NAME")] = False
    """Name the head pod `<cluster>-head` instead of letting its name be unique."""
    head_cluster_ip_service: Annotated[bool, KubeRay(env="ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE")] = False
    """Give the head service a ClusterIP instead of making it headless."""
    ingress_on_openshift: Annotated[bool, KubeRay(env="USE_INGRESS_ON_OPENSHIFT")] = False
    """Make an Ingress on OpenShift too, instead of a Route."""
    redis_cleanup: Annotated[bool, KubeRay(env="ENABLE_GCS_FT_REDIS_CLEANUP")] = True
    """Hold back the deletion of a cluster with GCS fault tolerance until a Job has removed its data from Redis."""

    default_pod_labels: Annotated[Mapping[str, str], KubeRay(key="defaultPodLabels")] = Field(default_factory=dict)
    """Labels of all pods that have none of the same key."""
    default_pod_annotations: Annotated[Mapping[str, str], KubeRay(key="defaultPodAnnotations")] = Field(
        default_factory=dict
    )
    """Annotations of all pods that have none of the same key."""
    default_container_envs: Annotated[Containers, KubeRay(key="defaultContainerEnvs")] = ()
    """Variables (core/v1 EnvVar) of all Ray containers that have none of the same name."""
    head_sidecar_containers: Annotated[Containers, KubeRay(key="headSidecarContainers")] = ()
    """Containers (core/v1 Container) beside Ray in head pods."""
    worker_sidecar_containers: Annotated[Containers, KubeRay(key="workerSidecarContainers")] = ()
    """Containers (core/v1 Container) beside Ray in worker pods."""

    batch_scheduler: Annotated[BatchScheduler, KubeRay(flag="batch-scheduler", key="batchScheduler")] = ""
    """Scheduler that the pods are meant for; it gets the queue, the gang and their sizes in its own way."""

    tpu_environment: Literal["auto", "always", "never"] = "auto"
    """Tell TPU containers the shape of their slice, as GKE's node plugin does; `auto` leaves that to GKE on GKE."""
    slice_topology_key: str = "cloud.google.com/gke-nodepool"
    """Node label that the hosts of a TPU slice must have in common, and no two slices; `none` for no such rule."""

    feature_gates: Annotated[
        frozenset[str], BeforeValidator(enabled_gates), AddsUp(given_gates), KubeRay(flag="feature-gates")
    ] = DEFAULT_GATES
    """Gates to turn on or off, `A=true,B=false` or a mapping; what is not named keeps its default."""

    network_policy_dns: bool = True
    """Let pods ask for names where a network policy of the RayCluster denies all that goes out."""

    random_pod_delete: Annotated[bool, KubeRay(env="ENABLE_RANDOM_POD_DELETE")] = False
    """Let the operator itself choose victims of a scale-down although the autoscaler is on."""

    create_parallelism: Annotated[int, Field(ge=1)] = 24
    """Most API writes in flight, all clusters together."""
    concurrent_passes: Annotated[
        int, Field(ge=1), KubeRay(flag="reconcile-concurrency", key="reconcileConcurrency")
    ] = 64
    """Most RayClusters reconciled at the same time."""
    resync: Annotated[SomeSeconds, KubeRay(env="RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", read=_rare_resync)] = 300.0
    """Seconds after which a cluster is looked at even if nothing was heard of it."""
    stuck_pod_slack: Seconds = 10.0
    """Seconds after the end of its grace period at which a terminating pod no longer holds back a replacement."""
    status_interval: Seconds = 1.0
    """Least seconds between two status writes of a cluster."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severity of what is logged."""
    log_format: Annotated[Literal["console", "json"], KubeRay(flag="log-stdout-encoder", key="logStdoutEncoder")] = (
        "console"
    )
    """`console` for people, `json` for machines."""
    log_file: Annotated[str, KubeRay(flag="log-file-path", key="logFile"), NotYet()] = ""
    """File that the log is written to as well; none by default."""
    log_file_format: Annotated[
        Literal["console", "json"], KubeRay(flag="log-file-encoder", key="logFileEncoder"), NotYet()
    ] = "json"
    """Format of the log in `log_file`."""

    metrics_address: Annotated[Address, KubeRay(flag="metrics-addr", key="metricsAddr"), NotYet()] = ":8080"
    """Where /metrics is served; 0 for nowhere."""
    health_address: Annotated[Address, KubeRay(flag="health-probe-bind-address", key="probeAddr"), NotYet()] = ":8082"
    """Where /healthz and /readyz are served; 0 for nowhere."""
    cluster_metrics: Annotated[bool, KubeRay(flag="enable-metrics", key="enableMetrics"), NotYet()] = False
    """Serve metrics of single clusters (kuberay_*) beside those of the operator."""

    webhook: Annotated[bool, KubeRay(env="ENABLE_WEBHOOKS"), NotYet()] = False
    """Serve the validating admission webhook."""
    webhook_address: Annotated[Address, NotYet()] = ":9443"
    """Where the webhook is served."""

    leader_election: Annotated[bool, KubeRay(flag="enable-leader-election", key="enableLeaderElection"), NotYet()] = (
        True
    )
    """Act only while holding a Lease, so that several replicas may run."""
    leader_election_namespace: Annotated[
        str, KubeRay(flag="leader-election-namespace", key="leaderElectionNamespace"), NotYet()
    ] = ""
    """Namespace of the Lease; the operator's own by default."""
    lease_name: Annotated[str, NotYet()] = "tpu-operator-leader"
    """Name of the Lease."""
    lease_duration: Annotated[SomeSeconds, NotYet()] = 15.0
    """Seconds after which others may take a Lease that is not renewed."""
    renew_deadline: Annotated[SomeSeconds, NotYet()] = 10.0
    """Seconds after the last renewal at which a leader stops acting; less than lease_duration."""
    retry_period: Annotated[SomeSeconds, NotYet()] = 2.0
    """Seconds between two tries to get or renew the Lease; less than renew_deadline."""

    @model_validator(mode="after")
    def _lease_times_fit(self) -> Self:
        if not self.retry_period < self.renew_deadline < self.lease_duration:
            raise ValueError(
                f"retry_period < renew_deadline < lease_duration must hold, "
                f"got {self.retry_period:g}, {self.renew_deadline:g}, {self.lease_duration:g}"
            )
        return self

    @override
    def __hash__(self) -> int:
        """Of what tells configurations apart in practice; the maps cannot be hashed."""
        return hash((self.namespaces, self.cluster_domain, self.feature_gates))

    def gate(self, name: str) -> bool:
        """Whether the feature gate of that name is on."""
        return name in self.feature_gates
