"""The cluster as the pass leaves it: what was observed, with the writes of the pass laid over it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from tpu_operator.planning.plan import Apply

if TYPE_CHECKING:
    from tpu_operator.planning.outcome import Outcomes
    from tpu_operator.planning.pod import Pod
    from tpu_operator.planning.snapshot import Snapshot


def after(snapshot: Snapshot, outcomes: Outcomes) -> Snapshot:
    """`snapshot` with created pods and applied children added and deleted pods terminating.

    So the status does not lag a pass behind, and a new cluster needs one status write and not two.
    """
    deleted = {pod.uid for outcome in outcomes.items for pod in outcome.deleted}
    pods = {pod.name: _leaving(pod, snapshot) if pod.uid in deleted else pod for pod in snapshot.observed.pods}
    for outcome in outcomes.items:
        for pod in outcome.created:
            pods.setdefault(pod.name, pod)
    children = {**snapshot.observed.children}
    children |= {o.action.key: o.applied for o in outcomes.items if isinstance(o.action, Apply) and o.applied}
    return replace(snapshot, observed=replace(snapshot.observed, pods=tuple(pods.values()), children=children))


def _leaving(pod: Pod, snapshot: Snapshot) -> Pod:
    if pod.terminating:
        return pod
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=snapshot.now)
    return msgspec.structs.replace(pod, metadata=metadata)
