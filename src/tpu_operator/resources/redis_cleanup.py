"""The Job that removes what a deleted cluster has left in Redis."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.owned import owned
from tpu_operator.resources.pods.autoscaler import own_service_account
from tpu_operator.resources.pods.command import bash
from tpu_operator.resources.pods.fault_tolerance import is_enabled, uses_rocksdb
from tpu_operator.resources.pods.head import head_pod
from tpu_operator.resources.pods.variables import insist, literal
from tpu_operator.resources.tree import listed, mapping, objects, text_list

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig

API_VERSION: Final = "batch/v1"
KIND: Final = "Job"
DEADLINE_SECONDS: Final = 300
_JOB_NAME: Final = 63

# Forms of RAY_REDIS_ADDRESS: host:port, redis:// or rediss:// before it, several with commas, of which one is enough.
# Ray's function says by its result whether the keys are gone; older ones take no user name.
_SCRIPT: Final = """\
python - <<'END'
import os, sys
from urllib.parse import urlsplit

from ray._private.gcs_utils import cleanup_redis_storage

address = os.environ["RAY_REDIS_ADDRESS"].split(",")[0].strip()
url = urlsplit(address if "://" in address else "redis://" + address)
namespace = os.environ["RAY_external_storage_namespace"]
options = {"username": os.environ["REDIS_USERNAME"]} if os.environ.get("REDIS_USERNAME") else {}
print(f"removing the keys of {namespace} from Redis at {url.hostname}:{url.port or 6379}", flush=True)
done = cleanup_redis_storage(
    host=url.hostname,
    port=url.port or 6379,
    password=os.environ.get("REDIS_PASSWORD") or url.password or "",
    use_ssl=url.scheme == "rediss",
    storage_namespace=namespace,
    **options,
)
sys.exit(0 if done else 1)
END
"""

# What the pod needs to be let in, to get its image and to find Redis where the head found it. All else of the head is
# left out: what it asked of the scheduler about other pods, its claims on devices, its probes and sidecars (quirk 19).
_KEPT_OF_POD: Final = (
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "hostAliases",
    "hostNetwork",
    "hostUsers",
    "imagePullSecrets",
    "nodeSelector",
    "os",
    "priorityClassName",
    "runtimeClassName",
    "securityContext",
    "tolerations",
)
_KEPT_OF_CONTAINER: Final = (
    "name",
    "image",
    "imagePullPolicy",
    "env",
    "envFrom",
    "securityContext",
    "volumeMounts",
    "workingDir",
)


class JobState(Enum):
    """How a Job stands."""

    RUNNING = auto()
    SUCCEEDED = auto()
    FAILED = auto()


def is_needed(cluster: RayCluster, config: OperatorConfig) -> bool:
    """Whether the cluster keeps state in Redis that is to be removed with it."""
    return config.redis_cleanup and is_enabled(cluster) and not uses_rocksdb(cluster)


def is_possible(cluster: RayCluster) -> bool:
    """Whether the Job can be built: it runs in the head's image."""
    return bool((cluster.spec.head_group_spec.ray_container or {}).get("image"))


def cleanup_job_name(cluster: RayCluster) -> str:
    """Name of the Job: KubeRay's while it fits, else cut with a hash (quirk 20, NM-05)."""
    return names.child_name(f"{cluster.name}-redis-cleanup", _JOB_NAME)


def cleanup_job_names(cluster: RayCluster) -> tuple[str, ...]:
    """The one name that a Job of the cluster has."""
    return (cleanup_job_name(cluster),)


def no_jobs(_: RayCluster, __: OperatorConfig) -> tuple[JsonObject, ...]:
    """A cluster that lives has none."""
    return ()


def cleanup_job(cluster: RayCluster, config: OperatorConfig) -> JsonObject:
    """The Job: one try of the head's image, with the head's variables, so that it reaches Redis as the head did."""
    # A gang of which the other members are gone would never be scheduled.
    head = head_pod(cluster, config.model_copy(update={"batch_scheduler": ""}), name="", recreate_hash="")
    metadata = mapping(head["metadata"])
    labels: JsonObject = {
        **mapping(metadata.get("labels")),
        names.CLUSTER: cluster.name,
        names.NODE_TYPE: names.REDIS_CLEANUP,
    }
    stamps = (names.RECREATE_HASH, names.KUBERAY_VERSION)
    annotations: JsonObject = {k: v for k, v in mapping(metadata.get("annotations")).items() if k not in stamps}
    pod: JsonObject = {
        "metadata": {"labels": {**labels}, "annotations": {**annotations}},
        "spec": _pod_spec(mapping(head["spec"]), cluster, config),
    }
    manifest = owned(
        cluster, API_VERSION, KIND, cleanup_job_name(cluster), labels=labels, annotations=annotations or None
    )
    spec: JsonObject = {"backoffLimit": 0, "activeDeadlineSeconds": DEADLINE_SECONDS, "template": pod}
    return {**manifest, "spec": spec}


def _pod_spec(head: JsonObject, cluster: RayCluster, config: OperatorConfig) -> JsonObject:
    container = _container(objects(head["containers"])[0], config)
    spec: JsonObject = {field: head[field] for field in _KEPT_OF_POD if field in head}
    spec |= {"restartPolicy": "Never", "containers": [container]}
    if node_affinity := mapping(head.get("affinity")).get("nodeAffinity"):
        spec["affinity"] = {"nodeAffinity": node_affinity}
    if account := own_service_account(cluster):
        spec["serviceAccountName"] = account
    # Such a container may be the way to Redis; one that runs before the others and ends may wait for what never comes.
    if proxies := [c for c in objects(head.get("initContainers")) if c.get("restartPolicy") == "Always"]:
        spec["initContainers"] = listed(proxies)
    if volumes := _mounted(objects(head.get("volumes")), [container, *proxies]):
        spec["volumes"] = listed(volumes)
    return spec


def _mounted(volumes: list[JsonObject], containers: list[JsonObject]) -> list[JsonObject]:
    mounts = {mount.get("name") for container in containers for mount in objects(container.get("volumeMounts"))}
    return [volume for volume in volumes if volume.get("name") in mounts]


def _container(ray: JsonObject, config: OperatorConfig) -> JsonObject:
    size: JsonObject = {"cpu": "200m", "memory": "256Mi"}
    container: JsonObject = {field: ray[field] for field in _KEPT_OF_CONTAINER if field in ray}
    insist(
        container,
        literal("RAY_redis_db_connect_retries", "120"),
        literal("RAY_redis_db_connect_wait_milliseconds", "500"),
    )
    return container | {
        "command": text_list(bash(config)),
        "args": [_SCRIPT],
        "resources": {"limits": {**size}, "requests": {**size}},
    }


def job_state(job: JsonObject) -> JobState:
    """How the Job stands; one that is certain to fail has failed."""
    conditions = objects(mapping(job.get("status")).get("conditions"))
    true = {condition.get("type") for condition in conditions if condition.get("status") == "True"}
    if "Complete" in true:
        return JobState.SUCCEEDED
    return JobState.FAILED if true & {"Failed", "FailureTarget"} else JobState.RUNNING


def failure_text(job: JsonObject) -> str:
    """Why the Job failed, in the words of the Job's controller."""
    for condition in objects(mapping(job.get("status")).get("conditions")):
        if condition.get("type") in ("Failed", "FailureTarget") and condition.get("status") == "True":
            return f"{condition.get('reason')}: {condition.get('message')}"
    return ""
