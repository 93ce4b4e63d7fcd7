"""From loose pods to slices: which pods belong together, and in which state they are as a whole."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.planning.health import Loss, loss
from tpu_operator.planning.memory import HostKey, Memory
from tpu_operator.planning.plan import Reason
from tpu_operator.planning.pod import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tpu_operator.api.raycluster import WorkerGroupSpec
    from tpu_operator.planning.pod import Pod

DEFAULT_GRACE = 30


class SliceState(IntEnum):
    """State of a slice as a unit, worst first: also the order in which a scale-down takes them."""

    LEAVING = 0
    """All its pods are terminating: it is no slice any more, but it holds its index."""
    BROKEN = 1
    """A host is lost, or two pods claim the same host."""
    RESIZED = 2
    """Built for another numOfHosts than the group has now."""
    FORMING = 3
    """Hosts are missing that have never been there: it can be topped up."""
    WHOLE = 4


@dataclass(frozen=True)
class ObservedSlice:
    """The pods of one incarnation of one replica of a group.

    `index` is None if no label tells it (pods of an older KubeRay). `size` is the number of hosts that the group wants,
    `built_for` the number for which the pods were made, None if nothing tells it. What follows from them is worked out
    once: a pass asks for it many times, and a cluster may have thousands of slices.
    """

    group: str
    name: str
    index: int | None
    pods: tuple[Pod, ...]
    size: int
    built_for: int | None = None
    labelled: bool = True

    @cached_property
    def live(self) -> tuple[Pod, ...]:
        return tuple([p for p in self.pods if p.metadata.deletion_timestamp is None])

    @cached_property
    def hosts(self) -> Counter[int]:
        """How many live pods claim each host index; where no label tells any, pods are counted through in order."""
        told = [number for p in self.live if (number := p.label_number(names.HOST_INDEX)) is not None]
        return Counter(told or range(len(self.live)))

    @cached_property
    def missing(self) -> tuple[int, ...]:
        return tuple([h for h in range(self.size) if h not in self.hosts])

    @cached_property
    def ready(self) -> bool:
        return len(self.live) == self.size and all(p.ready for p in self.live)

    @property
    def born(self) -> datetime | None:
        return min((t for p in self.pods if (t := p.metadata.creation_timestamp)), default=None)


def partition(group: WorkerGroupSpec, pods: Iterable[Pod]) -> tuple[ObservedSlice, ...]:
    """The slices that the worker pods of a group form, in the order of index and name.

    Pods with a replica name belong together by it. Without one, a pod is a slice of one host if it was made as such or the
    group has one host; else it comes from before the labels existed: those are put together by the GKE webhook's
    label `replicaIndex`, or by age, numOfHosts at a time, so that they count as the slices that they are (quirk 28). Of
    those only live ones are put together: as the terminating ones vanish, the rest must not be dealt out anew.
    """
    by_name: dict[str, list[Pod]] = defaultdict(list)
    unlabelled: list[Pod] = []
    for pod in pods:
        key = pod.labels.get(names.REPLICA_NAME)
        if key:
            by_name[key].append(pod)
        elif group.hosts == 1 or pod.labels.get(names.REPLICA_INDEX):
            by_name[pod.name].append(pod)
        else:
            unlabelled.append(pod)
    slices = [_labelled(group, key, members) for key, members in by_name.items()]
    slices.extend(_unlabelled(group, unlabelled))
    return tuple(sorted(slices, key=lambda s: (s.index is None, s.index or 0, s.name)))


def _labelled(group: WorkerGroupSpec, name: str, pods: list[Pod]) -> ObservedSlice:
    pods.sort(key=_age)
    index = next((i for p in pods if (i := _replica_index(group, p)) is not None), None)
    return ObservedSlice(group.group_name, name, index, tuple(pods), group.hosts, _built_for(pods))


def _unlabelled(group: WorkerGroupSpec, pods: list[Pod]) -> Iterator[ObservedSlice]:
    by_legacy: dict[str, list[Pod]] = defaultdict(list)
    loose: list[Pod] = []
    size = group.hosts
    for pod in sorted(pods, key=_age):
        if legacy := pod.labels.get(names.LEGACY_REPLICA_INDEX):
            by_legacy[legacy].append(pod)
        elif pod.terminating:
            yield ObservedSlice(group.group_name, pod.name, None, (pod,), size, labelled=False)
        else:
            loose.append(pod)
    for legacy, members in by_legacy.items():
        index = _legacy_index(group.group_name, legacy)
        yield ObservedSlice(group.group_name, legacy, index, tuple(members), size, labelled=False)
    for start in range(0, len(loose), size):
        chunk = tuple(loose[start : start + size])
        yield ObservedSlice(group.group_name, chunk[0].name, None, chunk, size, labelled=False)


def _age(pod: Pod) -> tuple[float, str]:
    born = pod.metadata.creation_timestamp
    return (born.timestamp() if born else float("inf"), pod.name)


def _replica_index(group: WorkerGroupSpec, pod: Pod) -> int | None:
    index = pod.label_number(names.REPLICA_INDEX)
    if index is None:
        return _legacy_index(group.group_name, pod.labels.get(names.LEGACY_REPLICA_INDEX, ""))
    return index


def _legacy_index(group: str, value: str) -> int | None:
    """The GKE webhook writes `<group>-<index>`."""
    prefix, _, number = value.rpartition("-")
    return whole_number(number) if prefix == group else None


def _built_for(pods: Iterable[Pod]) -> int | None:
    for pod in pods:
        annotations = pod.metadata.annotations
        if annotations and (told := whole_number(annotations.num_of_hosts)) is not None:
            return told
        if pod.labels.get(names.REPLICA_INDEX) and not pod.labels.get(names.REPLICA_NAME):
            return 1
    return None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """State of a slice, with the loss that explains a bad one."""

    state: SliceState
    loss: Loss | None = None


def diagnose(
    piece: ObservedSlice, ray_container: str, memory: Memory | None = None, *, refused: bool = False
) -> Diagnosis:
    """How a slice stands. `refused`: the group's creates are being refused, so topping up is no hope."""
    if not piece.live:
        return Diagnosis(SliceState.LEAVING)
    if broken := _broken(piece, ray_container):
        return Diagnosis(SliceState.BROKEN, broken)
    if _resized(piece):
        return Diagnosis(SliceState.RESIZED, Loss(Reason.NUM_OF_HOSTS_CHANGED, f"numOfHosts is now {piece.size}"))
    if not piece.missing:
        return Diagnosis(SliceState.WHOLE)
    return _partial(piece, memory or Memory(), refused=refused)


def _partial(piece: ObservedSlice, memory: Memory, *, refused: bool) -> Diagnosis:
    if refused:
        return Diagnosis(SliceState.BROKEN, Loss(Reason.CREATE_REFUSED, "its other hosts are refused"))
    if _can_be_topped_up(piece, memory):
        return Diagnosis(SliceState.FORMING)
    return Diagnosis(SliceState.BROKEN, Loss(Reason.HOST_MISSING, f"{len(piece.live)} of {piece.size} hosts are there"))


def _broken(piece: ObservedSlice, ray_container: str) -> Loss | None:
    lost = next((found for pod in piece.pods if (found := loss(pod, ray_container))), None)
    if lost is None and any(count > 1 for count in piece.hosts.values()):
        return Loss(Reason.HOST_DUPLICATE, "two pods claim the same host")
    return lost


def _resized(piece: ObservedSlice) -> bool:
    if piece.built_for is not None:
        return piece.built_for != piece.size
    return any(host >= piece.size for host in piece.hosts)


def _can_be_topped_up(piece: ObservedSlice, memory: Memory) -> bool:
    """A slice that was never complete is completed; one that lost a host is made anew (MH-03, MH-04).

    Never complete is sure if this process itself failed to create just the missing hosts. It is likely if no host has
    started, unless this process knows better: a pod that waits for a node is gone at once when somebody deletes it.
    """
    if piece.built_for != piece.size:
        return False
    if all(HostKey(piece.name, host) in memory.uncreated for host in piece.missing):
        return True
    return piece.name not in memory.complete and not any(pod.started for pod in piece.live)


def gone_by(piece: ObservedSlice, now: datetime) -> datetime:
    """When the last pod of a leaving slice that may still run should be gone, at the latest.

    `deletionTimestamp` already is the end of the grace period. Terminal pods hold nothing back: nothing of them runs.
    """
    ends = [pod_gone_by(pod, now) for pod in piece.pods if not pod.terminal]
    return max(ends, default=now)


def pod_gone_by(pod: Pod, now: datetime) -> datetime:
    """End of the pod's grace period; for one that is not terminating yet, as if it were deleted now."""
    if pod.metadata.deletion_timestamp:
        return pod.metadata.deletion_timestamp
    grace = pod.spec.termination_grace_period_seconds
    return now + timedelta(seconds=DEFAULT_GRACE if grace is None else grace)
