"""GCS fault tolerance: finalizer, cleanup of Redis, claims (cases FN, quirks 6 and 12 to 20)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from proxy import Proxy, writes

from bed import Bed, bed, group, label, raycluster, uid_of
from tpu_operator.api import names
from tpu_operator.controller.executor import RAYCLUSTERS
from tpu_operator.errors import Gone
from tpu_operator.kube.resource import Resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from devcluster.plane import ControlPlane
    from devcluster.pytest_plugin import NamespaceFactory

pytestmark = pytest.mark.apiserver

JOBS = Resource("batch", "v1", "jobs", "Job")
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
REDIS = {"redisAddress": "redis:6379"}
ROCKS = {"backend": "rocksdb", "storage": {"size": "1Gi"}}
FOREIGN = "example.com/wait"


def ft(*groups: dict[str, Any], options: dict[str, Any] | None = None, timeout: str | None = None) -> dict[str, Any]:
    made = raycluster("demo", *groups, gcsFaultToleranceOptions=options or REDIS)
    if timeout is not None:
        made["metadata"]["annotations"] = {names.GCS_FT_DELETION_TIMEOUT: timeout}
    return made


def finalizers(cluster: dict[str, Any]) -> list[str]:
    found: list[str] = cluster["metadata"].get("finalizers", [])
    return found


async def gone(b: Bed) -> bool:
    try:
        await b.cluster("demo")
    except Gone:
        return True
    return False


async def until_gone(b: Bed, seconds: float = 15) -> None:
    await b.until_async("the cluster is gone", lambda: gone(b), bool, seconds)


async def the_job(b: Bed) -> dict[str, Any]:
    found = await b.until_async("a Job", lambda: b.all_of(JOBS), bool)
    job: dict[str, Any] = found[0]
    return job


async def end_job(b: Bed, *conditions: str, **status: object) -> None:
    """What the Job's controller and the pod do."""
    job = await the_job(b)
    now = "2026-01-01T00:00:00Z"
    true = [{"type": c, "status": "True", "reason": "BackoffLimitExceeded", "message": "it failed"} for c in conditions]
    body = {"status": {"startTime": now, "conditions": true, **status}}
    await b.client.patch(JOBS, b.namespace, job["metadata"]["name"], body, subresource="status")


async def complete_job(b: Bed) -> None:
    await end_job(b, "SuccessCriteriaMet", "Complete", completionTime="2026-01-01T00:01:00Z", succeeded=1)


@pytest.fixture
async def running(operator: Bed) -> Bed:
    """A cluster of two pods that run on nodes."""
    await operator.create(ft(group("g", 1)))
    await operator.all_ready("demo", 2)
    await operator.settled()
    return operator


async def test_no_pod_is_there_before_the_finalizer(proxied: Bed, proxy: Proxy) -> None:
    patch = writes("rayclusters", "PATCH")
    proxy.delay(patch, 0.5)
    await proxied.create(ft(group("g", 1)))
    await proxied.until_live(2)
    assert finalizers(await proxied.cluster("demo")) == [names.REDIS_FINALIZER]
    sent = [seen for seen in proxy.requests if patch(seen) or writes("pods", "POST")(seen)]
    assert sent[0].method == "PATCH"


async def test_head_then_job_then_finalizer(running: Bed) -> None:
    """FN-04; and the Job is not made again, however often it is looked at."""
    (head,) = [p for p in await running.pods() if label(p, names.NODE_TYPE) == names.HEAD]
    await running.delete_cluster("demo")
    await running.until("both pods are leaving", lambda pods: all("deletionTimestamp" in p["metadata"] for p in pods))
    await running.settled()
    assert await running.all_of(JOBS) == []
    await running.delete_pod(head, grace=0)
    job = await the_job(running)
    assert job["metadata"]["name"] == "demo-redis-cleanup"
    assert label(job, names.NODE_TYPE) == names.REDIS_CLEANUP
    await running.settled()
    assert not await gone(running)
    assert running.made("jobs") == 1
    await complete_job(running)
    await until_gone(running)
    assert len(await running.warnings("CreatedRedisCleanupJob")) == 1


async def test_a_job_that_fails_is_told_of_and_the_cluster_goes(running: Bed) -> None:
    """Quirk 18."""
    await running.delete_cluster("demo")
    async with running.kubelet():
        await end_job(running, "FailureTarget", "Failed", failed=1)
        await until_gone(running)
    (event,) = await running.until_async("a warning", lambda: running.warnings("FailedRedisCleanup"), bool)
    assert "it failed" in event


async def test_the_time_is_up_while_the_head_hangs(operator: Bed) -> None:
    """FN-03, quirk 14; the annotation says how long."""
    await operator.create(ft(group("g", 1), timeout="2"))
    await operator.all_ready("demo", 2)
    await operator.delete_cluster("demo")
    await until_gone(operator, 6)
    await operator.until_async(
        "told once", lambda: operator.warnings("ForceDeletedStuckCluster"), lambda w: len(w) == 1
    )


async def test_a_finalizer_of_somebody_else_stays(running: Bed) -> None:
    """KF-14."""
    await running.edit("demo", {"op": "add", "path": "/metadata/finalizers/0", "value": FOREIGN})
    await running.delete_cluster("demo")
    async with running.kubelet():
        await complete_job(running)
        await running.until_cluster("demo", "ours is off", lambda c: finalizers(c) == [FOREIGN])
    await running.settled()
    assert finalizers(await running.cluster("demo")) == [FOREIGN]
    await running.edit("demo", {"op": "remove", "path": "/metadata/finalizers"})


async def test_a_finalizer_that_comes_while_ours_is_put_on_stays(proxied: Bed, proxy: Proxy) -> None:
    """KF-14: our patch is held up, somebody else is faster."""
    proxy.delay(writes("rayclusters", "PATCH"), 1.0)
    await proxied.create(ft())
    await proxy.until(lambda: proxy.count(writes("rayclusters", "PATCH")) > 0)
    await proxied.edit("demo", {"op": "add", "path": "/metadata/finalizers", "value": [FOREIGN]})
    proxy.heal()
    found = await proxied.until_cluster("demo", "two finalizers", lambda c: len(finalizers(c)) == 2)
    assert finalizers(found) == [FOREIGN, names.REDIS_FINALIZER]
    await proxied.until_live(1)
    await proxied.edit("demo", {"op": "remove", "path": "/metadata/finalizers"})


async def test_fault_tolerance_that_is_switched_off_holds_nothing_back(running: Bed) -> None:
    """Quirk 13."""
    await running.edit("demo", {"op": "remove", "path": "/spec/gcsFaultToleranceOptions"})
    await running.until_cluster("demo", "no finalizer", lambda c: finalizers(c) == [])
    await running.delete_cluster("demo")
    await until_gone(running, 2)


async def test_a_cluster_that_has_become_invalid_is_cleaned_up_all_the_same(running: Bed) -> None:
    """Quirk 12."""
    await running.edit("demo", {"op": "add", "path": "/spec/networkPolicy", "value": {}})
    await running.until_events("told", lambda events: any(e["reason"] == "InvalidRayClusterSpec" for e in events))
    await running.delete_cluster("demo")
    async with running.kubelet():
        await complete_job(running)
        await until_gone(running)


async def test_an_operator_that_was_down_finishes_what_was_begun(running: Bed) -> None:
    """FN-10."""
    await running.stop()
    await running.delete_cluster("demo")
    await running.start()
    async with running.kubelet():
        await the_job(running)
        await running.restart()
        await complete_job(running)
        await until_gone(running)


async def test_a_namespace_that_is_deleted_is_not_held_up(apiserver: ControlPlane, namespace: NamespaceFactory) -> None:
    """FN-01: no Job can be created there any more."""
    name = namespace(apiserver)
    async with bed(apiserver, name, status_interval=0.1) as b:
        await b.create(ft())
        await b.all_ready("demo", 1)
        await asyncio.to_thread(apiserver.kubectl, "delete", "namespace", name, "--wait=false")
        await b.delete_cluster("demo")  # what the namespace's controller does next
        async with b.kubelet():
            await until_gone(b)
        assert await b.all_of(JOBS) == []
        assert b.made("jobs") == 1


async def test_foreground_deletion_creates_nothing(running: Bed) -> None:
    """FN-07."""
    pods = {uid_of(p) for p in await running.pods()}
    await running.delete_cluster("demo", propagation="Foreground")
    async with running.kubelet():
        await complete_job(running)
        await running.until_cluster(
            "demo", "only the collector's is left", lambda c: "foregroundDeletion" in finalizers(c)
        )
        await running.until_cluster("demo", "ours is off", lambda c: names.REDIS_FINALIZER not in finalizers(c))
    await running.settled()
    assert {uid_of(p) for p in await running.pods()} <= pods
    await running.edit("demo", {"op": "remove", "path": "/metadata/finalizers"})


# -- rocksdb -----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def rocks(apiserver: ControlPlane, namespace: NamespaceFactory) -> AsyncIterator[Bed]:
    settings = {"feature_gates": {"GCSFaultToleranceEmbeddedStorage": True}, "status_interval": 0.1}
    async with bed(apiserver, namespace(apiserver), **settings) as made:
        yield made


async def claim(b: Bed) -> dict[str, Any]:
    return await b.client.get(CLAIMS, b.namespace, "demo-gcs-pvc")


def owners(obj: dict[str, Any]) -> list[str]:
    return [o["uid"] for o in obj["metadata"].get("ownerReferences", [])]


async def test_the_claim_comes_first_and_goes_with_the_cluster(rocks: Bed) -> None:
    made = await rocks.create(ft(options=ROCKS))
    await rocks.until_live(1)
    assert owners(await claim(rocks)) == [uid_of(made)]
    assert finalizers(await rocks.cluster("demo")) == []
    await rocks.settled()
    before = rocks.writes()
    await rocks.annotate("demo", note="1")
    await rocks.settled()
    assert rocks.writes() == before


async def test_who_owns_the_claim_follows_the_policy(rocks: Bed) -> None:
    made = await rocks.create(ft(options=ROCKS))
    await rocks.until_live(1)
    for policy, expected in (("Retain", []), ("DeleteWithCluster", [uid_of(made)]), ("Retain", [])):
        path = "/spec/gcsFaultToleranceOptions/storage/deletionPolicy"
        await rocks.edit("demo", {"op": "add", "path": path, "value": policy})
        await rocks.until_async("its owner", lambda: claim(rocks), lambda c, e=expected: owners(c) == e)
    await rocks.settled()


async def test_a_retained_claim_is_used_by_the_next_cluster_and_not_taken_over(rocks: Bed) -> None:
    """Quirk 6."""
    retained = {**ROCKS, "storage": {"size": "1Gi", "deletionPolicy": "Retain"}}
    await rocks.create(ft(options=retained))
    await rocks.until_live(1)
    before = await claim(rocks)
    await rocks.delete_cluster("demo")
    await until_gone(rocks)
    for pod in await rocks.pods():
        await rocks.delete_pod(pod, grace=0)
    await rocks.create(ft(options=ROCKS))
    await rocks.until_live(1)
    await rocks.settled()
    after = await claim(rocks)
    assert uid_of(after) == uid_of(before)
    assert owners(after) == []


async def test_a_foreign_claim_is_neither_used_nor_touched(rocks: Bed) -> None:
    """Quirk 6. It has no label of ours, so that no watch shows it."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "7Gi"}}}
    theirs = await rocks.client.create(
        CLAIMS,
        rocks.namespace,
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "demo-gcs-pvc"}, "spec": spec},
    )
    await rocks.create(ft(options=ROCKS))
    await rocks.until_async("told", lambda: rocks.warnings("FailedToCreatePVC"), bool)
    await rocks.settled()
    assert await rocks.pods() == []
    assert await claim(rocks) == theirs


async def test_a_claim_that_the_spec_no_longer_describes_is_kept(rocks: Bed) -> None:
    await rocks.create(ft(options=ROCKS))
    await rocks.until_live(1)
    before = await claim(rocks)
    await rocks.edit("demo", {"op": "replace", "path": "/spec/gcsFaultToleranceOptions/storage/size", "value": "2Gi"})
    (text,) = await rocks.until_async("told", lambda: rocks.warnings("FailedToCreatePVC"), bool)
    assert "size is 1Gi, not 2Gi" in text
    await rocks.settled()
    assert (await claim(rocks))["spec"] == before["spec"]


async def test_finalizers_of_a_cluster_that_goes_are_patched_once(running: Bed) -> None:
    """No hot loop between the patch and its event."""
    before = running.calls["patch", RAYCLUSTERS.plural]
    await running.delete_cluster("demo")
    async with running.kubelet():
        await complete_job(running)
        await until_gone(running)
    await running.settled()
    assert running.calls["patch", RAYCLUSTERS.plural] - before <= 2
