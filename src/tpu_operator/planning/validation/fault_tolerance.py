"""Rules of GCS fault tolerance: one way to tell each thing, and nothing of the other backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.config import Gate
from tpu_operator.planning.validation.containers import (
    container_env,
    env_path,
    objects,
    occupied_mounts,
    ray_container_path,
)
from tpu_operator.planning.validation.mistake import HEAD, gate_off, spec_mistake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.fault_tolerance import GcsFaultToleranceOptions
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.planning.plan import Blocker

OPTIONS: Final = "spec.gcsFaultToleranceOptions"
FT_ANNOTATION: Final = f"metadata.annotations[{names.FT_ENABLED}]"
REDIS_ADDRESS: Final = "RAY_REDIS_ADDRESS"
GCS_VOLUME: Final = "gcs-storage"
GCS_PATH: Final = "/data/gcs"
_RAY_CONTAINER: Final = ray_container_path(HEAD)


def _has_env(cluster: RayCluster, name: str) -> bool:
    return container_env(cluster.spec.head_group_spec.ray_container, name) is not None


def annotation_and_options(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 5: even `ft-enabled: "false"` beside the options is ambiguous."""
    if cluster.annotations.get(names.FT_ENABLED) and cluster.spec.gcs_fault_tolerance_options:
        message = f"is set together with {OPTIONS}"
        yield spec_mistake(FT_ANNOTATION, message, "remove the annotation; the options alone turn fault tolerance on")


def redis_without_fault_tolerance(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 6."""
    annotated = cluster.annotations.get(names.FT_ENABLED, "").lower() == "true"
    enabled = annotated or cluster.spec.gcs_fault_tolerance_options is not None
    if not enabled and _has_env(cluster, REDIS_ADDRESS):
        field = env_path(_RAY_CONTAINER, REDIS_ADDRESS)
        fix = f"set {OPTIONS}.redisAddress instead, or remove the variable"
        yield spec_mistake(field, "is set, but GCS fault tolerance is off", fix)


def options_told_twice(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 7: beside the options, the older ways to say the same are refused."""
    if cluster.spec.gcs_fault_tolerance_options is None:
        return
    message = f"is set together with {OPTIONS}"
    if cluster.spec.head_group_spec.ray_start_params.get("redis-password"):
        field = f"{HEAD}.rayStartParams.redis-password"
        yield spec_mistake(field, message, f"move it to {OPTIONS}.redisPassword")
    for name, option in (("REDIS_PASSWORD", "redisPassword"), (REDIS_ADDRESS, "redisAddress")):
        if _has_env(cluster, name):
            yield spec_mistake(env_path(_RAY_CONTAINER, name), message, f"move it to {OPTIONS}.{option}")
    if cluster.annotations.get(names.EXTERNAL_STORAGE_NAMESPACE):
        field = f"metadata.annotations[{names.EXTERNAL_STORAGE_NAMESPACE}]"
        yield spec_mistake(field, message, f"move it to {OPTIONS}.externalStorageNamespace")


def redis_username(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 9: with or without fault tolerance."""
    fix = f"move it to {OPTIONS}.redisUsername"
    if cluster.spec.head_group_spec.ray_start_params.get("redis-username"):
        yield spec_mistake(f"{HEAD}.rayStartParams.redis-username", "is not allowed", fix)
    if _has_env(cluster, "REDIS_USERNAME"):
        yield spec_mistake(env_path(_RAY_CONTAINER, "REDIS_USERNAME"), "is not allowed", fix)


def backend(cluster: RayCluster, config: OperatorConfig) -> Iterator[Blocker]:
    """Rule 8: what belongs to the other backend is refused."""
    options = cluster.spec.gcs_fault_tolerance_options
    if options is None:
        return
    if options.backend != "rocksdb":
        if options.storage is not None:
            fix = f"remove storage, or set {OPTIONS}.backend to rocksdb"
            yield spec_mistake(f"{OPTIONS}.storage", "is used by the backend rocksdb only", fix)
        return
    if not config.gate(Gate.EMBEDDED_STORAGE):
        yield gate_off(f"{OPTIONS}.backend", Gate.EMBEDDED_STORAGE)
    yield from _redis_fields(options)
    yield from _own_claim(options)
    yield from _head_collisions(cluster)


def _redis_fields(options: GcsFaultToleranceOptions) -> Iterator[Blocker]:
    given = {
        "redisAddress": options.redis_address,
        "redisUsername": options.redis_username,
        "redisPassword": options.redis_password,
        "externalStorageNamespace": options.external_storage_namespace,
    }
    for name, value in given.items():
        if value:
            fix = f"remove {name}, or set {OPTIONS}.backend to redis"
            yield spec_mistake(f"{OPTIONS}.{name}", "is used by the backend redis only", fix)


def _own_claim(options: GcsFaultToleranceOptions) -> Iterator[Blocker]:
    storage = options.storage
    if storage is None or not storage.claim_name:
        return
    given = {"size": storage.size, "storageClassName": storage.storage_class_name, "accessModes": storage.access_modes}
    for name, value in given.items():
        if value:
            message = "describes a claim to create, but claimName names one that is there"
            fix = f"remove {name}, or remove claimName"
            yield spec_mistake(f"{OPTIONS}.storage.{name}", message, fix)


def _head_collisions(cluster: RayCluster) -> Iterator[Blocker]:
    head = cluster.spec.head_group_spec
    message, fix = "is set by the operator itself for the backend rocksdb", "remove it"
    for name in ("RAY_gcs_storage", "RAY_gcs_storage_path"):
        if _has_env(cluster, name):
            yield spec_mistake(env_path(_RAY_CONTAINER, name), message, fix)
    for path in occupied_mounts(head.ray_container, _RAY_CONTAINER, GCS_VOLUME, GCS_PATH):
        yield spec_mistake(
            path, f"collides with the operator's mount {GCS_VOLUME} at {GCS_PATH}", "use another name and path"
        )
    for index, volume in enumerate(objects(head.pod_spec.get("volumes"))):
        if volume.get("name") == GCS_VOLUME:
            field = f"{HEAD}.template.spec.volumes[{index}].name"
            yield spec_mistake(field, f"{GCS_VOLUME} is the operator's own volume", "give the volume another name")
