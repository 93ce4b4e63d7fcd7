"""A cluster for tests of builders: a test names only what it is about."""

from __future__ import annotations

from typing import Any

from tpu_operator.api.raycluster import RayCluster
from tpu_operator.config import OperatorConfig
from tpu_operator.resources.pods.head import head_pod
from tpu_operator.resources.pods.place import Place
from tpu_operator.resources.pods.worker import WorkerBlueprint

CONFIG = OperatorConfig()


def template(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "ray", "image": "ray:2", **(container or {})}], **spec}}


def group(container: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"groupName": "small", "template": template(container), **fields}


def cluster(*groups: dict[str, Any], head: dict[str, Any] | None = None, **spec: Any) -> RayCluster:
    """`labels` and `annotations` are the cluster's, other names are fields of the spec."""
    metadata = {"name": "demo", "namespace": "ns", "uid": "uid-1"}
    metadata |= {key: spec.pop(key) for key in ("labels", "annotations") if key in spec}
    head = {"template": template(), **(head or {})}
    raw = {"metadata": metadata, "spec": {"headGroupSpec": head, "workerGroupSpecs": list(groups), **spec}}
    parsed = RayCluster.parse(raw)
    assert not parsed.problems
    return parsed


def head_of(cluster: RayCluster, config: OperatorConfig = CONFIG) -> dict[str, Any]:
    return head_pod(cluster, config, name="demo-head-x", recreate_hash="hash")


def worker_of(
    cluster: RayCluster, config: OperatorConfig = CONFIG, place: Place | None = None, number: int = 0
) -> dict[str, Any]:
    spec = cluster.spec.worker_group_specs[number]
    place = place or Place("small-abcde", 0, 0, spec.hosts)
    return WorkerBlueprint.of(cluster, spec, config).pod(place, "demo-small-worker-x")


def ray(pod: dict[str, Any]) -> dict[str, Any]:
    return pod["spec"]["containers"][0]


def container(pod: dict[str, Any], name: str) -> dict[str, Any]:
    every = [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
    return next(c for c in every if c["name"] == name)


def env(container: dict[str, Any]) -> dict[str, Any]:
    """Variables by name; fails if a name occurs twice."""
    entries = container.get("env", [])
    found = {e["name"]: e.get("value", e.get("valueFrom")) for e in entries}
    assert len(found) == len(entries), entries
    return found
