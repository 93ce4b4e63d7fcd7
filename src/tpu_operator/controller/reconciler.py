"""One pass: observe, plan, execute, report, remember."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic, perf_counter
from typing import TYPE_CHECKING

import structlog

from tpu_operator.api import names
from tpu_operator.errors import ApiError, Gone
from tpu_operator.kube.resource import PODS
from tpu_operator.planning.memory import Backoff, Memory
from tpu_operator.planning.planner import plan as make_plan
from tpu_operator.planning.remember import remember
from tpu_operator.resources.registry import looked_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.controller.caches import Caches, LostCreate
    from tpu_operator.controller.clusters import Clusters, Key
    from tpu_operator.controller.executor import Executor
    from tpu_operator.controller.observer import Observer
    from tpu_operator.controller.reporter import Reporter
    from tpu_operator.kube.client import Client
    from tpu_operator.kube.consistency import Unsettled
    from tpu_operator.kube.queue import WorkQueue
    from tpu_operator.planning.outcome import Outcomes
    from tpu_operator.planning.plan import Plan
    from tpu_operator.planning.pod import Pod
    from tpu_operator.planning.snapshot import Snapshot

log = structlog.get_logger()

REST = 8.0
"""A cluster rests for so many times the CPU time of its last pass, so that events of a huge one cost a bounded share."""

UNSETTLED_AGAIN = 1.0
"""Seconds until a create whose answer was lost is looked for once more."""


@dataclass(slots=True)
class Reconciler:
    """The loop's body. `queue` is set by the composition root, which knows both."""

    client: Client
    clusters: Clusters
    caches: Caches
    observer: Observer
    executor: Executor
    reporter: Reporter
    queue: WorkQueue[Key]
    uids: dict[Key, str]
    clock: Callable[[], float] = monotonic
    _rest_until: dict[Key, float] = field(default_factory=dict)

    def rest(self, key: Key) -> float:
        """Seconds that a cluster should still be left in peace, for the sake of the others."""
        return self._rest_until.get(key, 0.0) - self.clock()

    async def reconcile(self, key: Key) -> None:
        """Bring one RayCluster closer to what its spec says."""
        await self._settle(key)
        await self._look_up(key)
        started = perf_counter()
        snapshot = self.observer.observe(key)
        self._forget_old(key, snapshot.cluster.uid if snapshot else None)
        if snapshot is None:
            return
        plan = make_plan(snapshot)
        thinking = perf_counter() - started
        outcomes = await self.executor.execute(snapshot, plan, self._may_go_on)
        uid = snapshot.cluster.uid
        again = await self.reporter.report(snapshot, plan, outcomes)
        memory = self.observer.memories.get(uid, Memory()).of_generation(snapshot.cluster.generation)
        self.observer.memories[uid] = remember(memory, plan, outcomes, self.observer.clock())
        _log_pass(snapshot, plan, outcomes, perf_counter() - started)
        self._rest_until[key] = self.clock() + REST * thinking
        self._come_again(key, plan, outcomes, again)

    def _may_go_on(self, cluster: RayCluster) -> bool:
        """The plan rests on the newest spec, and the process is not on its way out."""
        return self.queue.is_open and self.clusters.is_current(cluster)

    def _come_again(self, key: Key, plan: Plan, outcomes: Outcomes, again: float | None) -> None:
        if outcomes.retry:
            self.queue.retry(key)
        elif not plan.empty:
            # What has just been done may make the next step possible: look once more.
            self.queue.add_after(key, max(self.rest(key), 0.05))
        waits = [w for w in (again, plan.requeue_after, self.observer.config.resync) if w is not None]
        waits += [b.waits(self.observer.clock()) for b in self._refusals(key)]
        self.queue.add_after(key, min(w for w in waits if w > 0))

    def _refusals(self, key: Key) -> tuple[Backoff, ...]:
        memory = self.observer.memories.get(self.uids.get(key, ""), Memory())
        return (*memory.refusals.values(), *memory.refused_children.values())

    def _forget_old(self, key: Key, uid: str | None) -> None:
        """Drop what is remembered of the object that had this name before (OC-25, DK-04)."""
        old = self.uids.get(key)
        if old is not None and old != uid:
            self.observer.memories.pop(old, None)
            self.caches.forget(old)
            self.reporter.forget(old)
        if uid is None:
            self.uids.pop(key, None)
            self._rest_until.pop(key, None)
        else:
            self.uids[key] = uid

    async def _settle(self, key: Key) -> None:
        """Find out what became of creates whose answer was lost, and of writes that the watch never showed.

        What cannot be found out now stays open: it counts as written, and the pass goes on with all the rest.
        """
        cluster = self.clusters.get(key)
        if cluster is None:
            return
        writes = self.caches.pod_writes
        try:
            if writes.overdue(cluster.uid):
                await self._list_anew(cluster)
                return
            for unsettled in writes.overlay(cluster.uid).unsettled:
                await self._look_for(cluster, unsettled)
        except ApiError as error:
            log.warning("cannot settle own writes", cluster=str(key), error=error.message)
        if writes.overlay(cluster.uid).unsettled:
            self.queue.add_after(key, UNSETTLED_AGAIN)

    async def _look_up(self, key: Key) -> None:
        """What the plan must know of and no watch shows."""
        cluster = self.clusters.get(key)
        if cluster is not None and cluster.metadata.deletion_timestamp is None:
            await self.caches.lookups.refresh(cluster, looked_up(cluster, self.observer.config))

    async def _look_for(self, cluster: RayCluster, lost: Unsettled[LostCreate]) -> None:
        """GET it, and if it is not there, send it again under the same name: it can never be there twice."""
        try:
            pod: Pod = await self.client.get(PODS, lost.namespace, lost.name, decode=self.caches.decode_pod)
        except Gone:
            if lost.info.generation != cluster.generation or cluster.metadata.deletion_timestamp is not None:
                return  # perhaps it is not wanted any more
            pod = await self.client.create(PODS, lost.namespace, lost.info.manifest, decode=self.caches.decode_pod)
        self.caches.pod_writes.settled(cluster.uid, lost.namespace, lost.name)
        owner = pod.controller()
        if owner is not None and owner.uid == cluster.uid:
            self.caches.pod_writes.created(cluster.uid, pod)

    async def _list_anew(self, cluster: RayCluster) -> None:
        listing = await self.client.list(
            PODS,
            cluster.namespace,
            decode=self.caches.decode_pod,
            label_selector=f"{names.CLUSTER}={cluster.name},{names.NODE_TYPE} in ({names.HEAD},{names.WORKER})",
        )
        own = [p for p in listing.items if (o := p.controller()) is not None and o.uid == cluster.uid]
        cached = self.caches.pods.by_index("owner", cluster.uid)
        self.caches.pod_writes.refreshed(cluster.uid, cached, own, int(listing.resource_version))


def _log_pass(snapshot: Snapshot, plan: Plan, outcomes: Outcomes, seconds: float) -> None:
    """One line for a pass that did something."""
    if not plan.actions:
        return
    counts: dict[str, int] = {}
    for outcome in outcomes.items:
        label = f"{type(outcome.action).__name__}.{outcome.action.reason}.{outcome.result}"
        counts[label] = counts.get(label, 0) + 1
    trouble = next((o.message for o in outcomes.troubles), None)
    log.info(
        "pass",
        cluster=f"{snapshot.cluster.namespace}/{snapshot.cluster.name}",
        generation=snapshot.cluster.generation,
        seconds=round(seconds, 3),
        **counts,
        **({"trouble": trouble} if trouble else {}),
    )
