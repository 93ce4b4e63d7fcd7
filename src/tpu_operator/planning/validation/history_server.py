"""Rules of the history server's collector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.config import Gate
from tpu_operator.planning.validation.containers import env_entry, env_path
from tpu_operator.planning.validation.mistake import gate_off, spec_mistake
from tpu_operator.planning.validation.node_groups import node_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.planning.plan import Blocker

OPTIONS: Final = "spec.historyServerOptions"
COLLECTOR: Final = f"{OPTIONS}.collectorOptions"
COLLECTOR_CONTAINER: Final = "ray-history-collector"
OWN_ENV: Final = (
    "POD_IP",
    "FQ_RAY_IP",
    "RAY_CLUSTER_NAME",
    "RAY_CLUSTER_NAMESPACE",
    "RAY_ROLE",
    "OWNER_KIND",
    "OWNER_NAME",
    "EVENTS_PORT",
)
BACKEND: Final = "STORAGE_BACKEND"
BACKEND_ENV: Final = {
    "GCS": ("GCS_BUCKET",),
    "S3": ("S3_REGION",),
    "ALIYUNOSS": ("OSS_BUCKET", "OSS_ENDPOINT", "OSS_REGION"),
}
AZURE_CONNECTION: Final = "AZURE_STORAGE_CONNECTION_STRING"
AZURE_ACCOUNT: Final = "AZURE_STORAGE_ACCOUNT_URL"
AZURE_AUTH_MODE: Final = "AZURE_STORAGE_AUTH_MODE"


def history_server_gate(cluster: RayCluster, config: OperatorConfig) -> Iterator[Blocker]:
    """Rule 15, first part."""
    if cluster.spec.history_server_options is not None and not config.gate(Gate.HISTORY_SERVER):
        yield gate_off(OPTIONS, Gate.HISTORY_SERVER)


def collector(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 15: the collector must be given its image and where to store."""
    options = cluster.spec.history_server_options
    if options is None:
        return
    given = options.collector_options
    if given is None:
        yield spec_mistake(COLLECTOR, "is missing", "add collectorOptions with image and env STORAGE_BACKEND")
        return
    if not given.image:
        yield spec_mistake(f"{COLLECTOR}.image", "is missing", "set the image of the collector")
    for name in OWN_ENV:
        if env_entry(given.env, name):
            yield spec_mistake(env_path(COLLECTOR, name), "is set by the operator itself", "remove it")
    yield from _storage(given.env)


def _value(env: Sequence[JsonObject], name: str) -> str:
    entry = env_entry(env, name)
    return str(entry.get("value") or "") if entry else ""


def _storage(env: Sequence[JsonObject]) -> Iterator[Blocker]:
    backend = _value(env, BACKEND).upper()
    if not backend:
        message = "is missing, or has no literal value"
        yield spec_mistake(env_path(COLLECTOR, BACKEND), message, "set it to GCS, S3, AZUREBLOB or ALIYUNOSS")
        return
    if backend == "AZUREBLOB":
        yield from _azure(env)
    for name in BACKEND_ENV.get(backend, ()):
        if not env_entry(env, name):
            yield _needed(name, f"storage backend {backend}")


def _azure(env: Sequence[JsonObject]) -> Iterator[Blocker]:
    mode = _value(env, AZURE_AUTH_MODE).lower()
    if mode == "connection_string" and not env_entry(env, AZURE_CONNECTION):
        yield _needed(AZURE_CONNECTION, f"auth mode {mode}")
    elif mode in ("workload_identity", "default") and not env_entry(env, AZURE_ACCOUNT):
        yield _needed(AZURE_ACCOUNT, f"auth mode {mode}")
    elif not (env_entry(env, AZURE_CONNECTION) or env_entry(env, AZURE_ACCOUNT)):
        yield _needed(AZURE_CONNECTION, f"storage backend AZUREBLOB, if {AZURE_ACCOUNT} is not given")


def _needed(name: str, by: str) -> Blocker:
    return spec_mistake(env_path(COLLECTOR, name), f"is needed by {by}", f"add the variable {name}")


def collector_name_free(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 15, last part."""
    if cluster.spec.history_server_options is None:
        return
    for path, group in node_groups(cluster):
        for index, container in enumerate(group.containers):
            if container.get("name") == COLLECTOR_CONTAINER:
                field = f"{path}.template.spec.containers[{index}].name"
                fix = "rename the container, or remove historyServerOptions"
                yield spec_mistake(field, f"{COLLECTOR_CONTAINER} is the operator's own container", fix)
