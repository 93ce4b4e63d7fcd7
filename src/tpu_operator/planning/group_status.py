"""The worker groups as status tells them: slices, not pods."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.api.status import WorkerGroupStatus
from tpu_operator.planning.slices import ObservedSlice, SliceState, diagnose, partition
from tpu_operator.resources.wanted import wanted_slices

if TYPE_CHECKING:
    from tpu_operator.api.groups import WorkerGroupSpec
    from tpu_operator.planning.pod import Pod
    from tpu_operator.planning.snapshot import Snapshot


def worker_groups(snapshot: Snapshot) -> tuple[WorkerGroupStatus, ...]:
    """One entry a group of the spec, in its order."""
    by_group: dict[str, list[Pod]] = defaultdict(list)
    for pod in snapshot.observed.pods:
        if pod.node_type == names.WORKER:
            by_group[pod.group].append(pod)
    return tuple(_group(snapshot, g, by_group[g.group_name]) for g in snapshot.cluster.spec.worker_group_specs)


def _group(snapshot: Snapshot, group: WorkerGroupSpec, pods: list[Pod]) -> WorkerGroupStatus:
    slices = partition(group, pods)
    states = [_state(snapshot, group, piece) for piece in slices]
    ready = sum(1 for piece, state in zip(slices, states, strict=True) if state is SliceState.WHOLE and piece.ready)
    return WorkerGroupStatus(
        group_name=group.group_name,
        desired_slices=wanted_slices(group),
        ready_slices=ready,
        forming_slices=states.count(SliceState.WHOLE) + states.count(SliceState.FORMING) - ready,
        broken_slices=states.count(SliceState.BROKEN) + states.count(SliceState.RESIZED),
    )


def _state(snapshot: Snapshot, group: WorkerGroupSpec, piece: ObservedSlice) -> SliceState:
    container = group.ray_container
    return diagnose(piece, str((container or {}).get("name", "")), snapshot.memory).state
