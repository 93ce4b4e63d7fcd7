"""The end of a RayCluster: first the pods, then the cleanup of Redis, then the finalizer that held it back."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.planning.emptying import delete_all
from tpu_operator.planning.heads import heads_of
from tpu_operator.planning.plan import Apply, Hold, Notice, Part, PatchFinalizers, Plan, Reason, Waiting
from tpu_operator.planning.pod import whole_number
from tpu_operator.resources.pods.fault_tolerance import storage_namespace
from tpu_operator.resources.redis_cleanup import (
    KIND,
    JobState,
    cleanup_job,
    cleanup_job_name,
    failure_text,
    is_needed,
    is_possible,
    job_state,
)
from tpu_operator.resources.registry import ChildKey

if TYPE_CHECKING:
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.planning.snapshot import Snapshot

TIMEOUT: Final = 300
"""Seconds after which a cluster is let go whatever became of the cleanup, unless an annotation says otherwise."""

LOOK_AGAIN: Final = 10.0
"""Seconds between two looks at a cluster that is being deleted; events wake it earlier."""

SKIPPED: Final = "RedisCleanupSkipped"
"""Reason of the Event that Redis was not even tried to be cleaned up."""

NAMESPACE_ENDS: Final = "NamespaceTerminating"
"""The API server's cause for refusing whatever is new in a namespace that is being deleted."""


def plan_finalizer(snapshot: Snapshot) -> Part:
    """Put the finalizer on a cluster that has something to clean up, take it off one that has not (quirk 13).

    As long as it is not stored no pod is created: whatever a head writes to Redis will be removed.
    """
    cluster = snapshot.cluster
    needed, there = is_needed(cluster, snapshot.config), names.REDIS_FINALIZER in cluster.metadata.finalizers
    if needed == there:
        return Part()
    if there:
        return Part(actions=(_release(cluster),))
    patch = PatchFinalizers((*cluster.metadata.finalizers, names.REDIS_FINALIZER))
    return Part(actions=(patch,), waiting=(Waiting("pods", "the finalizer is not stored yet", LOOK_AGAIN),))


def _release(cluster: RayCluster) -> PatchFinalizers:
    """All finalizers but ours: those of others are never touched (KF-14)."""
    return PatchFinalizers(tuple(f for f in cluster.metadata.finalizers if f != names.REDIS_FINALIZER))


def plan_deletion(snapshot: Snapshot) -> Plan:
    """What is left to do for a cluster that is being deleted. Nothing is created but the Job, whatever the spec says (FN-07).

    Without our finalizer there is nothing to do: Kubernetes collects the children. With it, the head goes first, for it
    writes to Redis (FN-04), then the Job runs, then the finalizer goes; at the latest when the time is up, also if a
    head hangs (quirk 14). Neither a mistake in the spec (quirk 12) nor a feature that was turned off meanwhile
    (quirk 13) holds it back.
    """
    if names.REDIS_FINALIZER not in snapshot.cluster.metadata.finalizers:
        return Plan(hold=Hold.DELETING)
    return Plan(hold=Hold.DELETING).plus(_end(snapshot) or _clean_up(snapshot))


def _job_key(cluster: RayCluster) -> ChildKey:
    return ChildKey(KIND, cleanup_job_name(cluster))


def _end(snapshot: Snapshot) -> Part | None:
    """The finalizer goes, if the time for that has come."""
    cluster = snapshot.cluster
    if not is_needed(cluster, snapshot.config) or not is_possible(cluster):
        return _let_go(snapshot, SKIPPED, f"Redis is not cleaned up: {_why_not(snapshot)}")
    if told := _end_of_job(snapshot):
        return told
    if _seconds_left(snapshot) > 0:
        return None
    waited = timedelta(seconds=_timeout(cluster))
    text = f"RayCluster {cluster.namespace}/{cluster.name} is let go after {waited} without a cleanup of Redis"
    return _let_go(snapshot, "ForceDeletedStuckCluster", text)


def _end_of_job(snapshot: Snapshot) -> Part | None:
    """The Job is done, well or not, or can never be created because its namespace goes too (FN-01)."""
    key = _job_key(snapshot.cluster)
    if job := snapshot.observed.children.get(key):
        state = job_state(job)
        if state is JobState.SUCCEEDED:
            return Part(actions=(_release(snapshot.cluster),))
        if state is JobState.FAILED:
            return _let_go(snapshot, "FailedRedisCleanup", f"Redis cleanup Job {key.name} failed: {failure_text(job)}")
    refusal = snapshot.memory.refused_children.get(key)
    if refusal is not None and refusal.cause == NAMESPACE_ENDS:
        return _let_go(snapshot, SKIPPED, f"Redis is not cleaned up: {refusal.message}")
    return None


def _clean_up(snapshot: Snapshot) -> Part:
    """Pods first, then the Job."""
    key, deletes = _job_key(snapshot.cluster), delete_all(snapshot, Reason.CLUSTER_DELETED, "the RayCluster is deleted")
    later = min(_seconds_left(snapshot), LOOK_AGAIN)
    if heads_of(snapshot):
        return Part(actions=deletes, waiting=(Waiting("Redis cleanup", "the head is still there", later),))
    if key in snapshot.observed.children:
        return Part(actions=deletes, waiting=(Waiting("deletion", "the Redis cleanup Job is not done", later),))
    refusal = snapshot.memory.refused_children.get(key)
    if refusal is not None and (pause := refusal.waits(snapshot.now)) > 0:
        return Part(actions=deletes, waiting=(Waiting("Redis cleanup", "its Job was refused", min(later, pause)),))
    create = Apply(key, cleanup_job(snapshot.cluster, snapshot.config), Reason.CHILD_WANTED)
    return Part(actions=(*deletes, create), waiting=(Waiting("deletion", "Redis is being cleaned up", later),))


def _let_go(snapshot: Snapshot, reason: str, text: str) -> Part:
    """Take the finalizer off and say what is not as it should be. The pods are Kubernetes' to collect then."""
    left = f"{text}; keys in Redis under {storage_namespace(snapshot.cluster)} may need to be removed by hand"
    notice = Notice(f"deletion/{reason}", reason, left, action="Cleanup")
    return Part(actions=(_release(snapshot.cluster),), notices=(notice,))


def _why_not(snapshot: Snapshot) -> str:
    if not snapshot.config.redis_cleanup:
        return "this operator is told not to"
    if not is_needed(snapshot.cluster, snapshot.config):
        return "GCS fault tolerance with Redis is not on any more"
    return "the template of the head has no image to do it with"


def _timeout(cluster: RayCluster) -> int:
    """Seconds from the annotation; what is no positive number there counts as nothing (FN-03)."""
    return whole_number(cluster.annotations.get(names.GCS_FT_DELETION_TIMEOUT, "").strip()) or TIMEOUT


def _seconds_left(snapshot: Snapshot) -> float:
    begun = snapshot.cluster.metadata.deletion_timestamp
    assert begun is not None
    return (begun + timedelta(seconds=_timeout(snapshot.cluster)) - snapshot.now).total_seconds()
