"""The worker groups: slices wanted against slices observed, a group at a time, independent of each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.planning.heads import heads_of
from tpu_operator.planning.health import Loss
from tpu_operator.planning.indices import allocate
from tpu_operator.planning.memory import SliceKey, next_repair
from tpu_operator.planning.namer import Namer
from tpu_operator.planning.plan import CreateSlice, DeleteSlice, HostName, Notice, Part, Reason, Waiting
from tpu_operator.planning.slices import Diagnosis, ObservedSlice, SliceState, diagnose, gone_by, partition
from tpu_operator.planning.victims import by_worth
from tpu_operator.resources.wanted import wanted_slices

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tpu_operator.api.raycluster import WorkerGroupSpec
    from tpu_operator.planning.pod import Pod
    from tpu_operator.planning.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Group:
    """A worker group with what is there of it. All groups share one namer: long names are cut to the same prefix."""

    snapshot: Snapshot
    spec: WorkerGroupSpec
    slices: tuple[ObservedSlice, ...]
    namer: Namer

    @property
    def name(self) -> str:
        return self.spec.group_name

    @property
    def ray_container(self) -> str:
        container = self.spec.ray_container
        return str(container.get("name", "")) if container else ""

    def refused_for(self) -> float:
        """Seconds for which no create is tried, because the last one was refused, or that of the head was.

        Workers without a head would hold their TPUs and wait for it.
        """
        refusals = self.snapshot.memory.refusals
        if not refusals:
            return 0.0  # as nearly always: no look at all pods for the head
        names_of_refused = (self.name,) if any(heads_of(self.snapshot)) else (self.name, names.HEAD_GROUP)
        backoffs = (refusals[name] for name in names_of_refused if name in refusals)
        return max((backoff.waits(self.snapshot.now) for backoff in backoffs), default=0.0)


def plan_workers(snapshot: Snapshot, held_groups: frozenset[str] = frozenset()) -> Iterator[Part]:
    """One part a group of the spec, and one for pods of groups that are not in the spec any more.

    `held_groups` have a mistake of their own and are left alone.
    """
    by_group: dict[str, list[Pod]] = {}
    for pod in snapshot.observed.pods:
        if pod.node_type == names.WORKER:
            by_group.setdefault(pod.group, []).append(pod)
    namer = Namer(snapshot.nonce, _taken_names(snapshot))
    for spec in snapshot.cluster.spec.worker_group_specs:
        pods = by_group.pop(spec.group_name, [])
        if spec.group_name not in held_groups:
            yield plan_group(Group(snapshot, spec, partition(spec, pods), namer))
    for group, pods in sorted(by_group.items()):
        yield remove_group(group, pods)


def _taken_names(snapshot: Snapshot) -> Iterator[str]:
    """Names of pods, of slices, and those that stand in a workersToDelete: none of them may be given again."""
    for pod in (*snapshot.observed.pods, *snapshot.observed.foreign_pods):
        yield pod.name
        yield pod.labels.get(names.REPLICA_NAME, pod.name)
    for group in snapshot.cluster.spec.worker_group_specs:
        yield from group.workers_to_delete


def remove_group(group: str, pods: list[Pod]) -> Part:
    """Delete what is left of a group that was removed or renamed (KubeRay leaves it behind, quirk 37)."""
    live = tuple(sorted((p for p in pods if _deletable(p)), key=lambda p: p.name))
    if not live:
        return Part()
    detail = f"worker group {group} is not in the spec any more"
    return Part(actions=(DeleteSlice(group, None, group, live, Reason.GROUP_REMOVED, detail),))


def plan_group(group: Group) -> Part:
    """What to do in one group: doom slices, then fill up to what is wanted."""
    if group.spec.suspend:
        return Part(actions=_deletes(group, {p.name: _SUSPENDED for p in group.slices}))
    refused = group.name in group.snapshot.memory.refusals
    states = {
        piece.name: diagnose(piece, group.ray_container, group.snapshot.memory, refused=refused)
        for piece in group.slices
    }
    doomed = choose_doomed(group, states)
    return _fill(group, states, doomed)


_FAILURES = frozenset({Reason.POD_FAILED, Reason.RAY_CONTAINER_ENDED, Reason.HOST_TERMINATING, Reason.HOST_MISSING})
_SUSPENDED = Loss(Reason.GROUP_SUSPENDED, "the worker group is suspended")
_NAMED = Loss(Reason.WORKERS_TO_DELETE, "named in scaleStrategy.workersToDelete")
_SURPLUS = Loss(Reason.SCALE_DOWN, "more slices than wanted")
_TWICE = Loss(Reason.INDEX_DUPLICATE, "another slice has the same replica index")


def choose_doomed(group: Group, states: dict[str, Diagnosis]) -> dict[str, Loss]:
    """Slices to delete in this pass, by name, with the reason.

    Order matters: the named ones first, whatever their state, so that they are counted once (WD-01, WD-04, OC-04);
    then the broken ones; only then is a surplus looked for.
    """
    doomed: dict[str, Loss] = dict.fromkeys(_named(group, states), _NAMED)
    for piece in group.slices:
        found = states[piece.name]
        if found.state is SliceState.BROKEN and piece.name not in doomed and found.loss:
            doomed[piece.name] = found.loss
    doomed |= dict.fromkeys(_same_index(group, states, doomed), _TWICE)
    doomed |= dict.fromkeys(_surplus(group, states, doomed), _SURPLUS)
    doomed |= _resized(group, states, doomed)
    return doomed


def _kept(group: Group, states: dict[str, Diagnosis], doomed: dict[str, Loss]) -> list[ObservedSlice]:
    return [p for p in group.slices if p.name not in doomed and states[p.name].state is not SliceState.LEAVING]


def _named(group: Group, states: dict[str, Diagnosis]) -> Iterator[str]:
    """A name dooms its whole slice; names that are no pod of this group doom nothing (WD-07, quirk 1)."""
    listed = frozenset(group.spec.workers_to_delete)
    for piece in group.slices:
        if states[piece.name].state is not SliceState.LEAVING and any(p.name in listed for p in piece.pods):
            yield piece.name


def _same_index(group: Group, states: dict[str, Diagnosis], doomed: dict[str, Loss]) -> Iterator[str]:
    """Of two live slices with one index the more worthy keeps it (KubeRay can leave such pairs, quirk 30)."""
    seen: set[int] = set()
    for piece in reversed(by_worth((p, states[p.name].state) for p in _kept(group, states, doomed))):
        if piece.index is None:
            continue
        if piece.index in seen:
            yield piece.name
        seen.add(piece.index)


def _surplus(group: Group, states: dict[str, Diagnosis], doomed: dict[str, Loss]) -> list[str]:
    """With the autoscaler on, only slices that it names go down (I1), and those that never were complete (I13)."""
    kept = _kept(group, states, doomed)
    surplus = len(kept) - wanted_slices(group.spec)
    if group.snapshot.cluster.spec.autoscaling and not group.snapshot.config.random_pod_delete:
        kept = [p for p in kept if states[p.name].state is SliceState.FORMING]
    ranked = by_worth((p, states[p.name].state) for p in kept)
    return [p.name for p in ranked[: max(0, surplus)]]


def _resized(group: Group, states: dict[str, Diagnosis], doomed: dict[str, Loss]) -> dict[str, Loss]:
    """Slices of another numOfHosts are replaced: at once if they do no work, else one at a time.

    The next one goes only when all of the right size are ready, so that a wrong number costs one slice and not all
    (MH-06, MH-07, OP-07; quirk 29).
    """
    kept = _kept(group, states, doomed)
    old = {p.name: found for p in kept if (found := states[p.name].loss) and states[p.name].state is SliceState.RESIZED}
    idle = {p.name: old[p.name] for p in kept if p.name in old and not all(pod.ready for pod in p.live)}
    settled = all(p.ready for p in kept if p.name not in old) and len(kept) >= wanted_slices(group.spec)
    if idle or not old or doomed or _someone_leaves(group) or not settled:
        return idle
    first = next(iter(by_worth((p, states[p.name].state) for p in kept if p.name in old)))
    return {first.name: old[first.name]}


def _someone_leaves(group: Group) -> float:
    """Seconds until all slices that go should be gone, 0 if there are none but hanging or ended ones."""
    running = (p for p in group.slices if not p.live and not _ended(p))
    return max((0.0, *(_seconds_left(group, p) for p in running)))


def _fill(group: Group, states: dict[str, Diagnosis], doomed: dict[str, Loss]) -> Part:
    """Delete the doomed, complete the forming, create the missing."""
    kept = _kept(group, states, doomed)
    wanted = wanted_slices(group.spec)
    forming = [p for p in kept if states[p.name].state is SliceState.FORMING]
    missing = max(0, wanted - len(kept))
    repairs = tuple(
        SliceKey(group.name, p.index if p.index is not None else -1)
        for p in group.slices
        if missing and p.name in doomed and doomed[p.name].reason in _FAILURES
    )
    creates, waiting = _creates(group, doomed, forming, missing, repairs)
    left = _someone_leaves(group)
    if left > 0 and any(states[p.name].state is SliceState.RESIZED for p in kept):
        waiting += (Waiting(f"worker group {group.name}", "slices of another size wait for pods that leave", left),)
    return Part(
        actions=(*_deletes(group, doomed), *creates), waiting=waiting, repairs=repairs, notices=tuple(_notices(group))
    )


def _creates(
    group: Group,
    doomed: dict[str, Loss],
    forming: list[ObservedSlice],
    missing: int,
    repairs: Iterable[SliceKey],
) -> tuple[tuple[CreateSlice, ...], tuple[Waiting, ...]]:
    pause = group.refused_for()
    if pause > 0 and (forming or missing):
        return (), (Waiting(f"worker group {group.name}", "the API server refused its pods or the head", pause),)
    top_ups = tuple(_top_up(group, piece) for piece in forming)
    leaving = _leaving(group, (p for p in group.slices if p.name in doomed or not p.live))
    used = {p.index for p in group.slices if p.live and p.name not in doomed and p.index is not None}
    resting = _resting(group, repairs)
    allocation = allocate(missing, used, leaving, resting)
    created = tuple(_new_slice(group, index) for index in allocation.start)
    waiting = tuple(
        Waiting(f"slice {group.name}-{index}", _why(seconds, resting.get(index, 0.0)), seconds)
        for index, seconds in allocation.waits.items()
    )
    return (*top_ups, *created), waiting


def _resting(group: Group, repairs: Iterable[SliceKey]) -> dict[int, float]:
    """Index -> seconds of pause before its slice is made again. A repair of this very pass counts already."""
    now, known = group.snapshot.now, group.snapshot.memory.repairs
    backoffs = {key: b for key, b in known.items() if key.group == group.name}
    backoffs |= {key: next_repair(known.get(key), now) for key in repairs}
    return {key.replica: b.waits(now) for key, b in backoffs.items()}


def _leaving(group: Group, gone: Iterable[ObservedSlice]) -> dict[int, float]:
    """Index -> seconds until the pods that hold it should be gone. Terminal pods hold nothing."""
    leaving: dict[int, float] = {}
    for piece in gone:
        if piece.index is None or _ended(piece):
            continue
        left = _seconds_left(group, piece)
        leaving[piece.index] = max(left, leaving.get(piece.index, left))
    return leaving


def _ended(piece: ObservedSlice) -> bool:
    return all(pod.terminal for pod in piece.pods)


def _seconds_left(group: Group, piece: ObservedSlice) -> float:
    """Until the pods of a slice that goes should be gone, slack included; not above 0 if they hang."""
    now = group.snapshot.now
    return (gone_by(piece, now) - now).total_seconds() + group.snapshot.config.stuck_pod_slack


def _why(seconds: float, pause: float) -> str:
    return "pause after repeated failures" if pause >= seconds else "the pods before it are not gone yet"


def _new_slice(group: Group, index: int) -> CreateSlice:
    size = group.spec.hosts
    name = group.namer.name(group.name, "slice", index) if size > 1 else ""
    hosts = tuple(_host(group, index, host) for host in range(size))
    return CreateSlice(group.name, index, name or hosts[0].pod, size, hosts, Reason.SCALE_UP)


def _top_up(group: Group, piece: ObservedSlice) -> CreateSlice:
    index = piece.index if piece.index is not None else 0
    hosts = tuple(_host(group, index, host) for host in piece.missing)
    return CreateSlice(group.name, index, piece.name, piece.size, hosts, Reason.TOP_UP)


def _host(group: Group, index: int, host: int) -> HostName:
    prefix = names.worker_prefix(group.snapshot.cluster.name, group.name)
    return HostName(host, group.namer.name(prefix, group.name, index, host))


def _deletes(group: Group, doomed: dict[str, Loss]) -> tuple[DeleteSlice, ...]:
    doomed_slices = ((p, doomed[p.name], tuple(filter(_deletable, p.pods))) for p in group.slices if p.name in doomed)
    return tuple(
        DeleteSlice(p.group, p.index, p.name, pods, why.reason, why.detail) for p, why, pods in doomed_slices if pods
    )


def _deletable(pod: Pod) -> bool:
    """Not on its way out yet, and known to exist."""
    return bool(pod.uid) and not pod.terminating


def _notices(group: Group) -> Iterator[Notice]:
    present = {p.name for piece in group.slices for p in piece.pods}
    elsewhere = {p.name for p in (*group.snapshot.observed.pods, *group.snapshot.observed.foreign_pods)}
    prefix = f"{names.worker_prefix(group.snapshot.cluster.name, group.name)}-"
    for name in sorted(frozenset(group.spec.workers_to_delete) - present):
        # The name of a pod that is gone is normal: the autoscaler leaves it there for as long as it likes (I8).
        if name in elsewhere or not name.startswith(prefix):
            text = f"workersToDelete of group {group.name} names {name}, which is no pod of that group: ignored"
            yield Notice(f"not-ours/{group.name}/{name}", "IgnoredWorkersToDelete", text, action="Delete")
    if any(not piece.labelled for piece in group.slices):
        text = (
            f"Worker group {group.name} has pods from before the replica labels existed; they are kept and counted as "
            f"slices of {group.spec.hosts} until a host fails or they are scaled down"
        )
        yield Notice(f"unlabelled/{group.name}", "AdoptedUnlabelledPods", text, warning=False, action="Adopt")
