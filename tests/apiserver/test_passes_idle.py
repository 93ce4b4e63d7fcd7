"""A cluster that is as it should be is not written, and nothing is remembered of one that is gone."""

from __future__ import annotations

from typing import Any

import pytest

from bed import Bed, alive, group, name_of, raycluster, uid_of, workers
from tpu_operator.controller.executor import RAYCLUSTERS

pytestmark = pytest.mark.apiserver


def ready(cluster: dict[str, Any]) -> bool:
    return cluster.get("status", {}).get("state") == "ready"


async def converged(b: Bed) -> None:
    spec = raycluster("demo", group("g", 2, 2, maxReplicas=5), group("h", 1), enableInTreeAutoscaling=True)
    await b.create(spec)
    await b.all_ready("demo", 6)
    await b.until_cluster("demo", "ready", ready)
    await b.settled()


async def test_a_settled_cluster_is_not_written(operator: Bed) -> None:
    await converged(operator)
    before = operator.writes()
    await operator.watch_for(2.0)
    assert operator.writes() == before


async def test_what_does_not_matter_causes_no_write(operator: Bed) -> None:
    """Somebody else's annotation, and news of pods that change nothing."""
    await converged(operator)
    before = operator.writes()
    await operator.annotate("demo", note="hello")
    for pod in await operator.pods():
        await operator.status(pod, message="still fine")
    await operator.watch_for(1.5)
    assert operator.writes() == before


async def test_a_new_process_finds_nothing_to_do(operator: Bed) -> None:
    await converged(operator)
    before, events = operator.writes(), len(await operator.events())
    await operator.restart()
    await operator.watch_for(1.5)
    assert operator.writes() == before
    assert len(await operator.events()) == events


async def test_a_new_process_finds_nothing_to_do_in_a_suspended_cluster(operator: Bed) -> None:
    await operator.create(raycluster("demo", group("g", 2), suspend=True))
    await operator.until_cluster("demo", "suspended", lambda c: c.get("status", {}).get("state") == "suspended")
    await operator.settled()
    before = operator.writes()
    await operator.restart()
    await operator.watch_for(1.0)
    assert operator.writes() == before
    assert operator.made() == 0


async def test_a_burst_of_changes_costs_few_status_writes(operator: Bed) -> None:
    await converged(operator)
    before = operator.calls["patch", "rayclusters"]
    for pod in workers(await operator.pods()):
        for status in ("False", "True") * 3:
            await operator.status(pod, conditions=[{"type": "Ready", "status": status}])
    await operator.settled()
    assert operator.calls["patch", "rayclusters"] - before <= 20


async def test_nothing_is_remembered_of_clusters_that_are_gone(operator: Bed) -> None:
    """DK-04."""
    for number in range(10):
        await operator.create(raycluster(f"demo{number}", group("g", 1)))
    await operator.until("20 pods", lambda pods: len(pods) == 20)
    await operator.settled()
    for number in range(10):
        await operator.delete_cluster(f"demo{number}")
    for pod in await operator.pods():
        await operator.delete_pod(pod, grace=0)
    app, reconciler = operator.app, operator.app.reconciler
    await operator.until_true(
        "nothing remembered",
        lambda: not any(
            map(
                len,
                (
                    app.clusters, app.caches.pods, app.caches.pod_writes, reconciler.uids, reconciler._rest_until,
                    reconciler.observer.memories, reconciler.reporter._not_before, app.queue._failures,
                ),
            )
        ),
    )  # fmt: skip


async def test_no_pod_is_made_while_a_cluster_is_deleted_in_the_foreground(operator: Bed) -> None:
    """FN-07: the garbage collector takes the workers one by one."""
    await operator.create(raycluster("demo", group("g", 4)))
    pods = await operator.all_ready("demo", 5)
    await operator.settled()
    await operator.delete_cluster("demo", propagation="Foreground")
    assert (await operator.cluster("demo"))["metadata"]["deletionTimestamp"]
    for pod in pods:
        await operator.delete_pod(pod, grace=0)
        await operator.settled(0.1)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (5, 0)
    assert await operator.pods() == []
    await operator.client.patch(RAYCLUSTERS, operator.namespace, "demo", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_an_operator_that_was_down_when_a_cluster_was_deleted_makes_nothing(
    operator: Bed, propagation: str
) -> None:
    """FN-10."""
    await operator.create(raycluster("demo", group("g", 2)))
    pods = await operator.until_live(3)
    await operator.settled()
    await operator.stop()
    await operator.delete_cluster("demo", propagation)
    await operator.delete_pod(workers(pods)[0], grace=0)
    await operator.start()
    await operator.settled()
    assert (operator.made(), operator.killed()) == (3, 0)
    if propagation == "Foreground":
        await operator.client.patch(RAYCLUSTERS, operator.namespace, "demo", {"metadata": {"finalizers": None}})


async def test_a_scale_up_that_was_ordered_while_the_operator_was_down_is_done(operator: Bed) -> None:
    await operator.create(raycluster("demo", group("g", 1)))
    pods = await operator.until_live(2)
    await operator.stop()
    await operator.scale("demo", 3)
    await operator.delete_pod(workers(pods)[0], grace=0)
    await operator.start()
    after = await operator.until_live(4)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (5, 0)
    assert len({name_of(p) for p in (*pods, *after)}) == 5
    assert all(alive(p) for p in after)
    assert uid_of(pods[0])
