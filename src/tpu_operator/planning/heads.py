"""The head: exactly one, replaced only when the old one is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.planning.health import loss
from tpu_operator.planning.memory import SliceKey
from tpu_operator.planning.namer import Namer
from tpu_operator.planning.plan import CreateHead, DeleteHead, Notice, Part, Reason, Waiting
from tpu_operator.planning.slices import pod_gone_by

if TYPE_CHECKING:
    from tpu_operator.planning.pod import Pod
    from tpu_operator.planning.snapshot import Snapshot


HEAD_KEY = SliceKey(names.HEAD_GROUP, 0)
"""Under which repairs of the head are counted: a head that always fails must not be made anew without pause (HP-10)."""


def heads_of(snapshot: Snapshot) -> tuple[Pod, ...]:
    """Own head pods, the best first: not terminating, ready, old."""
    heads = (p for p in snapshot.observed.pods if p.node_type == names.HEAD)
    return tuple(sorted(heads, key=_worth))


def _worth(pod: Pod) -> tuple[bool, bool, float, str]:
    born = pod.metadata.creation_timestamp
    return (pod.terminating, not pod.ready, born.timestamp() if born else float("inf"), pod.name)


def plan_head(snapshot: Snapshot) -> Part:
    """Delete a head that is lost, create one where there is none.

    A new head comes after the old one is gone: two heads would be two clusters, and the autoscaler takes the pod's name
    for the instance (HP-07). A head that hangs past its grace period no longer holds back the new one (quirk 16).
    """
    heads = heads_of(snapshot)
    container = _ray_container(snapshot)
    lost = {h.uid: found for h in heads if not h.terminating and (found := loss(h, container))}
    live = [h for h in heads if not h.terminating and h.uid not in lost]
    deletes = [DeleteHead(h, lost[h.uid].reason, lost[h.uid].detail) for h in heads if h.uid in lost]
    deletes += [
        DeleteHead(h, Reason.SURPLUS_HEAD, "another head is older or ready") for h in live[1:] if h.uid and not h.ready
    ]
    if live:
        return Part(actions=tuple(deletes), notices=_several(live))
    if deletes:
        return Part(actions=tuple(deletes), repairs=(HEAD_KEY,))
    return Part() if _head_must_stay_away(snapshot) else _create(snapshot, heads)


def _create(snapshot: Snapshot, leaving: tuple[Pod, ...]) -> Part:
    slack = 0.0 if not leaving else snapshot.config.stuck_pod_slack
    held = max(((pod_gone_by(h, snapshot.now) - snapshot.now).total_seconds() + slack for h in leaving), default=0.0)
    if held > 0:
        return Part(waiting=(Waiting("head", "the head before it is not gone yet", held),))
    refusal = snapshot.memory.refusals.get(names.HEAD_GROUP)
    if refusal and (pause := refusal.waits(snapshot.now)) > 0:
        return Part(waiting=(Waiting("head", "the API server refused it", pause),))
    repair = snapshot.memory.repairs.get(HEAD_KEY)
    if repair and (pause := repair.waits(snapshot.now)) > 0:
        return Part(waiting=(Waiting("head", "pause after repeated failures", pause),))
    return Part(actions=(CreateHead(_name(snapshot)),))


def _name(snapshot: Snapshot) -> str:
    """A name in the user's template wins, then the administrator's choice of a fixed one; else it is unique."""
    prefix = names.head_prefix(snapshot.cluster.name)
    if given := _template_name(snapshot):
        return given
    if snapshot.config.deterministic_head_pod_name:
        return prefix
    return Namer(snapshot.nonce, (p.name for p in snapshot.observed.pods)).name(prefix, names.HEAD)


def _template_name(snapshot: Snapshot) -> str:
    metadata = snapshot.cluster.spec.head_group_spec.template.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _ray_container(snapshot: Snapshot) -> str:
    container = snapshot.cluster.spec.head_group_spec.ray_container
    return str(container.get("name", "")) if container else ""


def _head_must_stay_away(snapshot: Snapshot) -> bool:
    """The annotation by which a user forbids a second head once the cluster had been provisioned."""
    if snapshot.cluster.annotations.get(names.DISABLE_HEAD_RESTART) != "true":
        return False
    return any(c.type == "RayClusterProvisioned" and c.status == "True" for c in snapshot.cluster.status.conditions)


def _several(live: list[Pod]) -> tuple[Notice, ...]:
    if len(live) == 1:
        return ()
    text = f"{len(live)} head pods are there: {', '.join(h.name for h in live)}; ready ones are left alone, delete all but one"
    return (Notice("heads/" + "/".join(sorted(h.uid for h in live)), "MultipleHeadPods", text),)
