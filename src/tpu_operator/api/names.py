"""Names, labels and annotations that KubeRay made public and that other software relies on, and the few of ours.

Source: KubeRay v1.7 (labels and annotations of its pods and services, its name helpers). Where its helpers can make two
clusters share one child (quirk 8), `child_name` cuts with a hash instead.
"""

from __future__ import annotations

import hashlib
from typing import Final

# -- API ---------------------------------------------------------------------------------------------------------------
GROUP: Final = "ray.io"
VERSION: Final = "v1"
API_VERSION: Final = "ray.io/v1"
KIND: Final = "RayCluster"
PLURAL: Final = "rayclusters"
FIELD_MANAGER: Final = "tpu-operator"
REPORTING_CONTROLLER: Final = "raycluster-controller"

# -- labels ------------------------------------------------------------------------------------------------------------
CLUSTER: Final = "ray.io/cluster"
NODE_TYPE: Final = "ray.io/node-type"
NODE_GROUP: Final = "ray.io/group"
IDENTIFIER: Final = "ray.io/identifier"
IS_RAY_NODE: Final = "ray.io/is-ray-node"
SERVE: Final = "ray.io/serve"
REPLICA_NAME: Final = "ray.io/worker-group-replica-name"
REPLICA_INDEX: Final = "ray.io/worker-group-replica-index"
HOST_INDEX: Final = "ray.io/replica-host-index"
LEGACY_REPLICA_INDEX: Final = "replicaIndex"
HEADLESS_WORKER_SVC: Final = "ray.io/headless-worker-svc"
APP_NAME: Final = "app.kubernetes.io/name"
CREATED_BY: Final = "app.kubernetes.io/created-by"
ORIGINATED_FROM_CR: Final = "ray.io/originated-from-cr-name"
ORIGINATED_FROM_CRD: Final = "ray.io/originated-from-crd"
JOB_SUBMISSION_MODE: Final = "ray.io/job-submission-mode"

HEAD: Final = "head"
WORKER: Final = "worker"
REDIS_CLEANUP: Final = "redis-cleanup"
HEAD_GROUP: Final = "headgroup"
APP_NAME_VALUE: Final = "kuberay"
CREATED_BY_VALUE: Final = "kuberay-operator"

# -- annotations -------------------------------------------------------------------------------------------------------
FT_ENABLED: Final = "ray.io/ft-enabled"
EXTERNAL_STORAGE_NAMESPACE: Final = "ray.io/external-storage-namespace"
OVERWRITE_CONTAINER_CMD: Final = "ray.io/overwrite-container-cmd"
RECREATE_HASH: Final = "ray.io/upgrade-strategy-recreate-hash"
KUBERAY_VERSION: Final = "ray.io/kuberay-version"
DISABLE_HEAD_RESTART: Final = "ray.io/disable-provisioned-head-restart"
ENABLE_SERVE_SERVICE: Final = "ray.io/enable-serve-service"
GCS_FT_DELETION_TIMEOUT: Final = "ray.io/gcs-ft-deletion-timeout"
REDIS_FINALIZER: Final = "ray.io/gcs-ft-redis-cleanup-finalizer"

# Ours: how many hosts the slice had been built for. A slice is topped up only with hosts of the same number, so that
# a changed numOfHosts never mixes two sizes in one slice (quirk 29).
NUM_OF_HOSTS: Final = "tpu-operator.io/num-of-hosts"
# Ours: label of the pods of a multi-host TPU slice, one value for each incarnation of each slice of any cluster, by which
# the scheduler tells them apart. And an annotation of a pod template: which node label keeps the slice together.
SLICE: Final = "tpu-operator.io/slice"
SLICE_TOPOLOGY_KEY: Final = "tpu-operator.io/slice-topology-key"
# Ours: uid of the cluster that an object was made for. It tells whose a claim is that is to outlive its cluster, and so
# has no owner.
MADE_FOR: Final = "tpu-operator.io/made-for"

# -- ports -------------------------------------------------------------------------------------------------------------
GCS_PORT: Final = 6379
CLIENT_PORT: Final = 10001
DASHBOARD_PORT: Final = 8265
METRICS_PORT: Final = 8080
SERVE_PORT: Final = 8000
AGENT_PORT: Final = 52365

# -- limits ------------------------------------------------------------------------------------------------------------
MAX_CLUSTER_NAME: Final = 53
_POD_PREFIX: Final = 50
_LABEL: Final = 63
_HASH: Final = 8

# Characters of Kubernetes' generated names: no vowels, no look-alikes.
SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5


def head_prefix(cluster: str) -> str:
    """First 50 characters of the cluster's name, `-head`: generateName of the head pod without its dash."""
    return f"{cluster[:_POD_PREFIX]}-head".lower()


def worker_prefix(cluster: str, group: str) -> str:
    """First 50 characters of `<cluster>-<group>`, `-worker`: generateName of a worker pod without its dash."""
    return f"{f'{cluster}-{group}'[:_POD_PREFIX]}-worker".lower()


def suffix(*parts: str | int) -> str:
    """Five characters that look generated, a function of `parts` only (the nonce of the pass is one of them)."""
    digest = hashlib.blake2b("\0".join(str(part) for part in parts).encode(), digest_size=8).digest()
    number = int.from_bytes(digest, "big")
    letters = []
    for _ in range(SUFFIX_LENGTH):
        number, index = divmod(number, len(SUFFIX_ALPHABET))
        letters.append(SUFFIX_ALPHABET[index])
    return "".join(letters)


def head_service(cluster: str) -> str:
    """Name of the head service unless the user's headService has a name of its own."""
    return f"{cluster}-head-svc"


def headless_service(cluster: str) -> str:
    """Name of the service under which all hosts of all slices resolve; subdomain and TPU environment use it too."""
    return f"{cluster}-headless"


def serve_service(cluster: str) -> str:
    """Name of the service for Ray Serve."""
    return f"{cluster}-serve-svc"


def identifier(cluster: str, node_type: str) -> str:
    """Value of the identifier label, which fits because cluster names are at most 53 characters long."""
    return f"{cluster}-{node_type}"[-_LABEL:].lstrip("-._")


def fqdn(service: str, namespace: str, domain: str) -> str:
    """Name of a service that resolves from every namespace."""
    return f"{service}.{namespace}.svc.{domain}"


def child_name(name: str, limit: int = _POD_PREFIX) -> str:
    """`name` if it fits and starts with a letter, else cut with a hash of the whole, so that two never become one.

    KubeRay keeps the last 50 characters and turns a leading digit into `r`, by which different clusters came to share
    a Role or a token Secret (quirk 8).
    """
    if len(name) <= limit and name[:1].isalpha():
        return name
    digest = hashlib.blake2b(name.encode(), digest_size=_HASH // 2).hexdigest()
    stem = name if name[:1].isalpha() else f"r{name}"
    return f"{stem[: limit - _HASH - 1].rstrip('-.')}-{digest}"


def controller_reference(cluster: str, uid: str) -> dict[str, str | bool]:
    """Owner reference by which Kubernetes collects the children of a deleted RayCluster."""
    return {
        "apiVersion": API_VERSION,
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": KIND,
        "name": cluster,
        "uid": uid,
    }
