"""What clients of KubeRay take for granted without ever having been promised it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from proxy import Proxy, writes

from bed import Bed, alive, condition, group, label, name_of, pod_template, raycluster, uid_of, workers
from tpu_operator.api import names
from tpu_operator.controller.executor import RAYCLUSTERS
from tpu_operator.errors import Gone
from tpu_operator.kube.resource import PODS

pytestmark = pytest.mark.apiserver


def ready(cluster: dict[str, Any]) -> bool:
    return cluster.get("status", {}).get("state") == "ready"


def counts(status: dict[str, Any]) -> list[int]:
    """Zero is left out, as in KubeRay."""
    return [status.get(f"{which}WorkerReplicas", 0) for which in ("desired", "min", "max")]


async def test_the_head_is_made_before_the_workers(proxied: Bed, proxy: Proxy) -> None:
    await proxied.create(raycluster("demo", group("g", 3)))
    await proxied.until_live(4)
    bodies = [json.loads(r.body) for r in proxy.requests if writes("pods", "POST")(r)]
    assert [label(b, names.NODE_TYPE) for b in bodies] == [names.HEAD, *[names.WORKER] * 3]


async def test_services_are_made_before_the_workers_that_look_them_up(proxied: Bed, proxy: Proxy) -> None:
    await proxied.create(raycluster("demo", group("g", 1, 2)))
    await proxied.until_live(3)
    posts = [r for r in proxy.requests if r.method in ("POST", "PATCH") and (r.of("services") or r.of("pods"))]
    first = next(i for i, r in enumerate(posts) if r.of("pods") and b'"demo-g-worker' in r.body)
    made = {r.path.rpartition("/")[2] for r in posts[:first] if r.of("services")}
    assert made == {names.head_service("demo"), names.headless_service("demo")}


async def test_one_look_at_a_ready_cluster_shows_everything(operator: Bed) -> None:
    await operator.create(raycluster("demo", group("g", 2, 2, maxReplicas=4)))
    await operator.all_ready("demo", 5)
    seen = await operator.until_cluster("demo", "ready", ready)
    status = seen["status"]
    assert condition(seen, "RayClusterProvisioned")["status"] == "True"
    assert condition(seen, "HeadPodReady")["status"] == "True"
    assert status["head"]["podName"] == name_of(await operator.head())
    assert status["head"]["serviceName"] == names.head_service("demo")
    assert counts(status) == [4, 0, 8]
    assert (status["desiredCPU"], status["desiredMemory"]) == ("5", "5Gi")
    assert status["observedGeneration"] == seen["metadata"]["generation"]


async def test_one_look_at_a_suspended_cluster_shows_everything(operator: Bed) -> None:
    await operator.create(raycluster("demo", group("g", 2)))
    await operator.all_ready("demo", 3)
    await operator.until_cluster("demo", "ready", ready)
    await operator.patch("demo", suspend=True)
    async with operator.kubelet():
        seen = await operator.until_cluster("demo", "suspended", lambda c: c["status"].get("state") == "suspended")
    assert condition(seen, "RayClusterSuspended")["status"] == "True"
    assert condition(seen, "RayClusterProvisioned")["status"] == "False"
    await operator.patch("demo", suspend=False)
    await operator.all_ready("demo", 3)
    seen = await operator.until_cluster("demo", "ready", ready)
    assert condition(seen, "RayClusterSuspended")["status"] == "False"


async def test_a_running_pod_without_a_ready_condition_counts_as_ready(operator: Bed) -> None:
    await operator.create(raycluster("demo", group("g", 1)))
    for pod in await operator.until_live(2):
        await operator.bind(pod)
        await operator.status(pod, phase="Running")
    seen = await operator.until_cluster("demo", "ready", ready)
    assert condition(seen, "RayClusterProvisioned")["status"] == "True"


async def test_a_running_pod_that_says_it_is_not_ready_does_not(operator: Bed) -> None:
    await operator.create(raycluster("demo", group("g", 1)))
    pods = await operator.until_live(2)
    await operator.make_ready(pods)
    (worker,) = workers(pods)
    await operator.status(worker, conditions=[{"type": "Ready", "status": "False"}])
    await operator.until_cluster("demo", "told", lambda c: condition(c, "HeadPodReady").get("status") == "True")
    await operator.settled()
    seen = await operator.cluster("demo")
    assert not ready(seen)
    assert condition(seen, "RayClusterProvisioned")["status"] == "False"


async def test_pods_are_never_written_after_their_creation(operator: Bed) -> None:
    await operator.create(raycluster("demo", group("g", 2, 2)))
    await operator.all_ready("demo", 5)
    await operator.until_cluster("demo", "ready", ready)
    await operator.scale("demo", 3)
    await operator.all_ready("demo", 7)
    await operator.settled()
    assert not [k for k in operator.calls if k[1] == "pods" and k[0] in ("patch", "update", "apply")]
    for pod in await operator.pods():
        assert "finalizers" not in pod["metadata"]
        managers = {
            (m["manager"], m["operation"]) for m in pod["metadata"]["managedFields"] if m["manager"] == "tpu-operator"
        }
        assert managers <= {("tpu-operator", "Update")}


async def test_a_raycluster_is_written_a_few_times_and_only_its_status(proxied: Bed, proxy: Proxy) -> None:
    await proxied.create(raycluster("demo", group("g", 4, 2)))
    await proxied.all_ready("demo", 9)
    await proxied.until_cluster("demo", "ready", ready)
    await proxied.settled()
    requests = [r for r in proxy.requests if writes("rayclusters")(r)]
    assert {r.path.rpartition("/")[2] for r in requests} == {"status"}
    assert len(requests) <= 8
    assert "finalizers" not in (await proxied.cluster("demo"))["metadata"]


async def test_a_client_that_edits_in_a_loop_meets_few_conflicts(operator: Bed) -> None:
    """A read-modify-write of the whole object, tried again five times at 10 ms, while the cluster comes up."""
    await operator.create(raycluster("demo", group("g", 1)))
    for replicas in range(2, 8):
        await put_replicas(operator, replicas)
        await operator.until_live(1 + replicas)


async def put_replicas(b: Bed, replicas: int) -> None:
    from tpu_operator.errors import Conflict

    for _ in range(5):
        cluster = await b.cluster("demo")
        cluster["spec"]["workerGroupSpecs"][0]["replicas"] = replicas
        path = f"/apis/ray.io/v1/namespaces/{b.namespace}/rayclusters/demo"
        try:
            await b.client.raw("PUT", path, body=json.dumps(cluster).encode())
        except Conflict:
            await asyncio.sleep(0.01)
        else:
            return
    raise AssertionError("five conflicts in a row")


async def test_a_cluster_is_gone_as_soon_as_it_is_deleted(operator: Bed) -> None:
    """No finalizer of ours holds it."""
    await operator.create(raycluster("demo", group("g", 2)))
    await operator.all_ready("demo", 3)
    await operator.until_cluster("demo", "ready", ready)
    await operator.delete_cluster("demo")
    with pytest.raises(Gone):
        await operator.cluster("demo")
    await operator.create(raycluster("demo", group("g", 1)))
    await operator.until("the new cluster's pods", lambda pods: len(pods) == 5)


async def test_sixteen_pods_are_told_of_within_three_seconds(operator: Bed) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await operator.create(raycluster("demo", group("g", 15)))
    await operator.all_ready("demo", 16)
    playing = loop.time()
    await operator.until_cluster("demo", "ready", ready, seconds=3)
    assert loop.time() - playing < 3
    assert playing - begun < 10  # mostly this test's own playing of a kubelet


async def test_counts_in_the_status_are_pods(operator: Bed) -> None:
    await operator.create(raycluster("demo", group("g", 3, 4, minReplicas=0, maxReplicas=4)))
    await operator.until_live(13)
    seen = await operator.until_cluster("demo", "counted", lambda c: "desiredWorkerReplicas" in c.get("status", {}))
    assert counts(seen["status"]) == [12, 0, 16]


async def test_clusters_and_strange_pods_in_one_namespace_leave_each_other_alone(operator: Bed) -> None:
    labels = {names.CLUSTER: "one", names.NODE_TYPE: names.WORKER, names.NODE_GROUP: "g", "ray.io/like": "this"}
    strange = {"metadata": {"name": "strange", "labels": labels}, "spec": pod_template()["spec"]}
    stranger = uid_of(await operator.client.create(PODS, operator.namespace, strange))
    await operator.create(raycluster("one", group("g", 2)))
    await operator.create(raycluster("two", group("g", 3)))
    await operator.until("all pods", lambda pods: len(pods) == 8)
    await operator.settled()
    await operator.scale("one", 0)
    await operator.until("one shrinks", lambda pods: len(pods) == 6)
    await operator.fail(next(p for p in await operator.pods() if uid_of(p) == stranger))
    await operator.settled()
    assert stranger in map(uid_of, await operator.pods())
    assert (operator.made(), operator.killed()) == (7, 2)
    assert len(await operator.warnings("ForeignPod")) == 1
    assert len([p for p in await operator.pods("two") if alive(p)]) == 4


async def test_a_refused_pod_is_told_with_the_servers_words_and_no_longer_when_it_is_mended(operator: Bed) -> None:
    bad = pod_template(activeDeadlineSeconds=-1)
    await operator.create(raycluster("demo", group("g", 2, template=bad)))
    seen = await operator.until_cluster(
        "demo", "told", lambda c: condition(c, "ReplicaFailure").get("status") == "True"
    )
    told = condition(seen, "ReplicaFailure")
    assert told["reason"] == "FailedCreateWorkerPod"
    assert "activeDeadlineSeconds" in told["message"]
    await operator.until_events("told", lambda e: any(x["reason"] == "FailedToCreateWorkerPod" for x in e))
    await operator.settled()
    assert operator.made() <= 4
    await operator.edit(
        "demo", {"op": "remove", "path": "/spec/workerGroupSpecs/0/template/spec/activeDeadlineSeconds"}
    )
    await operator.until_live(3)
    await operator.until_cluster("demo", "mended", lambda c: not condition(c, "ReplicaFailure"))


async def test_a_refused_head_is_told_and_its_workers_wait(operator: Bed) -> None:
    spec = raycluster("demo", group("g", 2))
    spec["spec"]["headGroupSpec"]["template"] = pod_template(activeDeadlineSeconds=-1)
    await operator.create(spec)
    seen = await operator.until_cluster(
        "demo", "told", lambda c: condition(c, "ReplicaFailure").get("status") == "True"
    )
    assert condition(seen, "ReplicaFailure")["reason"] == "FailedCreateHeadPod"
    await operator.settled()
    assert await operator.pods() == []
    path = "/spec/headGroupSpec/template/spec/activeDeadlineSeconds"
    await operator.edit("demo", {"op": "remove", "path": path})
    await operator.until_live(3)


async def test_pods_of_clusters_of_the_past_do_not_slow_down_new_ones(operator: Bed) -> None:
    """Nothing collects garbage here."""
    for name in ("one", "two", "three"):
        await operator.create(raycluster(name, group("g", 10)))
        await operator.until_live(11, name)
        await operator.delete_cluster(name)
    await operator.create(raycluster("one", group("g", 2)))
    await operator.until("new pods", lambda pods: len(pods) == 36, seconds=3)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (36, 0)


async def test_owner_references_are_what_the_garbage_collector_needs(operator: Bed) -> None:
    """DK-17, for every child."""
    from tpu_operator.controller.caches import resource_of
    from tpu_operator.resources.registry import CHILD_KINDS

    cluster = await operator.create(raycluster("demo", group("g", 1, 2), enableInTreeAutoscaling=True))
    await operator.until_live(3)
    await operator.settled()
    children = [c for r in (PODS, *map(resource_of, CHILD_KINDS)) for c in await operator.all_of(r)]
    wanted = {
        "apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": uid_of(cluster),
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    assert len(children) >= 8
    assert all(c["metadata"]["ownerReferences"] == [wanted] for c in children)
    assert (await operator.client.get(RAYCLUSTERS, operator.namespace, "demo"))["apiVersion"] == wanted["apiVersion"]
