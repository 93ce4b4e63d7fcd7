"""The RayClusters that are applied, and what a bare client needs to do the same."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.ledger import FLOOR_PREFIX

Object = dict[str, Any]

NAMESPACE = "bench"
GROUP = "tpu"
PAD_BYTES = 5_500
RAY_IMAGE = "rayproject/ray:2.55.0"
TPU_SELECTOR = {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "4x4"}
TPU_HOSTS = 4


def ray_cluster(name: str, replicas: int, *, hosts: int = TPU_HOSTS, termination: int = 30) -> Object:
    """Build a RayCluster of one head and `replicas` slices, each pod template about 6 KB.

    `hosts` is 4 (TPU slices of 4x4 chips) or 1 (plain workers).
    """
    tpu = hosts == TPU_HOSTS
    limits = {"cpu": "1", "memory": "1Gi"} | ({"google.com/tpu": "4"} if tpu else {})
    worker = _template("ray-worker", limits, termination)
    if tpu:
        worker["spec"]["nodeSelector"] = dict(TPU_SELECTOR)
    group = {
        "groupName": GROUP,
        "replicas": replicas,
        "minReplicas": 0,
        "maxReplicas": 100_000,
        "numOfHosts": hosts,
        "rayStartParams": {},
        "template": worker,
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "rayVersion": "2.55.0",
            "headGroupSpec": {
                "rayStartParams": {},
                "template": _template("ray-head", {"cpu": "1", "memory": "2Gi"}, termination),
            },
            "workerGroupSpecs": [group],
        },
    }


def _template(container: str, limits: Mapping[str, str], termination: int) -> Object:
    return {
        "spec": {
            "terminationGracePeriodSeconds": termination,
            "containers": [
                {
                    "name": container,
                    "image": RAY_IMAGE,
                    "env": [{"name": "PAD", "value": "x" * PAD_BYTES}],
                    "resources": {"limits": dict(limits), "requests": dict(limits)},
                }
            ],
        }
    }


def scale_down(replicas: int, workers_to_delete: list[str]) -> list[Object]:
    """Build the JSON patch by which Ray's autoscaler makes a group smaller: the new number, and who goes."""
    return [
        {"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": replicas},
        {
            "op": "add",
            "path": "/spec/workerGroupSpecs/0/scaleStrategy",
            "value": {"workersToDelete": workers_to_delete},
        },
    ]


_SERVER_META = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink")
_DEFAULTED_SPEC = (
    "dnsPolicy",
    "enableServiceLinks",
    "preemptionPolicy",
    "priority",
    "schedulerName",
    "securityContext",
)
_DEFAULTED_CONTAINER = ("imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy")
_ADMITTED_TOLERATIONS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def as_created(pod: Mapping[str, Any]) -> Object:
    """Return a stored pod without what the API server added: about the body that had been sent."""
    meta = {key: value for key, value in pod["metadata"].items() if key not in _SERVER_META}
    spec = {key: copy.deepcopy(value) for key, value in pod["spec"].items() if key not in _DEFAULTED_SPEC}
    spec.pop("nodeName", None)
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        for key in _DEFAULTED_CONTAINER:
            container.pop(key, None)
    tolerations = [t for t in spec.pop("tolerations", []) if t.get("key") not in _ADMITTED_TOLERATIONS]
    if tolerations:
        spec["tolerations"] = tolerations
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def floor_copy(body: Mapping[str, Any], cluster: str, number: int) -> Object:
    """Return `body` as the pod number `number` of a bare client: as large, but no operator's business."""
    meta = dict(body["metadata"])
    meta.pop("generateName", None)
    meta.pop("finalizers", None)
    labels = {_floor_key(key): _floor_value(value) for key, value in meta.get("labels", {}).items()}
    labels[f"{FLOOR_PREFIX}cluster"] = cluster
    meta |= {"name": f"{cluster}-{number:06d}-worker-floor", "namespace": NAMESPACE, "labels": labels}
    return {**body, "metadata": meta}


def _floor_key(key: str) -> str:
    return FLOOR_PREFIX + key.removeprefix("ray.io/") if key.startswith("ray.io/") else key


def _floor_value(value: str) -> str:
    return value.replace("kuberay-operator", "bench-barefloor")


@dataclass(frozen=True, slots=True)
class Bodies:
    """One head and one worker pod as an operator creates them."""

    head: Object
    worker: Object

    def floor(self, cluster: str, workers: int, *, head: bool = True) -> list[Object]:
        """Return the pods of a cluster of `workers` workers, for the bare client."""
        heads = [floor_copy(self.head, cluster, 0)] if head else []
        return heads + [floor_copy(self.worker, cluster, number) for number in range(1, workers + 1)]
