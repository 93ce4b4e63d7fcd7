"""Tells what a pass did: one status write at most, then Events for what really happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from tpu_operator.api import names
from tpu_operator.api.conditions import ConditionType
from tpu_operator.controller.clusters import Key
from tpu_operator.controller.executor import RAYCLUSTERS
from tpu_operator.errors import ApiError, Conflict, Gone
from tpu_operator.kube.events import EventSink, ObjectReference
from tpu_operator.planning.announce import announcements
from tpu_operator.planning.status import changed, next_status

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.controller.clusters import Clusters
    from tpu_operator.kube.client import Client
    from tpu_operator.planning.announcement import Announcement
    from tpu_operator.planning.outcome import Outcomes
    from tpu_operator.planning.plan import Plan
    from tpu_operator.planning.snapshot import Snapshot


log = structlog.get_logger()

FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 60.0
MOST_DOUBLINGS: Final = 16


class _AnswerMeta(msgspec.Struct, rename="camel"):
    resource_version: str


class _Answer(msgspec.Struct):
    metadata: _AnswerMeta


OUR_CONDITIONS = frozenset(ConditionType)

_ANSWER = msgspec.json.Decoder(_Answer)


@dataclass(slots=True)
class Reporter:
    """Writes status and Events. `clock` is monotonic, in seconds."""

    client: Client
    clusters: Clusters
    events: EventSink
    config: OperatorConfig
    clock: Callable[[], float] = monotonic
    _not_before: dict[str, float] = field(default_factory=dict)
    _failures: dict[str, int] = field(default_factory=dict)

    async def report(self, snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> float | None:
        """Write what has changed; seconds after which to come again if that was put off or did not work."""
        again = await self._status(snapshot, plan, outcomes)
        for announcement in announcements(snapshot, plan, outcomes):
            self._emit(snapshot.cluster, announcement)
        return again

    async def _status(self, snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> float | None:
        cluster = snapshot.cluster
        status = next_status(snapshot, plan, outcomes)
        patch = changed(cluster.status, status)
        if patch is None:
            return None
        wait = self._not_before.get(cluster.uid, 0.0) - self.clock()
        if wait > 0:
            return wait
        self._not_before[cluster.uid] = self.clock() + self.config.status_interval
        try:
            version = await self._patch(cluster, patch)
        except Gone:
            return None
        except Conflict:
            return self.config.status_interval
        except ApiError as error:
            return self._put_off(cluster, error)
        self._failures.pop(cluster.uid, None)
        self.clusters.written(Key(cluster.namespace, cluster.name), cluster.uid, status.to_json(), version)
        return None

    def _put_off(self, cluster: RayCluster, error: ApiError) -> float:
        """Seconds until the next try, doubled each time: a status that is refused must make no hot loop (KF-06)."""
        failures = self._failures.get(cluster.uid, 0)
        self._failures[cluster.uid] = failures + 1
        log.warning("cannot write status", cluster=f"{cluster.namespace}/{cluster.name}", error=error.message)
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures, MOST_DOUBLINGS))
        self._not_before[cluster.uid] = self.clock() + pause
        return pause

    async def _patch(self, cluster: RayCluster, patch: JsonObject) -> int:
        """Merge patch of the fields that differ. The uid is a precondition: a new object of this name is not meant.

        With conditions of other controllers in the list, which is written as a whole, the version is one too.
        """
        metadata: JsonObject = {"uid": cluster.uid}
        if any(c.type not in OUR_CONDITIONS for c in cluster.status.conditions):
            metadata["resourceVersion"] = cluster.metadata.resource_version
        body: JsonObject = {"metadata": metadata, "status": patch}
        answer = await self.client.patch(
            RAYCLUSTERS, cluster.namespace, cluster.name, body, subresource="status", decode=_ANSWER.decode
        )
        return int(answer.metadata.resource_version)

    def _emit(self, cluster: RayCluster, announcement: Announcement) -> None:
        self.events.emit(
            ObjectReference(names.API_VERSION, names.KIND, cluster.namespace, cluster.name, cluster.uid),
            reason=announcement.reason,
            type="Warning" if announcement.warning else "Normal",
            action=announcement.action,
            note=announcement.note,
        )

    def forget(self, uid: str) -> None:
        """The cluster is gone."""
        self._not_before.pop(uid, None)
        self._failures.pop(uid, None)
