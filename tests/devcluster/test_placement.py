"""Slices on node pools, placed by the real kube-scheduler: one pool a slice, one slice a pool, whoever else wants them."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bed import bed, label, name_of
from devcluster import ControlPlane, Options, PoolSpec
from devcluster.client import ApiClient
from devcluster.waiting import wait_until
from tpu_operator.api.raycluster import RayCluster
from tpu_operator.config import OperatorConfig
from tpu_operator.resources.pods.place import Place
from tpu_operator.resources.pods.worker import WorkerBlueprint

pytestmark = pytest.mark.kwok

Json = dict[str, Any]

POOLS, HOSTS = 8, 4
CRD = Path(__file__).parents[2] / "crds" / "ray.io_rayclusters.yaml"
INDEX, REPLICA, SLICE = "ray.io/worker-group-replica-index", "ray.io/worker-group-replica-name", "tpu-operator.io/slice"
SECONDS = 60.0
SELECTOR = {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "4x4"}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane.start(Options(pools=(PoolSpec("tpu-v6e-slice", "4x4", POOLS),), crds=(CRD,))) as plane:
        yield plane


def template(chips: int = 0, **metadata: object) -> Json:
    spec: Json = {"containers": [{"name": "ray", "image": "x"}]}
    if chips:
        spec["containers"][0]["resources"] = {"limits": {"google.com/tpu": str(chips)}}
        spec |= {"nodeSelector": SELECTOR, "tolerations": [{"key": "google.com/tpu", "operator": "Exists"}]}
    return {"metadata": metadata, "spec": spec}


def document(name: str, replicas: int, **metadata: object) -> Json:
    group = {"groupName": "v6e", "replicas": replicas, "numOfHosts": HOSTS, "template": template(4, **metadata)}
    head = {"rayStartParams": {}, "template": template()}
    spec = {"rayVersion": "2.60.0", "headGroupSpec": head, "workerGroupSpecs": [group]}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": name}, "spec": spec}


def slices(client: ApiClient, namespace: str, name: str, replicas: int) -> list[Json]:
    """The pods of a new cluster's slices, as the operator would make them; the cluster itself has no operator."""
    path = f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters"
    cluster = RayCluster.parse(client.post(path, document(name, replicas)))
    blueprint = WorkerBlueprint.of(cluster, cluster.spec.worker_group_specs[0], OperatorConfig())
    places = (Place(f"v6e-same{index}", index, host, HOSTS) for index in range(replicas) for host in range(HOSTS))
    return [blueprint.pod(place, f"{name}-{place.index}-{place.host}") for place in places]


def post(client: ApiClient, pods: list[Json]) -> None:
    for pod in pods:
        client.post(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)


def pods_of(client: ApiClient, *namespaces: str) -> list[Json]:
    found: list[Json] = []
    for namespace in namespaces:
        items = client.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
        assert isinstance(items, list)
        found += items
    return found


def judged(pod: Json) -> bool:
    """The scheduler has placed it, or has said that it cannot."""
    conditions = pod["status"].get("conditions", [])
    return any(c["type"] == "PodScheduled" and (c["status"] == "True" or c.get("reason")) for c in conditions)


def pools_by_slice(client: ApiClient, *namespaces: str) -> dict[str, Counter[str]]:
    """Slice -> how many of its pods are on which pool, "" for those that are on none; when all are judged."""
    wait_until(
        lambda: all(map(judged, pods_of(client, *namespaces))), "all pods judged", timeout=SECONDS, check=lambda: None
    )
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in pods_of(client, *namespaces):
        if key := label(pod, SLICE):
            found[key][pool_of(pod)] += 1
    return found


def pool_of(pod: Json) -> str:
    return str(pod["spec"].get("nodeName", "")).rpartition("-host-")[0]


@pytest.mark.parametrize("each", [4, 6])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_slices_of_two_clusters_of_one_name_never_share_or_spread(
    plane: ControlPlane, namespace: Callable[[ControlPlane], str], each: int, seed: int
) -> None:
    """Pods come in any order. Of more slices than pools, as many as there are pools are whole, the rest wholly pending."""
    homes = namespace(plane), namespace(plane)
    with plane.client() as client:
        pods = [pod for home in homes for pod in slices(client, home, "same", each)]
        random.Random(seed).shuffle(pods)
        post(client, pods)
        found = pools_by_slice(client, *homes)
        clear(client, *homes)
    assert len(found) == 2 * each
    assert all(len(pools) == 1 and set(pools.values()) == {HOSTS} for pools in found.values()), found
    placed = [pool for pools in found.values() for pool in pools if pool]
    assert len(placed) == len(set(placed)) == min(2 * each, POOLS)


def clear(client: ApiClient, *namespaces: str) -> None:
    for namespace in namespaces:
        client.delete(f"/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0")
    wait_until(lambda: not pods_of(client, *namespaces), "pods gone", timeout=SECONDS, check=lambda: None)


def test_a_single_tpu_host_does_not_come_to_the_pool_of_a_slice(
    plane: ControlPlane, namespace: Callable[[ControlPlane], str]
) -> None:
    """Even if it selects such pools, and one host there is free."""
    home = namespace(plane)
    with plane.client() as client:
        pods = slices(client, home, "eight", POOLS)
        alone = {**pods[0], "metadata": {"namespace": home, "name": "alone", "labels": {"replicaIndex": "x-0"}}}
        alone["spec"] = {key: value for key, value in pods[0]["spec"].items() if key != "affinity"}
        post(client, [pod for pod in pods if not pod["metadata"]["name"].endswith("-3")])
        pools_by_slice(client, home)
        post(client, [alone])
        pools_by_slice(client, home)
        (found,) = [pod for pod in pods_of(client, home) if name_of(pod) == "alone"]
        clear(client, home)
    assert not pool_of(found)


def test_what_is_left_to_a_gang_scheduler_is_a_pool_that_cannot_hold_the_whole_slice(
    plane: ControlPlane, namespace: Callable[[ControlPlane], str]
) -> None:
    """kube-scheduler looks at one pod at a time: a slice that began on a pool with a lost host waits there for it."""
    home = namespace(plane)
    with plane.client() as client:
        nodes = [f"tpu-v6e-slice-4x4-{pool}-host-0" for pool in range(POOLS)]
        for node in nodes:
            plane.kubectl("cordon", node)
        post(client, slices(client, home, "half", 1))
        (half,) = pools_by_slice(client, home).values()
        for node in nodes:
            plane.kubectl("uncordon", node)
        wait_until(
            lambda: all(pool_of(pod) for pod in pods_of(client, home)), "whole", timeout=SECONDS, check=lambda: None
        )
        (whole,) = pools_by_slice(client, home).values()
        clear(client, home)
    assert sorted(half.values()) == [1, HOSTS - 1]
    assert set(whole.values()) == {HOSTS}


async def test_a_failed_host_moves_its_whole_slice_and_the_next_one_comes_when_the_last_pod_is_gone(
    plane: ControlPlane, namespace: Callable[[ControlPlane], str]
) -> None:
    home = namespace(plane)
    slow = {"annotations": {"devcluster/termination-seconds": "2"}}
    async with bed(plane, home) as operator:
        await operator.create(document("moved", 2, **slow))
        first = await operator.until("all run", lambda pods: len(pods) == 1 + 2 * HOSTS and all(map(runs, pods)))
        made, killed = operator.made(), operator.killed()
        (victim, *_) = [pod for pod in first if label(pod, INDEX) == "1"]
        old = {name_of(pod) for pod in first if label(pod, INDEX) == "1"}
        await asyncio.to_thread(plane.kubectl, "label", "-n", home, f"pod/{name_of(victim)}", "devcluster/fail=true")

        looks: list[list[Json]] = []

        def is_new(pods: list[Json]) -> bool:
            looks.append([pod for pod in pods if label(pod, INDEX) == "1"])
            return len(pods) == 1 + 2 * HOSTS and all(map(runs, pods)) and old.isdisjoint(map(name_of, pods))

        last = await operator.until("a new slice runs", is_new, seconds=SECONDS)
        assert (operator.made() - made, operator.killed() - killed) == (HOSTS, HOSTS)
    assert all(len({label(pod, REPLICA) for pod in look}) <= 1 for look in looks), "two incarnations at one time"
    kept = {pod["metadata"]["uid"] for pod in first if label(pod, INDEX) == "0"}
    assert kept == {pod["metadata"]["uid"] for pod in last if label(pod, INDEX) == "0"}
    pools = {index: {pool_of(pod) for pod in last if label(pod, INDEX) == index} for index in "01"}
    assert all(len(found) == 1 for found in pools.values())
    assert pools["0"] != pools["1"]


def runs(pod: Json) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") == "Running"
