"""One pass, one snapshot: everything a plan may know, read once from the caches with our own writes laid over them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from tpu_operator.planning.memory import Memory
from tpu_operator.planning.pod import Pod
from tpu_operator.planning.snapshot import ClusterFacts, Observed, Snapshot

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.controller.caches import Caches
    from tpu_operator.controller.clusters import Clusters, Key

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


def new_nonce() -> str:
    """Entropy of a pass."""
    return secrets.token_hex(8)


@dataclass(slots=True)
class Observer:
    """Builds snapshots. `memories` is by uid of the cluster."""

    clusters: Clusters
    caches: Caches
    config: OperatorConfig
    facts: ClusterFacts
    memories: dict[str, Memory]
    clock: Clock = utc_now
    nonce: Callable[[], str] = new_nonce

    def observe(self, key: Key) -> Snapshot | None:
        """The snapshot of a cluster, or None if it is not there."""
        cluster = self.clusters.get(key)
        if cluster is None:
            return None
        memory = self.memories.get(cluster.uid, Memory()).of_generation(cluster.generation)
        return Snapshot(
            cluster=cluster,
            observed=self._observed(cluster),
            memory=memory,
            config=self.config,
            now=self.clock(),
            nonce=self.nonce(),
            facts=self.facts,
        )

    def _observed(self, cluster: RayCluster) -> Observed:
        own, foreign = self.caches.children_of(cluster)
        return Observed(
            pods=self._pods(cluster),
            foreign_pods=tuple(self._foreign_pods(cluster)),
            children=own,
            foreign_children=foreign,
            absent=self.caches.lookups.absent(cluster.uid),
        )

    def _pods(self, cluster: RayCluster) -> tuple[Pod, ...]:
        """The cache with our own writes laid over it: created, deleted, and those of which the answer was lost."""
        cached = self.caches.pods.by_index("owner", cluster.uid)
        writes = self.caches.pod_writes.overlay(cluster.uid)
        if not (writes.created or writes.deleted or writes.gone or writes.unsettled):
            return tuple(cached)
        pods = {pod.uid: pod for pod in (*cached, *writes.created) if pod.uid not in writes.gone}
        for uid, deadline in writes.deleted.items():
            if (pod := pods.get(uid)) and not pod.terminating:
                pods[uid] = _terminating(pod, deadline)
        return (*pods.values(), *(unsettled.info.pod for unsettled in writes.unsettled))

    def _foreign_pods(self, cluster: RayCluster) -> Iterable[Pod]:
        for pod in self.caches.pods.by_index("cluster", f"{cluster.namespace}/{cluster.name}"):
            owner = pod.controller()
            if owner is None or owner.uid != cluster.uid:
                yield pod


def _terminating(pod: Pod, deadline: datetime) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=deadline)
    return msgspec.structs.replace(pod, metadata=metadata)


def pod_of(manifest: JsonObject, answer: Mapping[str, str] | None = None, now: datetime | None = None) -> Pod:
    """The planner's view of a pod that was just sent, from its manifest and the metadata of the answer.

    Without an answer the pod has no uid: it may or may not exist.
    """
    decoded = msgspec.convert({k: v for k, v in manifest.items() if k != "status"}, Pod)
    if answer is None:
        return decoded
    metadata = msgspec.structs.replace(
        decoded.metadata,
        uid=answer["uid"],
        resource_version=answer["resourceVersion"],
        creation_timestamp=now,
    )
    return msgspec.structs.replace(decoded, metadata=metadata)
