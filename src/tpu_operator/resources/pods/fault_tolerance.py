"""GCS fault tolerance: the head comes back with what it knew, workers wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.pods.variables import fill_in, has, insist, literal
from tpu_operator.resources.pods.volumes import mount

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import GcsFaultToleranceOptions, RayCluster, RedisCredential
    from tpu_operator.resources.pods.draft import Draft, RayNode

_RECONNECT_SECONDS: Final = "600"
_STORAGE_PATH: Final = "/data/gcs"


def is_enabled(cluster: RayCluster) -> bool:
    """Whether it is on, by its options or by the older annotation."""
    annotated = cluster.annotations.get(names.FT_ENABLED, "").lower() == "true"
    return annotated or cluster.spec.gcs_fault_tolerance_options is not None


def uses_rocksdb(cluster: RayCluster) -> bool:
    """Whether the state is kept on a volume and not in Redis."""
    options = cluster.spec.gcs_fault_tolerance_options
    return options is not None and options.backend == "rocksdb"


def storage_namespace(cluster: RayCluster) -> str:
    """Prefix of the cluster's keys in Redis."""
    options = cluster.spec.gcs_fault_tolerance_options
    given = options and options.external_storage_namespace
    return given or cluster.annotations.get(names.EXTERNAL_STORAGE_NAMESPACE) or cluster.uid


def storage_claim(cluster: RayCluster) -> str:
    """PersistentVolumeClaim of the rocksdb backend."""
    options = cluster.spec.gcs_fault_tolerance_options
    storage = options and options.storage
    return (storage and storage.claim_name) or f"{cluster.name}-gcs-pvc"


def worker_patience(node: RayNode, draft: Draft) -> None:
    """Workers wait for a head that comes back."""
    if is_enabled(node.cluster):
        fill_in(draft.ray, literal("RAY_gcs_rpc_server_reconnect_timeout_s", _RECONNECT_SECONDS))


def head_storage(node: RayNode, draft: Draft) -> None:
    """Where the head keeps its state."""
    cluster = node.cluster
    draft.annotations[names.FT_ENABLED] = str(is_enabled(cluster)).lower()
    if not is_enabled(cluster):
        return
    if uses_rocksdb(cluster):
        _rocksdb(cluster, draft)
    else:
        _redis(cluster, draft)


def _rocksdb(cluster: RayCluster, draft: Draft) -> None:
    fill_in(draft.ray, literal("RAY_gcs_storage", "rocksdb"), literal("RAY_gcs_storage_path", _STORAGE_PATH))
    options = cluster.spec.gcs_fault_tolerance_options
    storage = options and options.storage
    sub_path = {"subPath": storage.sub_path} if storage and storage.sub_path else {}
    volume: JsonObject = {"name": "gcs-storage", "persistentVolumeClaim": {"claimName": storage_claim(cluster)}}
    mount(draft, draft.ray, volume, _STORAGE_PATH, **sub_path)


def _redis(cluster: RayCluster, draft: Draft) -> None:
    namespace = storage_namespace(cluster)
    draft.annotations[names.EXTERNAL_STORAGE_NAMESPACE] = namespace
    fill_in(draft.ray, literal("RAY_external_storage_namespace", namespace))
    if options := cluster.spec.gcs_fault_tolerance_options:
        insist(draft.ray, *_redis_access(options))
    elif (password := cluster.spec.head_group_spec.ray_start_params.get("redis-password")) and not has(
        draft.ray, "REDIS_PASSWORD"
    ):
        # The cleanup after the cluster's end reads it from here; it is the user's own text, a literal in KubeRay too.
        fill_in(draft.ray, literal("REDIS_PASSWORD", password))


def _redis_access(options: GcsFaultToleranceOptions) -> list[JsonObject]:
    access = [literal("RAY_REDIS_ADDRESS", options.redis_address)] if options.redis_address else []
    credentials = {"REDIS_USERNAME": options.redis_username, "REDIS_PASSWORD": options.redis_password}
    return access + [_credential(name, given) for name, given in credentials.items() if given]


def _credential(name: str, credential: RedisCredential) -> JsonObject:
    entry: JsonObject = {"name": name}
    if credential.value:
        entry["value"] = credential.value
    if credential.value_from:
        entry["valueFrom"] = credential.value_from
    return entry
