"""How many pods there are: over- and under-creation, counting, scale-down (cases OC)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from proxy import Proxy, watches, writes

from bed import Bed, alive, bed, group, name_of, pod_template, raycluster, slot, uid_of, workers
from tpu_operator.api import names
from tpu_operator.kube.resource import PODS

if TYPE_CHECKING:
    from devcluster.plane import ControlPlane
    from devcluster.pytest_plugin import NamespaceFactory

pytestmark = pytest.mark.apiserver


def live_workers(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [p for p in workers(pods) if alive(p)]


def autoscaled(*groups: dict[str, Any], **spec: object) -> dict[str, Any]:
    return raycluster("demo", *groups, enableInTreeAutoscaling=True, **spec)


async def test_passes_on_a_cache_that_lags_create_nothing_twice(proxied: Bed, proxy: Proxy) -> None:
    """OC-01: the pods' events come only after several passes."""
    proxy.hold_events(watches("pods"))
    await proxied.create(raycluster("demo", group("g", 3)))
    await proxied.until_live(4)
    await proxied.annotate("demo", touched="yes")
    await proxied.scale("demo", 5)
    await proxied.until_live(6)
    await proxied.annotate("demo", touched="again")
    await proxied.settled()
    proxy.release_events()
    await proxied.settled()
    assert (proxied.made(), proxied.killed()) == (6, 0)


async def test_two_quick_scale_downs_delete_what_was_asked_for_and_no_more(operator: Bed) -> None:
    """OC-03, with pods that take their time to go."""
    await operator.create(raycluster("demo", group("g", 6)))
    before = {uid_of(p) for p in live_workers(await operator.all_ready("demo", 7))}
    await operator.settled()
    await operator.scale("demo", 5)
    await operator.until_live(6)
    await operator.scale("demo", 4)
    pods = await operator.until_live(5)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (7, 2)
    assert {uid_of(p) for p in live_workers(pods)} < before


async def test_scale_downs_in_one_breath_delete_what_was_asked_for(proxied: Bed, proxy: Proxy) -> None:
    """OC-03 while the cache does not show the first deletes."""
    await proxied.create(raycluster("demo", group("g", 6)))
    await proxied.all_ready("demo", 7)
    await proxied.settled()
    proxy.hold_events(watches("pods"))
    for replicas in (5, 4, 3):
        await proxied.scale("demo", replicas)
        await proxied.until_live(replicas + 1)
    proxy.release_events()
    await proxied.settled()
    assert (proxied.made(), proxied.killed()) == (7, 3)


async def test_a_named_worker_counts_once_when_replicas_drop_too(operator: Bed) -> None:
    """OC-04: without the autoscaler, one name and one replica less make one deletion."""
    await operator.create(raycluster("demo", group("g", 16)))
    victim = name_of(live_workers(await operator.until_live(17))[7])
    await operator.settled()
    await operator.scale("demo", 15, [victim])
    pods = await operator.until_live(16)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (17, 1)
    assert victim not in map(name_of, pods)


async def test_a_scale_down_takes_pending_pods_before_running_ones(operator: Bed) -> None:
    """OC-06."""
    await operator.create(raycluster("demo", group("g", 4)))
    running = {uid_of(p) for p in live_workers(await operator.all_ready("demo", 5))}
    await operator.scale("demo", 6)
    await operator.until_live(7)
    await operator.settled()
    await operator.scale("demo", 4)
    pods = await operator.until_live(5)
    assert {uid_of(p) for p in live_workers(pods)} == running


async def test_replicas_above_the_maximum_are_cut_and_the_spec_stays(operator: Bed) -> None:
    """OC-10."""
    await operator.create(raycluster("demo", group("g", 10, maxReplicas=4)))
    await operator.until_live(5)
    await operator.settled()
    cluster = await operator.cluster("demo")
    assert operator.made() == 5
    assert cluster["status"]["desiredWorkerReplicas"] == 4
    assert cluster["spec"]["workerGroupSpecs"][0]["replicas"] == 10


ABSENT = object()


@pytest.mark.parametrize("replicas", [ABSENT, None, -1, 0], ids=["absent", "null", "negative", "zero"])
async def test_replicas_that_say_nothing_are_raised_to_the_minimum(operator: Bed, replicas: object) -> None:
    """OC-12."""
    given = {} if replicas is ABSENT else {"replicas": replicas}
    await operator.create(raycluster("demo", group("g", None, minReplicas=2, maxReplicas=5) | given))
    await operator.until_live(3)
    await operator.settled()
    assert operator.made() == 3


@pytest.mark.parametrize("hosts", [ABSENT, None, 0, -2], ids=["absent", "null", "zero", "negative"])
async def test_a_number_of_hosts_that_says_nothing_is_one(operator: Bed, hosts: object) -> None:
    """OC-13."""
    spec = group("g", 3)
    del spec["numOfHosts"]
    await operator.create(raycluster("demo", spec | ({} if hosts is ABSENT else {"numOfHosts": hosts})))
    await operator.until_live(4)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (4, 0)


async def test_live_workers_survive_a_number_of_hosts_that_is_set_to_zero(operator: Bed) -> None:
    """OC-13 on a running cluster, over a restart of the operator."""
    await operator.create(raycluster("demo", group("g", 3)))
    await operator.all_ready("demo", 4)
    await operator.edit("demo", {"op": "replace", "path": "/spec/workerGroupSpecs/0/numOfHosts", "value": 0})
    await operator.settled()
    await operator.restart()
    await operator.settled()
    assert (operator.made(), operator.killed()) == (4, 0)


async def test_a_pod_stuck_terminating_is_replaced_and_left_alone(operator: Bed) -> None:
    """OC-15: a dead node; its pod gets a deletion timestamp and stays."""
    await operator.create(raycluster("demo", group("g", 2, template=pod_template(terminationGracePeriodSeconds=1))))
    stuck = live_workers(await operator.all_ready("demo", 3))[0]
    await operator.settled()
    await operator.delete_pod(stuck)
    pods = await operator.until("a third worker", lambda pods: len(live_workers(pods)) == 2)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (4, 0)
    assert uid_of(stuck) in map(uid_of, pods)
    assert len({slot(p) for p in workers(pods)}) == 3


async def test_a_slice_with_a_stuck_host_is_replaced_under_other_identities(operator: Bed) -> None:
    """OC-15 for a slice: no hostname of a pod that may still run is given to a new one."""
    template = pod_template(terminationGracePeriodSeconds=1)
    await operator.create(raycluster("demo", group("g", 1, 2, template=template)))
    stuck, other = live_workers(await operator.all_ready("demo", 3))
    await operator.settled()
    await operator.delete_pod(stuck)
    await operator.until(
        "the other host terminates", lambda pods: not any(uid_of(p) == uid_of(other) for p in pods if alive(p))
    )
    pods = await operator.until("a new slice", lambda pods: len(live_workers(pods)) == 2)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (5, 1)
    assert len({slot(p) for p in workers(pods)}) == 4
    assert len({p["spec"]["hostname"] for p in workers(pods) if "hostname" in p["spec"]}) in (0, 4)


async def test_a_foreign_finalizer_on_a_deleted_worker_freezes_nothing(operator: Bed) -> None:
    """OC-16."""
    await operator.create(raycluster("demo", group("g", 3), group("h", 0)))
    held = live_workers(await operator.until_live(4))[0]
    await operator.client.patch(PODS, operator.namespace, name_of(held), {"metadata": {"finalizers": ["log/shipper"]}})
    await operator.settled()
    await operator.scale("demo", 2, [name_of(held)])
    await operator.until_live(3)
    await operator.scale("demo", 5, [name_of(held)])
    await operator.scale("demo", 1, index=1)
    pods = await operator.until_live(7)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (8, 1)
    assert len({slot(p) for p in live_workers(pods)}) == 6
    await operator.client.patch(PODS, operator.namespace, name_of(held), {"metadata": {"finalizers": None}})


async def test_a_manifest_applied_again_takes_nothing_from_the_autoscaler(operator: Bed) -> None:
    """OC-18, WD-11: less replicas without names delete nothing while the autoscaler is on; the spec is never written."""
    await operator.create(autoscaled(group("g", 1, maxReplicas=10)))
    await operator.until_live(2)
    await operator.scale("demo", 8)
    await operator.all_ready("demo", 9)
    await operator.scale("demo", 1)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (9, 0)
    cluster = await operator.cluster("demo")
    assert cluster["spec"]["workerGroupSpecs"][0]["replicas"] == 1
    managers = {m["manager"] for m in cluster["metadata"]["managedFields"] if "f:spec" in m["fieldsV1"]}
    status_writers = [m for m in cluster["metadata"]["managedFields"] if m.get("subresource") == "status"]
    assert status_writers
    assert all("f:spec" not in m["fieldsV1"] for m in status_writers)
    assert len(managers) == 1  # the user of this test


async def test_pending_pods_count_so_that_a_climbing_target_stops_at_the_maximum(operator: Bed) -> None:
    """OC-19."""
    await operator.create(autoscaled(group("g", 0, maxReplicas=8)))
    for replicas in (*range(1, 9), 9, 20, 50):
        await operator.scale("demo", replicas)
    await operator.until_live(9)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (9, 0)


async def test_clusters_of_one_name_in_two_namespaces_do_not_meet(
    apiserver: ControlPlane, namespace: NamespaceFactory
) -> None:
    """OC-21."""
    one, two = namespace(apiserver), namespace(apiserver)
    async with bed(apiserver, one, also=[two]) as here:
        there = here.at(two)
        await here.create(raycluster("demo", group("g", 2)))
        await there.create(raycluster("demo", group("g", 3)))
        await here.until_live(3)
        others = {uid_of(p) for p in await there.until_live(4)}
        await here.settled()
        await here.scale("demo", 0)
        await here.until_live(1)
        await here.settled()
        assert {uid_of(p) for p in await there.pods() if alive(p)} == others
        assert (here.made(), here.killed()) == (7, 2)


async def collect_garbage(b: Bed, uid: str) -> None:
    """Play the garbage collector for an owner that is gone."""
    from tpu_operator.controller.caches import resource_of
    from tpu_operator.resources.registry import CHILD_KINDS

    for resource in (PODS, *map(resource_of, CHILD_KINDS)):
        for item in await b.all_of(resource):
            if any(o["uid"] == uid for o in item["metadata"].get("ownerReferences", ())):
                grace = 0 if resource is PODS else None
                await b.client.delete(resource, b.namespace, name_of(item), grace_seconds=grace)


async def test_a_cluster_created_again_at_once_gets_children_of_its_own(operator: Bed) -> None:
    """OC-22, DK-10: the old pods and services are still there, with the old owner."""
    first = await operator.create(raycluster("demo", group("g", 3, 2)))
    old = {uid_of(p) for p in await operator.all_ready("demo", 7)}
    await operator.settled()
    await operator.delete_cluster("demo")
    second = await operator.create(raycluster("demo", group("g", 3, 2)))
    await operator.until("7 new pods", lambda pods: len({uid_of(p) for p in pods} - old) == 7)
    await collect_garbage(operator, uid_of(first))
    pods = await operator.until_live(7)
    await operator.settled()
    assert {uid_of(p) for p in pods}.isdisjoint(old)
    assert (operator.made(), operator.killed()) == (14, 0)
    from tpu_operator.kube.resource import Resource

    services = await operator.all_of(Resource("", "v1", "services", "Service"))
    assert {name_of(s) for s in services} >= {names.head_service("demo"), names.headless_service("demo")}
    assert {o["uid"] for s in services for o in s["metadata"]["ownerReferences"]} == {uid_of(second)}


async def test_every_delete_names_the_uid_that_is_meant(proxied: Bed, proxy: Proxy) -> None:
    """OC-24: a pod of the same name that the cache does not know of yet is not hit."""
    await proxied.create(raycluster("demo", group("g", 2)))
    victim = live_workers(await proxied.until_live(3))[1]
    await proxied.settled()
    proxy.hold_events(watches("pods"))
    await proxied.delete_pod(victim, grace=0)
    twin = {k: v for k, v in victim.items() if k != "status"}
    twin["metadata"] = {k: victim["metadata"][k] for k in ("name", "labels", "ownerReferences")}
    await proxied.client.create(PODS, proxied.namespace, twin)
    await proxied.scale("demo", 1, [name_of(victim)])
    await proxied.client.patch(PODS, proxied.namespace, name_of(victim), {"metadata": {"labels": {"mine": "yes"}}})
    await proxy.until(lambda: proxy.count(writes("pods", "DELETE")) == 1)
    await proxied.settled()
    (request,) = [r for r in proxy.requests if writes("pods", "DELETE")(r)]
    assert uid_of(victim).encode() in request.body
    assert name_of(victim) in map(name_of, filter(alive, await proxied.pods()))


async def test_an_operator_that_starts_on_old_news_deletes_nothing(proxied: Bed, proxy: Proxy) -> None:
    """OC-24: lists ask for the newest state, never for what a cache of the API server happens to hold."""
    await proxied.create(raycluster("demo", group("g", 1)))
    await proxied.until_live(2)
    await proxied.settled()
    await proxied.stop()
    await proxied.scale("demo", 4)
    proxy.requests.clear()
    await proxied.start()
    await proxied.until_live(5)
    await proxied.settled()
    assert (proxied.made(), proxied.killed()) == (5, 0)
    lists = [r for r in proxy.requests if r.method == "GET" and not r.watch and "/pods" in r.path]
    assert lists
    assert not any(r.query.get("resourceVersion") == "0" for r in lists)


async def test_nothing_of_a_deleted_cluster_holds_back_the_next_of_its_name(proxied: Bed, proxy: Proxy) -> None:
    """OC-25: deleted while creates were on their way."""
    await proxied.create(raycluster("demo", group("g", 1)))
    await proxied.until_live(2)
    await proxied.settled()
    proxy.delay(writes("pods", "POST"), 0.7, times=4)
    await proxied.scale("demo", 5)
    await proxy.until(lambda: proxy.count(writes("pods", "POST")) >= 3)
    await proxied.delete_cluster("demo")
    new = await proxied.create(raycluster("demo", group("g", 2)))

    def owned(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [p for p in pods if p["metadata"]["ownerReferences"][0]["uid"] == uid_of(new)]

    await proxied.until("head and 2 workers", lambda pods: len(owned(pods)) == 3, seconds=5)
    await proxied.settled()
    assert len(owned(await proxied.pods())) == 3


async def test_twenty_slow_creates_make_twenty_pods(proxied: Bed, proxy: Proxy) -> None:
    """DK-01: the spec is touched while creates are under way."""
    proxy.delay(writes("pods", "POST"), 0.1)
    await proxied.create(raycluster("demo", group("g", 20)))
    for round_ in range(5):
        await proxied.annotate("demo", touched=str(round_))
        await proxy.until(lambda count=3 * round_: proxy.count(writes("pods", "POST")) >= count)
    await proxied.until_live(21)
    await proxied.settled()
    assert (proxied.made(), proxied.killed()) == (21, 0)


async def test_up_and_down_in_a_moment_ends_at_the_last_word(operator: Bed) -> None:
    """DK-02."""
    await operator.create(raycluster("demo", group("g", 1)))
    await operator.until_live(2)
    await operator.scale("demo", 10)
    await asyncio.sleep(0)
    await operator.scale("demo", 2)
    await operator.until_live(3)
    await operator.settled()
    assert len(await operator.pods()) == 3
    assert operator.made() - operator.killed() == 3


async def test_a_group_goes_down_to_one_to_none_and_up_again(operator: Bed) -> None:
    """DK-08."""
    await operator.create(raycluster("demo", group("g", 3)))
    for replicas in (3, 1, 0, 2):
        await operator.scale("demo", replicas)
        await operator.until_live(1 + replicas)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (6, 3)


async def test_a_deleted_child_is_made_again(operator: Bed) -> None:
    """DK-13, for a worker, the head and a service."""
    from tpu_operator.kube.resource import Resource

    services = Resource("", "v1", "services", "Service")
    await operator.create(raycluster("demo", group("g", 3)))
    pods = await operator.until_live(4)
    await operator.settled()
    await operator.delete_pod(workers(pods)[0], grace=0)
    await operator.delete_pod(await operator.head(), grace=0)
    await operator.client.delete(services, operator.namespace, names.head_service("demo"))
    await operator.until(
        "all again", lambda now: len(now) == 4 and {uid_of(p) for p in now} != {uid_of(p) for p in pods}
    )
    await operator.settled()
    assert (operator.made(), operator.killed()) == (6, 0)
    assert names.head_service("demo") in map(name_of, await operator.all_of(services))
