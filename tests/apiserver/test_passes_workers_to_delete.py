"""scaleStrategy.workersToDelete: the autoscaler's orders, and nothing but them (cases WD)."""

from __future__ import annotations

from typing import Any

import pytest

from bed import Bed, alive, group, label, name_of, pod_template, raycluster, slot, uid_of, workers
from tpu_operator.api import names
from tpu_operator.kube.resource import PODS

pytestmark = pytest.mark.apiserver


def live_workers(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [p for p in workers(pods) if alive(p)]


def uids(pods: list[dict[str, Any]]) -> set[str]:
    return {uid_of(p) for p in pods}


async def three_workers(b: Bed, *, autoscaler: bool = True) -> list[dict[str, Any]]:
    await b.create(raycluster("demo", group("g", 3, maxReplicas=10), enableInTreeAutoscaling=autoscaler))
    found = live_workers(await b.all_ready("demo", 4))
    await b.settled()
    return found


async def test_a_failed_pod_that_is_named_goes_and_is_not_replaced(operator: Bed) -> None:
    """WD-01: the operator sees the failure and the order at the same time."""
    one, two, three = await three_workers(operator)
    await operator.stop()
    await operator.fail(one)
    await operator.scale("demo", 2, [name_of(one)])
    await operator.start()
    await operator.until("the failed one goes", lambda pods: uids(live_workers(pods)) == uids([two, three]))
    await operator.settled()
    assert (operator.made(), operator.killed()) == (4, 1)


async def test_names_that_stay_in_the_list_have_no_further_effect(operator: Bed) -> None:
    """WD-02: over restarts, and when more workers are wanted again."""
    one, *others = await three_workers(operator)
    await operator.scale("demo", 2, [name_of(one)])
    await operator.end_terminating()
    await operator.until("it goes", lambda pods: uids(live_workers(pods)) == uids(others))
    await operator.end_terminating()
    for _ in range(2):
        await operator.restart()
        await operator.settled()
    assert (operator.made(), operator.killed()) == (4, 1)
    await operator.scale("demo", 4, [name_of(one)])
    pods = await operator.until_live(5)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (6, 1)
    assert name_of(one) not in [name_of(p) for p in pods if alive(p)]
    assert (await operator.cluster("demo"))["spec"]["workerGroupSpecs"][0]["scaleStrategy"] == {
        "workersToDelete": [name_of(one)]
    }


async def test_a_named_worker_goes_though_another_died_at_the_same_moment(operator: Bed) -> None:
    """WD-04."""
    one, two, three = await three_workers(operator)
    await operator.stop()
    await operator.delete_pod(two, grace=0)
    await operator.scale("demo", 2, [name_of(one)])
    await operator.start()
    async with operator.kubelet():
        pods = await operator.until(
            "one goes, one comes", lambda pods: len(pods) == 3 and uid_of(one) not in uids(pods)
        )
    await operator.settled()
    assert uid_of(three) in uids(pods)
    assert (operator.made(), operator.killed()) == (5, 1)


@pytest.mark.parametrize(("autoscaler", "left"), [(False, 2), (True, 4)], ids=["autoscaler-off", "autoscaler-on"])
async def test_less_names_than_the_drop_in_replicas(operator: Bed, *, autoscaler: bool, left: int) -> None:
    """WD-05: the operator adds victims of its own only where no autoscaler names them."""
    spec = raycluster("demo", group("g", 5, maxReplicas=10), enableInTreeAutoscaling=autoscaler)
    await operator.create(spec)
    named = live_workers(await operator.until_live(6))[3]
    await operator.settled()
    await operator.scale("demo", 2, [name_of(named)])
    pods = await operator.until_live(left + 1)
    await operator.settled()
    assert uid_of(named) not in uids(pods)
    assert (operator.made(), operator.killed()) == (6, 5 - left)


async def test_names_of_other_pods_are_not_obeyed(operator: Bed) -> None:
    """WD-07: pods of another group, of another cluster, of the user, and the head."""
    await operator.create(raycluster("demo", group("g", 2), group("h", 1), enableInTreeAutoscaling=True))
    await operator.create(raycluster("other", group("g", 1)))
    database = {"metadata": {"name": "database", "labels": {"app": "db"}}, "spec": pod_template()["spec"]}
    await operator.client.create(PODS, operator.namespace, database)
    mine = await operator.until_live(4, "demo")
    theirs = await operator.until_live(2, "other")
    await operator.settled()
    of_h = next(p for p in mine if label(p, names.NODE_GROUP) == "h")
    head = await operator.head("demo")
    named = [name_of(of_h), name_of(head), name_of(workers(theirs)[0]), "database"]
    before = uids(await operator.pods())
    await operator.scale("demo", 2, named)
    await operator.until_events("each name told", lambda seen: _ignored(seen) == len(named))
    await operator.annotate("demo", touched="yes")
    await operator.settled()
    assert operator.killed() == 0
    assert uids(await operator.pods()) == before
    assert len(await operator.warnings("IgnoredWorkersToDelete")) == len(named)


def _ignored(events: list[dict[str, Any]]) -> int:
    return sum(e["reason"] == "IgnoredWorkersToDelete" for e in events)


async def test_a_name_that_stands_there_twice_counts_once(operator: Bed) -> None:
    """WD-08: its pod takes its time to go, and passes come and go meanwhile."""
    one, *others = await three_workers(operator)
    await operator.scale("demo", 2, [name_of(one), name_of(one)])
    await operator.until("it terminates", lambda pods: uids(live_workers(pods)) == uids(others))
    for touched in ("a", "b", "c"):
        await operator.annotate("demo", touched=touched)
        await operator.settled(0.2)
    assert uid_of(one) in uids(await operator.pods())  # still terminating
    assert (operator.made(), operator.killed()) == (4, 1)
    told = [e for e in await operator.events() if name_of(one) in e["note"] and e["reason"] == "DeletedWorkerPod"]
    assert len(told) == 1


async def test_a_name_and_a_failed_pod_in_one_patch(operator: Bed) -> None:
    """WD-01, the other way round: what is not named is repaired as ever."""
    one, two, three = await three_workers(operator)
    await operator.stop()
    await operator.fail(two)
    await operator.scale("demo", 2, [name_of(one)])
    await operator.start()
    async with operator.kubelet():
        await operator.until(
            "one goes, two is replaced",
            lambda pods: len(pods) == 3 and uid_of(three) in uids(pods) and not uids([one, two]) & uids(pods),
        )
    await operator.settled()
    assert (operator.made(), operator.killed()) == (5, 2)


async def test_a_suspended_group_has_no_pods_and_names_do_no_harm(operator: Bed) -> None:
    """WD-13 without the autoscaler."""
    one, *_ = await three_workers(operator, autoscaler=False)
    await operator.edit(
        "demo",
        {"op": "add", "path": "/spec/workerGroupSpecs/0/suspend", "value": True},
        {"op": "add", "path": "/spec/workerGroupSpecs/0/scaleStrategy", "value": {"workersToDelete": [name_of(one)]}},
    )
    async with operator.kubelet():
        await operator.until("only the head", lambda pods: len(pods) == 1)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (4, 3)
    await operator.edit("demo", {"op": "remove", "path": "/spec/workerGroupSpecs/0/suspend"})
    await operator.until_live(4)


async def test_a_suspended_group_under_the_autoscaler_is_refused(operator: Bed) -> None:
    """WD-13 with it: nothing is deleted, and the mistake is told."""
    await three_workers(operator)
    await operator.edit("demo", {"op": "add", "path": "/spec/workerGroupSpecs/0/suspend", "value": True})
    await operator.until_events("told", lambda seen: any(e["reason"].startswith("Invalid") for e in seen))
    await operator.settled()
    assert operator.killed() == 0


@pytest.mark.parametrize("replicas", [1, 2], ids=["lowered", "not-lowered"])
async def test_naming_one_host_takes_its_whole_slice(operator: Bed, replicas: int) -> None:
    """MH-13; with replicas as before the slice is made anew."""
    await operator.create(raycluster("demo", group("g", 2, 4), enableInTreeAutoscaling=True))
    before = live_workers(await operator.all_ready("demo", 9))
    await operator.settled()
    victim = next(p for p in before if slot(p)[1:] == ("1", "2"))
    stay = [p for p in before if slot(p)[1] == "0"]
    await operator.scale("demo", replicas, [name_of(victim)])
    async with operator.kubelet():
        pods = await operator.until(
            "the slice goes", lambda pods: len(workers(pods)) == 4 * replicas and uid_of(victim) not in uids(pods)
        )
    await operator.settled()
    assert uids(stay) <= uids(pods)
    assert (operator.made(), operator.killed()) == (9 + 4 * (replicas - 1), 4)


async def test_naming_one_host_of_each_slice_takes_both(operator: Bed) -> None:
    """MH-13, the variant."""
    await operator.create(raycluster("demo", group("g", 2, 4), enableInTreeAutoscaling=True))
    before = live_workers(await operator.all_ready("demo", 9))
    await operator.settled()
    victims = [name_of(p) for p in before if slot(p)[2] == "3"]
    assert len(victims) == 2
    await operator.scale("demo", 0, victims)
    async with operator.kubelet():
        await operator.until("only the head", lambda pods: len(pods) == 1)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (9, 8)
