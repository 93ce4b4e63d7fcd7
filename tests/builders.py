"""Small builders of clusters, pods and snapshots: a test names only what it is about."""

from __future__ import annotations

from dataclasses import replace as _replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tpu_operator.api import names
from tpu_operator.api.raycluster import RayCluster
from tpu_operator.config import OperatorConfig
from tpu_operator.planning.children import child_key
from tpu_operator.planning.memory import Memory
from tpu_operator.planning.plan import CreateHead, CreateSlice, DeleteHead, DeleteSlice, Plan, Reason
from tpu_operator.planning.planner import plan as make_plan
from tpu_operator.planning.pod import (
    ContainerName,
    ContainerState,
    ContainerStates,
    ContainerStatus,
    OwnerReference,
    Pod,
    PodAnnotations,
    PodCondition,
    PodMeta,
    PodSpec,
    PodStatus,
)
from tpu_operator.planning.snapshot import Observed, Snapshot
from tpu_operator.resources.registry import desired_children

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tpu_operator.api.json import JsonObject, JsonValue

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
BORN = NOW - timedelta(hours=1)
CLUSTER_UID = "uid-of-demo"
OWNER = OwnerReference(uid=CLUSTER_UID, kind=names.KIND, name="demo", controller=True)


# -- clusters ----------------------------------------------------------------------------------------------------------


def template(container: str, **spec: JsonValue) -> JsonObject:
    """A pod template with one container."""
    resources: JsonObject = {"limits": {"cpu": "2", "memory": "4Gi"}}
    return {"spec": {"containers": [{"name": container, "image": "ray", "resources": resources}], **spec}}


def group(
    name: str = "g",
    replicas: int | None = 1,
    *,
    hosts: int | None = 1,
    low: int | None = 0,
    high: int | None = 100,
    delete: Iterable[str] = (),
    **fields: Any,
) -> JsonObject:
    """An entry of workerGroupSpecs; `low` and `high` are minReplicas and maxReplicas, None leaves a field out."""
    numbers = {"replicas": replicas, "minReplicas": low, "maxReplicas": high, "numOfHosts": hosts}
    listed = list(delete)
    return {
        "groupName": name,
        "rayStartParams": {},
        "template": template("ray-worker"),
        **{key: number for key, number in numbers.items() if number is not None},
        **({"scaleStrategy": {"workersToDelete": listed}} if listed else {}),
        **fields,
    }


def cluster(
    *groups: JsonObject,
    name: str = "demo",
    autoscaling: bool | None = None,
    generation: int = 1,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> RayCluster:
    """A RayCluster as the operator reads it."""
    return RayCluster.parse(
        {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {
                "name": name,
                "namespace": "team-a",
                "uid": CLUSTER_UID,
                "generation": generation,
                "resourceVersion": "1",
                **(metadata or {}),
            },
            "spec": {
                "rayVersion": "2.52.0",
                "headGroupSpec": {"rayStartParams": {}, "template": template("ray-head")},
                "workerGroupSpecs": list(groups),
                **({} if autoscaling is None else {"enableInTreeAutoscaling": autoscaling}),
                **spec,
            },
            **({"status": dict(status)} if status else {}),
        }
    )


def conditions(*true: str) -> JsonObject:
    """A status in which just these conditions are True."""
    stamp = "2026-03-01T11:00:00Z"
    items: list[JsonValue] = [
        {"type": t, "status": "True", "reason": t, "message": "", "lastTransitionTime": stamp} for t in true
    ]
    return {"conditions": items}


# -- pods --------------------------------------------------------------------------------------------------------------


def pod(
    name: str, labels: Mapping[str, str], container: str, *, annotations: PodAnnotations | None = None, **meta: Any
) -> Pod:
    """A ready pod of the cluster, an hour old, on a node."""
    given: dict[str, Any] = {
        "namespace": "team-a",
        "uid": f"uid-{name}",
        "resource_version": "1",
        "labels": {names.CLUSTER: "demo", **labels},
        "annotations": annotations,
        "creation_timestamp": BORN,
        "owner_references": (OWNER,),
        **meta,
    }
    spec = PodSpec(containers=(ContainerName(container),), node_name="node", termination_grace_period_seconds=30)
    ready = PodCondition("Ready", "True")
    return Pod(PodMeta(name=name, **given), spec, PodStatus(phase="Running", conditions=(ready,)))


def head(name: str = "demo-head-aaaaa", **meta: Any) -> Pod:
    """A head pod."""
    return pod(name, {names.NODE_TYPE: names.HEAD, names.NODE_GROUP: names.HEAD_GROUP}, "ray-head", **meta)


def host(
    slice_name: str, index: int, number: int = 0, *, size: int = 1, of: str = "g", name: str | None = None, **meta: Any
) -> Pod:
    """One host of a slice, labelled as the operator labels it: names and host numbers only where there are several."""
    labels = {names.NODE_TYPE: names.WORKER, names.NODE_GROUP: of, names.REPLICA_INDEX: str(index)}
    if size > 1:
        labels |= {names.REPLICA_NAME: slice_name, names.HOST_INDEX: str(number)}
    name = name or (f"{slice_name}-h{number}" if size > 1 else slice_name)
    annotations = PodAnnotations(num_of_hosts=str(size)) if size > 1 else None
    return pod(name, labels, "ray-worker", **{"annotations": annotations, **meta})


def hosts(index: int = 0, size: int = 4, *, of: str = "g", name: str | None = None, **meta: Any) -> tuple[Pod, ...]:
    """All hosts of a slice."""
    slice_name = name or f"{of}-s{index}"
    return tuple(host(slice_name, index, number, size=size, of=of, **meta) for number in range(size))


def singles(count: int, *, of: str = "g", start: int = 0, **meta: Any) -> tuple[Pod, ...]:
    """Slices of one host: `w<index>` of group g."""
    prefix = "w" if of == "g" else f"{of}-w"
    return tuple(host(f"{prefix}{index}", index, of=of, **meta) for index in range(start, start + count))


def old_pods(count: int, *, of: str = "g", prefix: str = "old", **labels: str) -> tuple[Pod, ...]:
    """Workers from before the replica labels."""
    common = {names.NODE_TYPE: names.WORKER, names.NODE_GROUP: of, **labels}
    return tuple(pod(f"{prefix}{number}", common, "ray-worker") for number in range(count))


# -- what happens to pods ----------------------------------------------------------------------------------------------


def failed(of: Pod, reason: str | None = None, phase: str = "Failed") -> Pod:
    """No container of it runs any more."""
    return replace(of, status=PodStatus(phase=phase, reason=reason))


def terminating(of: Pod, seconds: float = 30, now: datetime = NOW) -> Pod:
    """Being deleted; its grace period ends in `seconds`."""
    return relabelled(of, deletion_timestamp=now + timedelta(seconds=seconds))


def pending(of: Pod, *, node: str | None = "node") -> Pod:
    """Nothing of it has started; without a node it is not even scheduled."""
    return replace(of, status=PodStatus(phase="Pending"), spec=replace(of.spec, node_name=node))


def unready(of: Pod) -> Pod:
    """It runs and is not ready."""
    return replace(of, status=PodStatus(phase="Running", conditions=(PodCondition("Ready", "False"),)))


def ended(of: Pod, container: str, restart_policy: str = "Never") -> Pod:
    """A container of it has ended while the pod goes on."""
    status = ContainerStatus(container, state=ContainerStates(terminated=ContainerState(exit_code=1)))
    return replace(
        of,
        spec=replace(of.spec, restart_policy=restart_policy),
        status=replace(of.status, container_statuses=(ContainerStatus("sidecar", ready=True), status)),
    )


def aged(of: Pod, seconds: float) -> Pod:
    """`of`, created `seconds` before now."""
    return relabelled(of, creation_timestamp=NOW - timedelta(seconds=seconds))


def relabelled(of: Pod, **meta: Any) -> Pod:
    """`of` with other metadata."""
    return replace(of, metadata=replace(of.metadata, **meta))


# -- snapshots ---------------------------------------------------------------------------------------------------------


def snapshot(
    of: RayCluster,
    pods: Iterable[Pod] = (),
    *,
    memory: Memory | None = None,
    now: datetime = NOW,
    nonce: str = "nonce",
    foreign: Iterable[Pod] = (),
    config: OperatorConfig | None = None,
) -> Snapshot:
    """What a pass sees. Children other than pods are as they should be."""
    config = config or OperatorConfig()
    children = {child_key(m): _with_uid(m) for m in desired_children(of, config)}
    observed = Observed(pods=tuple(pods), foreign_pods=tuple(foreign), children=children)
    return Snapshot(of, observed, memory or Memory(generation=of.generation), config, now, nonce)


def _with_uid(manifest: JsonObject) -> JsonObject:
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    return {**manifest, "metadata": {**metadata, "uid": f"uid-{metadata['name']}"}}


def later(of: Snapshot, seconds: float) -> Snapshot:
    """The same sight, `seconds` later."""
    return _replace(of, now=of.now + timedelta(seconds=seconds))


# -- plans -------------------------------------------------------------------------------------------------------------


def decide(
    of: RayCluster, pods: Iterable[Pod] = (), *, memory: Memory | None = None, now: datetime = NOW, **rest: Any
) -> Plan:
    """The plan for a cluster with these pods; `plan` itself, with a head added where the test names none."""
    pods = tuple(pods)
    if not any(p.node_type == names.HEAD for p in pods):
        pods = (head(), *pods)
    return make_plan(snapshot(of, pods, memory=memory, now=now, **rest))


def deleted(of: Plan) -> set[str]:
    """Names of the pods that the plan deletes."""
    pods: list[Pod] = []
    for action in of.actions:
        if isinstance(action, DeleteHead):
            pods.append(action.pod)
        elif isinstance(action, DeleteSlice):
            pods.extend(action.pods)
    names_of_pods = [p.name for p in pods]
    assert len(set(names_of_pods)) == len(names_of_pods), "a pod is deleted twice"
    return set(names_of_pods)


def created(of: Plan) -> list[tuple[str, int, tuple[int, ...]]]:
    """Worker pods that the plan creates, by slice: group, replica index, host indices."""
    return [(a.group, a.index, tuple(h.host for h in a.hosts)) for a in of.actions if isinstance(a, CreateSlice)]


def creates_head(of: Plan) -> bool:
    return any(isinstance(a, CreateHead) for a in of.actions)


def reasons(of: Plan) -> set[Reason]:
    """Why pods are deleted."""
    return {a.reason for a in of.actions if isinstance(a, DeleteHead | DeleteSlice)}
