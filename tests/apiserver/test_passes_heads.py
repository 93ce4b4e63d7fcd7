"""Heads and workers that fail: what is replaced, what is left to the kubelet, how often (cases HP)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from proxy import Proxy, Seen

from bed import Bed, alive, condition, group, label, name_of, pod_template, raycluster, uid_of, workers
from tpu_operator.api import names
from tpu_operator.kube.resource import PODS

pytestmark = pytest.mark.apiserver


def live_workers(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [p for p in workers(pods) if alive(p)]


def heads(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [p for p in pods if label(p, names.NODE_TYPE) == names.HEAD]


def container_status(name: str, *, ended: bool) -> dict[str, Any]:
    state = {"terminated": {"exitCode": 1, "reason": "Error"}} if ended else {"running": {}}
    return {
        "name": name, "ready": not ended, "started": not ended, "restartCount": 0, "state": state, "image": "", "imageID": ""
    }  # fmt: skip


def with_sidecar(policy: str) -> dict[str, Any]:
    template = pod_template(restartPolicy=policy)
    template["spec"]["containers"].append({"name": "log", "image": "log:test"})
    return template


@pytest.mark.parametrize("reason", ["Evicted", "NodeAffinity", "NodeShutdown", "Preempting"])
async def test_a_head_that_failed_for_good_is_replaced_under_another_name(operator: Bed, reason: str) -> None:
    """HP-01, HP-07, HP-11: whatever the restart policy, a kubelet restarts nothing in a failed pod."""
    await operator.create(raycluster("demo", group("g", 1)))
    await operator.all_ready("demo", 2)
    await operator.settled()
    old = await operator.head()
    await operator.fail(old, reason)
    most = 0

    def replaced(pods: list[dict[str, Any]]) -> bool:
        nonlocal most
        most = max(most, sum(map(alive, heads(pods))))
        return [uid_of(h) for h in heads(pods)] not in ([], [uid_of(old)]) and len(pods) == 2

    async with operator.kubelet():
        pods = await operator.until("another head", replaced)
    await operator.settled()
    assert most == 1
    assert name_of(heads(pods)[0]) != name_of(old)
    assert (operator.made(), operator.killed()) == (3, 1)


async def test_a_worker_that_failed_on_a_rebooted_node_is_replaced_once(operator: Bed) -> None:
    """HP-11."""
    await operator.create(raycluster("demo", group("g", 2)))
    victim, other = live_workers(await operator.all_ready("demo", 3))
    await operator.settled()
    await operator.fail(victim, "NodeAffinity")
    async with operator.kubelet():
        pods = await operator.until("replaced", lambda pods: len(pods) == 3 and uid_of(victim) not in map(uid_of, pods))
    await operator.settled()
    assert uid_of(other) in map(uid_of, pods)
    assert (operator.made(), operator.killed()) == (4, 1)


async def test_a_head_whose_container_crashed_is_left_to_the_kubelet(operator: Bed) -> None:
    """HP-02."""
    await operator.create(raycluster("demo", group("g", 1)))
    await operator.all_ready("demo", 2)
    await operator.until_cluster("demo", "ready", lambda c: c.get("status", {}).get("state") == "ready")
    head = await operator.head()
    unready = [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]
    await operator.status(head, conditions=unready, containerStatuses=[container_status("ray", ended=True)])
    await operator.until_cluster("demo", "told", lambda c: condition(c, "HeadPodReady").get("status") == "False")
    await operator.settled()
    assert (operator.made(), operator.killed()) == (2, 0)


@pytest.mark.parametrize(("policy", "replaced"), [("Never", 1), ("OnFailure", 0), ("Always", 0)])
async def test_a_sidecar_does_not_hide_that_ray_has_ended(operator: Bed, policy: str, replaced: int) -> None:
    """HP-04."""
    await operator.create(raycluster("demo", group("g", 1, template=with_sidecar(policy))))
    (worker,) = live_workers(await operator.all_ready("demo", 2))
    await operator.settled()
    ended = [container_status("log", ended=False), container_status("ray", ended=True)]
    await operator.status(worker, containerStatuses=ended, conditions=[{"type": "Ready", "status": "False"}])
    async with operator.kubelet():
        if replaced:
            await operator.until("replaced", lambda p: len(p) == 2 and uid_of(worker) not in map(uid_of, p))
        await operator.until_cluster("demo", "noticed", lambda c: c["status"].get("readyWorkerReplicas", 0) == replaced)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (2 + replaced, replaced)


async def test_a_sidecar_that_ended_is_no_reason_to_replace_a_worker(operator: Bed) -> None:
    """HP-05: Ray is found by name, wherever it stands in the list of containers."""
    await operator.create(raycluster("demo", group("g", 1, template=with_sidecar("Never"))))
    (worker,) = live_workers(await operator.all_ready("demo", 2))
    await operator.settled()
    statuses = [container_status("log", ended=True), container_status("ray", ended=False)]
    await operator.status(worker, containerStatuses=statuses)
    await operator.annotate("demo", touched="yes")
    await operator.settled()
    assert (operator.made(), operator.killed()) == (2, 0)


async def twin_of(b: Bed, pod: dict[str, Any], name: str) -> dict[str, Any]:
    metadata = {k: pod["metadata"][k] for k in ("labels", "annotations", "ownerReferences") if k in pod["metadata"]}
    return await b.client.create(
        PODS, b.namespace, {"metadata": metadata | {"name": name}, "spec": pod_template()["spec"]}
    )


async def test_of_two_heads_the_one_that_does_not_work_goes(operator: Bed) -> None:
    """HP-08."""
    await operator.create(raycluster("demo", group("g", 1)))
    await operator.all_ready("demo", 2)
    await operator.settled()
    head = await operator.head()
    second = await twin_of(operator, head, "demo-head-again")
    await operator.scale("demo", 3)
    pods = await operator.until("one head, 3 workers", lambda pods: len(pods) == 4 and len(heads(pods)) == 1)
    await operator.settled()
    assert [uid_of(h) for h in heads(pods)] == [uid_of(head)] != [uid_of(second)]


async def test_two_ready_heads_are_told_and_workers_go_on(operator: Bed) -> None:
    """HP-08: none of them is touched."""
    await operator.create(raycluster("demo", group("g", 1)))
    await operator.all_ready("demo", 2)
    await operator.settled()
    await operator.stop()
    second = await twin_of(operator, await operator.head(), "demo-head-again")
    await operator.make_ready([second])
    await operator.start()
    await operator.scale("demo", 3)
    pods = await operator.until("3 workers", lambda pods: len(live_workers(pods)) == 3)
    assert len(heads(pods)) == 2
    await operator.until_events("told", lambda seen: any(e["reason"] == "MultipleHeadPods" for e in seen))
    await operator.settled()
    assert operator.killed() == 0
    assert len(await operator.warnings("MultipleHeadPods")) == 1


async def test_a_worker_that_fails_at_once_every_time_is_not_made_without_end(operator: Bed) -> None:
    """HP-10: at once twice, then with growing pauses."""
    await operator.create(raycluster("demo", group("g", 1)))
    await operator.until_live(2)
    most = 0
    for tries in (2, 3, 4):
        found = await operator.until(
            "another try", lambda pods, n=tries: operator.made() == n and len(live_workers(pods)) == 1
        )
        most = max(most, len(workers(found)))
        await operator.fail(live_workers(found)[0], "UnexpectedAdmissionError")
    await operator.settled(1.5)
    assert most <= 2
    assert operator.made() == 4
    waiting = await operator.cluster("demo")
    assert "pause after repeated failures" in condition(waiting, "Reconciling")["message"]


async def test_a_head_that_fails_at_once_every_time_is_not_made_without_end(operator: Bed) -> None:
    """HP-10."""
    await operator.create(raycluster("demo"))
    for tries in (1, 2, 3):
        found = await operator.until(
            "another try", lambda pods, n=tries: operator.made() == n and any(map(alive, pods))
        )
        await operator.fail(next(filter(alive, found)))
    await operator.settled(1.5)
    assert operator.made() == 3


def creates_in(group_name: str) -> Any:
    def matches(seen: Seen) -> bool:
        if seen.method != "POST" or not seen.path.endswith("/pods"):
            return False
        return json.loads(seen.body)["metadata"]["labels"][names.NODE_GROUP] == group_name

    return matches


@pytest.mark.parametrize("status", [403, 500])
async def test_a_group_that_is_refused_does_not_hold_up_the_next(proxied: Bed, proxy: Proxy, status: int) -> None:
    """HP-13: refused for good, or in trouble for the moment."""
    await proxied.create(raycluster("demo", group("a", 0), group("b", 0)))
    await proxied.until_live(1)
    await proxied.settled()
    proxy.fail(creates_in("a"), status, times=10**6, message="exceeded quota: nothing for a", reason="Forbidden")
    await proxied.edit(
        "demo",
        {"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 3},
        {"op": "replace", "path": "/spec/workerGroupSpecs/1/replicas", "value": 3},
    )
    pods = await proxied.until_live(4)
    assert {label(p, names.NODE_GROUP) for p in live_workers(pods)} == {"b"}
    assert proxy.count(creates_in("b")) == 3


async def test_a_group_with_a_sick_worker_does_not_hold_up_the_next(operator: Bed) -> None:
    """HP-13."""
    await operator.create(raycluster("demo", group("a", 1), group("b", 0)))
    sick, = live_workers(await operator.all_ready("demo", 2))  # fmt: skip
    await operator.settled()
    await operator.stop()
    await operator.fail(sick)
    await operator.scale("demo", 3, index=1)
    await operator.start()
    await operator.until("b is there", lambda p: sum(label(w, names.NODE_GROUP) == "b" for w in live_workers(p)) == 3)


async def test_a_head_that_is_deleted_while_the_api_is_slow_comes_back(operator: Bed) -> None:
    """DK-16."""
    await operator.create(raycluster("demo", group("g", 1)))
    await operator.until_live(2)
    head = await operator.head()
    await operator.delete_pod(head, grace=0)
    await operator.until("another head", lambda p: [uid_of(h) for h in heads(p)] not in ([], [uid_of(head)]))
