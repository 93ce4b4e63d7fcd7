"""A slice is created, kept and deleted as a whole, each host with an identity of its own (cases MH)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from proxy import Proxy, watches

from bed import Bed, alive, group, label, pod_template, raycluster, slot, uid_of, workers
from tpu_operator.api import names
from tpu_operator.kube.resource import PODS

pytestmark = pytest.mark.apiserver


def live_workers(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [p for p in workers(pods) if alive(p)]


def uids(pods: list[dict[str, Any]]) -> set[str]:
    return {uid_of(p) for p in pods}


def by_index(pods: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for pod in live_workers(pods):
        found.setdefault(slot(pod)[1], []).append(pod)
    return found


def whole(pods: list[dict[str, Any]], hosts: int) -> bool:
    """Every slice has host indices 0 to hosts - 1, each once, and a name of its own."""
    slices = by_index(pods).values()
    hosts_fit = all(sorted(int(slot(p)[2]) for p in s) == list(range(hosts)) for s in slices)
    names_of = [{label(p, names.REPLICA_NAME) for p in s} for s in slices]
    return hosts_fit and all(len(n) == 1 for n in names_of) and len(set.union(*names_of)) == len(names_of)


def tpu_group(name: str, accelerator: str, topology: str, hosts: int, replicas: int = 1) -> dict[str, Any]:
    """Of machines with four chips."""
    selector = {"cloud.google.com/gke-tpu-accelerator": accelerator, "cloud.google.com/gke-tpu-topology": topology}
    return group(name, replicas, hosts, template=pod_template(4, nodeSelector=selector))


def env(pod: dict[str, Any]) -> dict[str, str]:
    return {e["name"]: e.get("value", "") for e in pod["spec"]["containers"][0]["env"]}


async def test_a_ready_slice_makes_the_cluster_ready_and_counts_pods(operator: Bed) -> None:
    """MH-01, MH-34."""
    await operator.create(raycluster("demo", group("g", 1, 4)))
    await operator.all_ready("demo", 5)
    cluster = await operator.until_cluster("demo", "ready", lambda c: c.get("status", {}).get("state") == "ready")
    status = cluster["status"]
    counts = ("desiredWorkerReplicas", "availableWorkerReplicas", "readyWorkerReplicas")
    assert [status[c] for c in counts] == [4, 4, 4]


async def test_a_slice_that_lost_a_host_is_made_anew_and_the_others_stay(operator: Bed) -> None:
    """MH-03, MH-04: the host's pod is gone without a trace."""
    await operator.create(raycluster("demo", group("g", 2, 4)))
    before = by_index(await operator.all_ready("demo", 9))
    await operator.settled()
    victim = next(p for p in before["1"] if slot(p)[2] == "2")
    await operator.delete_pod(victim, grace=0)
    most = 0

    def again(pods: list[dict[str, Any]]) -> bool:
        nonlocal most
        most = max(most, len(live_workers(pods)))
        return len(pods) == 9 and uids(pods).isdisjoint(uids(before["1"]))

    async with operator.kubelet():
        pods = await operator.until("a new slice", again)
    await operator.settled()
    assert most <= 8
    assert uids(before["0"]) <= uids(pods)
    assert whole(pods, 4)
    assert (operator.made(), operator.killed()) == (13, 3)


@pytest.mark.parametrize("reason", ["Evicted", "NodeLost", "Preempting"])
async def test_a_host_that_fails_takes_its_slice_with_it(operator: Bed, reason: str) -> None:
    """MH-04: the failed pod's object goes too."""
    await operator.create(raycluster("demo", group("g", 2, 2)))
    before = by_index(await operator.all_ready("demo", 5))
    await operator.settled()
    await operator.fail(before["0"][1], reason)
    async with operator.kubelet():
        pods = await operator.until(
            "a new slice", lambda pods: len(pods) == 5 and uids(pods).isdisjoint(uids(before["0"]))
        )
    await operator.settled()
    assert uids(before["1"]) <= uids(pods)
    assert whole(pods, 2)
    assert (operator.made(), operator.killed()) == (7, 2)


async def test_every_broken_slice_is_repaired_at_the_same_time(operator: Bed) -> None:
    await operator.create(raycluster("demo", group("a", 2, 2), group("b", 2, 2)))
    before = live_workers(await operator.all_ready("demo", 9))
    await operator.settled()
    for pod in before:
        if slot(pod)[2] == "0":
            await operator.fail(pod)
    async with operator.kubelet():
        pods = await operator.until("all anew", lambda pods: len(pods) == 9 and uids(pods).isdisjoint(uids(before)))
    await operator.settled()
    assert (operator.made(), operator.killed()) == (17, 8)
    assert len({slot(p) for p in live_workers(pods)}) == 8


@pytest.mark.parametrize(("before", "after", "replicas"), [(2, 4, 2), (4, 2, 1)], ids=["grows", "shrinks"])
async def test_slices_of_another_size_are_replaced_and_sizes_never_mix(
    operator: Bed, before: int, after: int, replicas: int
) -> None:
    """MH-06, MH-07, with slices that work."""
    await operator.create(raycluster("demo", group("g", replicas, before)))
    old = uids(live_workers(await operator.all_ready("demo", 1 + replicas * before)))
    await operator.settled()
    edit = {"op": "replace", "path": "/spec/workerGroupSpecs/0/numOfHosts", "value": after}
    await operator.edit("demo", edit)
    wanted = 1 + replicas * after

    def done(pods: list[dict[str, Any]]) -> bool:
        sizes = [len(s) for s in by_index(pods).values()]
        assert all(size <= max(before, after) for size in sizes)
        return len(pods) == wanted and uids(pods).isdisjoint(old)

    async with operator.kubelet():
        pods = await operator.until("slices of the new size", done)
    await operator.settled()
    assert whole(pods, after)
    assert (operator.made(), operator.killed()) == (1 + replicas * (before + after), replicas * before)


async def test_pods_from_before_the_replica_labels_are_counted_as_the_slice_that_they_are(operator: Bed) -> None:
    """MH-09: an operator without these labels made four hosts; ours starts."""
    await operator.stop()
    cluster = await operator.create(raycluster("demo", group("g", 1, 4)))
    for host in range(4):
        await operator.client.create(PODS, operator.namespace, old_worker(cluster, f"demo-g-worker-old{host}"))
    await operator.start()
    await operator.all_ready("demo", 5)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (1, 0)
    await operator.until_cluster("demo", "ready", lambda c: c.get("status", {}).get("state") == "ready")


def old_worker(cluster: dict[str, Any], name: str) -> dict[str, Any]:
    labels = {names.CLUSTER: "demo", names.NODE_TYPE: names.WORKER, names.NODE_GROUP: "g", names.IS_RAY_NODE: "yes"}
    owner = names.controller_reference("demo", uid_of(cluster))
    return {"metadata": {"name": name, "labels": labels, "ownerReferences": [owner]}, "spec": pod_template()["spec"]}


async def test_a_new_slice_takes_the_lowest_free_index(operator: Bed) -> None:
    """MH-10."""
    await operator.create(raycluster("demo", group("g", 3, 2)))
    before = by_index(await operator.all_ready("demo", 7))
    await operator.settled()
    victim = before["1"][0]["metadata"]["name"]
    await operator.scale("demo", 2, [victim])
    async with operator.kubelet():
        await operator.until("slice 1 goes", lambda pods: len(pods) == 5)
    await operator.scale("demo", 3, [victim])
    pods = await operator.until_live(7)
    await operator.settled()
    after = by_index(pods)
    assert sorted(after) == ["0", "1", "2"]
    assert uids(after["0"]) == uids(before["0"])
    assert uids(after["2"]) == uids(before["2"])
    assert whole(pods, 2)


async def test_a_scale_down_takes_one_whole_slice(operator: Bed) -> None:
    """MH-12."""
    await operator.create(raycluster("demo", group("g", 2, 4)))
    before = by_index(await operator.all_ready("demo", 9))
    await operator.settled()
    await operator.scale("demo", 1)
    pods = await operator.until_live(5)
    await operator.settled()
    left = uids(live_workers(pods))
    assert left in (uids(before["0"]), uids(before["1"]))
    assert (operator.made(), operator.killed()) == (9, 4)


async def test_sixty_four_hosts_have_sixty_four_identities(proxied: Bed, proxy: Proxy) -> None:
    """MH-15: created as fast as the API server takes them, while no watch shows any."""
    proxy.hold_events(watches("pods"))
    await proxied.create(raycluster("demo", tpu_group("g", "tpu-v6e-slice", "16x16", 64)))
    pods = workers(await proxied.until_live(65))
    await proxied.settled()
    proxy.release_events()
    await proxied.settled()
    assert sorted(int(env(p)["TPU_WORKER_ID"]) for p in pods) == list(range(64))
    assert all(env(p)["TPU_WORKER_ID"] == slot(p)[2] for p in pods)
    hostnames = {env(p)["TPU_WORKER_HOSTNAMES"] for p in pods}
    assert [len(h.split(",")) for h in hostnames] == [64]
    assert len({p["spec"]["hostname"] for p in pods}) == 64
    assert (proxied.made(), proxied.killed()) == (65, 0)


async def test_a_single_host_always_is_worker_zero(operator: Bed) -> None:
    """MH-16."""
    await operator.create(raycluster("demo", tpu_group("g", "tpu-v4-podslice", "2x2x1", 1, replicas=2)))
    pods = await operator.until_live(3)
    await operator.settled()
    for _ in range(2):
        gone = live_workers(pods)[0]
        await operator.delete_pod(gone, grace=0)
        pods = await operator.until(
            "another one", lambda now, gone=gone: len(now) == 3 and uid_of(gone) not in uids(now)
        )
    assert {env(p)["TPU_WORKER_ID"] for p in live_workers(pods)} == {"0"}
    assert all("," not in env(p).get("TPU_WORKER_HOSTNAMES", "") for p in live_workers(pods))


async def test_two_tpu_groups_number_their_hosts_apart(operator: Bed) -> None:
    """MH-18, MH-25, MH-27."""
    a = tpu_group("a", "tpu-v4-podslice", "2x2x2", 2, replicas=2)
    b = tpu_group("b", "tpu-v6e-slice", "4x4", 4)
    await operator.create(raycluster("demo", a, b))
    pods = workers(await operator.until_live(9))
    ids = Counter((slot(p)[:2], env(p)["TPU_WORKER_ID"]) for p in pods)
    assert set(ids.values()) == {1}
    assert {i for (s, i) in ids if s == ("b", "0")} == {"0", "1", "2", "3"}
    for pod in pods:
        mates = {q["spec"]["hostname"] for q in pods if slot(q)[:2] == slot(pod)[:2]}
        told = {h.split(".")[0] for h in env(pod)["TPU_WORKER_HOSTNAMES"].split(",")}
        assert told == mates
    assert len({env(p)["TPU_NAME"] for p in pods}) == 3


async def test_late_news_of_an_old_slice_do_not_harm_the_new_one(operator: Bed) -> None:
    """MH-30: hosts of the old slice die one after the other, long after its replacement was decided."""
    await operator.create(raycluster("demo", group("g", 1, 4, template=pod_template(terminationGracePeriodSeconds=1))))
    before = live_workers(await operator.all_ready("demo", 5))
    await operator.settled()
    await operator.fail(before[0])
    await operator.until(
        "a new slice", lambda pods: len([p for p in live_workers(pods) if uid_of(p) not in uids(before)]) == 4
    )
    for pod in before[1:]:
        await operator.fail(pod)
    await operator.end_terminating()
    await operator.settled()
    assert (operator.made(), operator.killed()) == (9, 4)
