"""The cluster as the pass leaves it: what was observed, with the writes of the pass laid over it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tpu_operator.planning.outcome import Outcomes
    from tpu_operator.planning.pod import Pod
    from tpu_operator.planning.snapshot import Snapshot


def after(snapshot: Snapshot, outcomes: Outcomes) -> Snapshot:
    """`snapshot` with created pods added and deleted ones terminating, so that status does not lag a pass behind."""
    deleted = {pod.uid for outcome in outcomes.items for pod in outcome.deleted}
    pods = {pod.name: _leaving(pod, snapshot) if pod.uid in deleted else pod for pod in snapshot.observed.pods}
    for outcome in outcomes.items:
        for pod in outcome.created:
            pods.setdefault(pod.name, pod)
    return replace(snapshot, observed=replace(snapshot.observed, pods=tuple(pods.values())))


def _leaving(pod: Pod, snapshot: Snapshot) -> Pod:
    if pod.terminating:
        return pod
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=snapshot.now)
    return msgspec.structs.replace(pod, metadata=metadata)
