"""A Kubernetes cluster in a few lines, an operator around the real planner, and what must hold at every moment.

The world keeps the truth; the operator sees it through a cache that may lag, with its own writes laid over it (the real
`OwnWrites`). Each write of a plan can fail in the four ways that a request can fail, and the operator can die before any.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from builders import CLUSTER_UID, NOW, cluster, conditions, head, host, terminating
from tpu_operator.api import names
from tpu_operator.api.raycluster import RayCluster
from tpu_operator.config import OperatorConfig
from tpu_operator.kube.consistency import OwnWrites
from tpu_operator.planning.memory import Memory
from tpu_operator.planning.outcome import Outcome, Outcomes, Result
from tpu_operator.planning.plan import (
    Apply,
    CreateHead,
    CreateSlice,
    DeleteChild,
    DeleteHead,
    DeleteSlice,
    Plan,
)
from tpu_operator.planning.planner import plan as make_plan
from tpu_operator.planning.pod import Pod, PodAnnotations, PodCondition, PodStatus
from tpu_operator.planning.remember import remember
from tpu_operator.planning.slices import pod_gone_by
from tpu_operator.planning.snapshot import Observed, Snapshot
from tpu_operator.planning.suspend import step_of_suspension
from tpu_operator.planning.upgrade import STAMP, recreate_hash
from tpu_operator.resources.wanted import wanted_slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tpu_operator.api.json import JsonObject
    from tpu_operator.resources.registry import ChildKey

Slot = tuple[str, str, str]


_READY = PodStatus("Running", conditions=(PodCondition("Ready", "True"),))


class Fault(Enum):
    """How a write can fail."""

    REFUSED = auto()
    TRANSIENT = auto()
    LOST_DONE = auto()
    LOST_UNDONE = auto()


class Crashed(Exception):
    """The operator's process has ended before a write."""


class _Failed(Exception):
    def __init__(self, result: Result) -> None:
        super().__init__(result)
        self.result = result


# -- the world ---------------------------------------------------------------------------------------------------------


@dataclass
class World:
    """API server, kubelets and garbage collector. `stuck` pods do not go when they are deleted."""

    raw: dict[str, Any]
    now: datetime = NOW
    pods: dict[str, Pod] = field(default_factory=dict)
    history: list[tuple[Pod | None, Pod | None]] = field(default_factory=list)
    stuck: set[str] = field(default_factory=set)
    used_names: set[str] = field(default_factory=set)
    conditions: tuple[str, ...] = ()
    children: dict[ChildKey, JsonObject] = field(default_factory=dict)
    creates: int = 0
    deletes: int = 0

    @property
    def version(self) -> int:
        return len(self.history) + 1

    # what users and controllers do

    @property
    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.raw["spec"]
        return spec

    @property
    def groups(self) -> list[dict[str, Any]]:
        groups: list[dict[str, Any]] = self.spec["workerGroupSpecs"]
        return groups

    def edited(self) -> None:
        self.raw["metadata"]["generation"] += 1

    # what the API server does

    def put(self, pod: Pod | None, old: Pod | None = None) -> None:
        if pod is None:
            assert old is not None
            self.pods.pop(old.uid)
        else:
            pod = replace(pod, metadata=replace(pod.metadata, resource_version=str(self.version)))
            self.pods[pod.uid] = pod
        self.history.append((old, pod))

    def create(self, intended: Pod) -> Pod:
        """A POST that is carried out. Names of pods are unique for ever (I8)."""
        assert intended.name not in self.used_names, "a name must never be given twice"
        self.used_names.add(intended.name)
        self.creates += 1
        meta = replace(intended.metadata, uid=f"uid-{len(self.used_names)}", creation_timestamp=self.now)
        pod = replace(intended, metadata=meta)
        self.put(pod)
        return self.pods[pod.uid]

    def delete(self, uid: str) -> None:
        """A DELETE that is carried out: at once for pods that run nowhere, else after the grace period."""
        pod = self.pods.get(uid)
        if pod is None or pod.terminating:
            return
        self.deletes += 1
        if uid not in self.stuck and (pod.spec.node_name is None or pod.terminal):
            self.put(None, pod)
        else:
            self.put(terminating(pod, pod.spec.termination_grace_period_seconds or 0, self.now), pod)

    # what kubelets do

    def change(self, uid: str, **fields: Any) -> None:
        old = self.pods[uid]
        self.put(replace(old, **fields), old)

    def start(self, uid: str) -> None:
        pod = self.pods[uid]
        if not pod.terminating and pod.phase == "Pending":
            spec = replace(pod.spec, node_name=pod.spec.node_name or "node")
            self.change(uid, spec=spec, status=_READY)

    def recover(self, uid: str) -> None:
        """What can become ready, does."""
        self.start(uid)
        if self.pods[uid].phase == "Running" and not self.pods[uid].ready:
            self.change(uid, status=_READY)

    def fail(self, uid: str, reason: str | None = None) -> None:
        pod = self.pods[uid]
        if not pod.terminal:
            self.change(uid, status=PodStatus("Failed", reason=reason))

    def release(self, uid: str) -> None:
        """The node is back, the finalizer's owner is back."""
        self.stuck.discard(uid)

    def pass_time(self, seconds: float) -> None:
        """Grace periods end; pods that are not stuck go."""
        self.now += timedelta(seconds=seconds)
        for pod in tuple(self.pods.values()):
            ends = pod.metadata.deletion_timestamp
            if ends is not None and ends <= self.now and pod.uid not in self.stuck:
                self.put(None, pod)

    def own(self) -> tuple[Pod, ...]:
        return tuple(p for p in self.pods.values() if (o := p.controller()) is not None and o.uid == CLUSTER_UID)


# -- the operator ------------------------------------------------------------------------------------------------------


class Cache:
    """What the watch has shown so far."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.pods = dict(world.pods)
        self.position = len(world.history)
        self._deleted: set[str] = set()

    def get(self, uid: str) -> Pod | None:
        return self.pods.get(uid)

    def find(self, namespace: str, name: str) -> Pod | None:
        return next((p for p in self.pods.values() if (p.metadata.namespace, p.name) == (namespace, name)), None)

    def recently_deleted(self, uid: str) -> bool:
        return uid in self._deleted

    def events(self, count: int | None = None) -> Iterator[tuple[Pod | None, Pod | None]]:
        behind = self._world.history[self.position :]
        for old, new in behind if count is None else behind[:count]:
            self.position += 1
            if new is not None:
                self.pods[new.uid] = new
            elif old is not None:
                self.pods.pop(old.uid, None)
                self._deleted.add(old.uid)
            yield old, new


@dataclass
class Operator:
    """One process: observe, plan, execute a write at a time, report, remember."""

    world: World
    config: OperatorConfig = field(default_factory=OperatorConfig)

    def __post_init__(self) -> None:
        self.passes = 0
        self.restart()

    def restart(self) -> None:
        """All that was in memory is gone; caches are filled anew."""
        self.memory = Memory()
        self.cache = Cache(self.world)
        self.writes: OwnWrites[Pod, Pod] = OwnWrites(self.cache, clock=self._clock)
        self.see_spec()

    def _clock(self) -> float:
        return self.world.now.timestamp()

    def see_spec(self) -> None:
        self.seen = deepcopy(self.world.raw)

    def see_pods(self, count: int | None = None) -> None:
        for old, new in self.cache.events(count):
            self.writes.observed(old, new)

    def observe(self) -> Snapshot:
        self.passes += 1
        raw = {**self.seen, "status": conditions(*self.world.conditions)}
        parsed = RayCluster.parse(raw)
        pods = tuple(self._overlaid())
        own = tuple(p for p in pods if (o := p.controller()) is not None and o.uid == CLUSTER_UID)
        memory = self.memory.of_generation(parsed.generation)
        foreign = tuple(p for p in pods if p not in own)
        observed = Observed(pods=own, foreign_pods=foreign, children=dict(self.world.children))
        return Snapshot(parsed, observed, memory, self.config, self.world.now, f"pass {self.passes}")

    def _overlaid(self) -> Iterator[Pod]:
        writes = self.writes.overlay(CLUSTER_UID)
        pods = {p.uid: p for p in (*self.cache.pods.values(), *writes.created) if p.uid not in writes.gone}
        for pod in pods.values():
            ends = writes.deleted.get(pod.uid)
            gone = ends is not None and not pod.terminating
            yield replace(pod, metadata=replace(pod.metadata, deletion_timestamp=ends)) if gone else pod
        yield from (u.info for u in writes.unsettled)

    def settle(self) -> None:
        """Find out what became of creates whose answer was lost, as the reconciler does before a pass."""
        if self.writes.overdue(CLUSTER_UID):
            self.writes.refreshed(
                CLUSTER_UID, tuple(self.cache.pods.values()), self.world.own(), self.world.version - 1
            )
            return
        by_name = {p.name: p for p in self.world.own()}
        for lost in self.writes.overlay(CLUSTER_UID).unsettled:
            if (found := by_name.get(lost.name)) is not None:
                self.writes.settled(CLUSTER_UID, lost.namespace, lost.name)
                self.writes.created(CLUSTER_UID, found)

    def run(self, faults: Callable[[int], Fault | None] = lambda _: None, crash_before: int | None = None) -> Plan:
        """One pass. `faults` says what happens to the n-th write. Raises Crashed, and has then restarted."""
        self.settle()
        snapshot = self.observe()
        before = _live_slices(self.world)
        plan = make_plan(snapshot)
        judge(snapshot, plan)
        execution = Execution(self, snapshot, faults, crash_before)
        try:
            outcomes = execution.run(plan)
            execution.status()
        except Crashed:
            self.restart()
            raise
        finally:
            check_world(self.world)
            _never_too_many(self.world, snapshot, before)
        self.memory = remember(snapshot.memory, plan, outcomes, self.world.now)
        return plan


@dataclass
class Execution:
    """The executor's rules, one write after the other."""

    operator: Operator
    snapshot: Snapshot
    faults: Callable[[int], Fault | None]
    crash_before: int | None
    count: int = 0

    @property
    def world(self) -> World:
        return self.operator.world

    def _write(self, act: Callable[[], None], lost: Callable[[], None] = lambda: None) -> None:
        if self.count == self.crash_before:
            raise Crashed
        fault = self.faults(self.count)
        self.count += 1
        if fault in (None, Fault.LOST_DONE):
            act()
        if fault is Fault.REFUSED:
            raise _Failed(Result.REFUSED)
        if fault is Fault.TRANSIENT:
            raise _Failed(Result.FAILED)
        if fault is not None:
            lost()
            raise _Failed(Result.UNSETTLED)

    def run(self, plan: Plan) -> Outcomes:
        """Creates and deletes happen at the same time; here the deletes come first in every other pass."""
        results: dict[int, Outcome] = {}
        self._children([a for a in plan.actions if isinstance(a, Apply | DeleteChild)], results)
        deletes = [a for a in plan.actions if isinstance(a, DeleteHead | DeleteSlice)]
        creates = [a for a in plan.actions if isinstance(a, CreateHead | CreateSlice)]
        if self.operator.passes % 2:
            self._deletes(deletes, results)
        self._creates(creates, results)
        if not self.operator.passes % 2:
            self._deletes(deletes, results)
        return Outcomes(tuple(results.get(id(a), Outcome(a, Result.SKIPPED)) for a in plan.actions))

    def status(self) -> None:
        """The last write of a pass; only its two conditions matter to the planner."""
        step = step_of_suspension(self.snapshot)
        stored = [
            c for c, on in (("RayClusterSuspending", step.suspending), ("RayClusterSuspended", step.suspended)) if on
        ]
        if tuple(stored) == self.world.conditions:
            return

        def act() -> None:
            self.world.conditions = tuple(stored)

        with contextlib.suppress(_Failed):
            self._write(act)

    # children other than pods: the watch shows them at once

    def _children(self, actions: list[Apply | DeleteChild], results: dict[int, Outcome]) -> None:
        for action in actions:
            try:
                self._write(lambda a=action: self._child(a))  # type: ignore[misc]
                results[id(action)] = Outcome(action, Result.DONE)
            except _Failed as error:
                results[id(action)] = Outcome(action, error.result, "told")

    def _child(self, action: Apply | DeleteChild) -> None:
        children = self.world.children
        if isinstance(action, Apply):
            metadata = {**action.manifest["metadata"], "uid": f"uid-{action.key.name}"}  # type: ignore[dict-item]
            children[action.key] = {**action.manifest, "metadata": metadata}
        else:
            children.pop(action.key, None)

    # deletes

    def _deletes(self, actions: list[DeleteHead | DeleteSlice], results: dict[int, Outcome]) -> None:
        for action in actions:
            pods = (action.pod,) if isinstance(action, DeleteHead) else action.pods
            errors, deleted = [], []
            for pod in pods:
                try:
                    self._delete(pod)
                    deleted.append(pod)
                except _Failed as error:
                    errors.append(error.result)
            result = max(errors, key=_SEVERITY.index, default=Result.DONE)
            results[id(action)] = Outcome(action, result, "told" if errors else "", deleted=tuple(deleted))

    def _delete(self, pod: Pod) -> None:
        assert pod.uid, "a pod without uid cannot be deleted safely"
        self._write(lambda: self.world.delete(pod.uid))
        now = self.snapshot.now
        deadline = pod_gone_by(pod, now) if pod.spec.node_name else now + timedelta(seconds=1)
        self.operator.writes.deleted(CLUSTER_UID, pod.uid, deadline)

    # creates

    def _creates(self, actions: list[CreateHead | CreateSlice], results: dict[int, Outcome]) -> None:
        refused: set[str] = set()
        for action in actions:
            if isinstance(action, CreateHead):
                outcome = self._create_head(action)
            elif action.group in refused:
                continue
            else:
                outcome = self._create_slice(action)
            results[id(action)] = outcome
            if isinstance(action, CreateHead) and outcome.result is not Result.DONE:
                return
            if isinstance(action, CreateSlice) and outcome.result is Result.REFUSED:
                refused.add(action.group)

    def _create_head(self, action: CreateHead) -> Outcome:
        try:
            stamp = PodAnnotations(recreate_hash=recreate_hash(self.snapshot.cluster), kuberay_version=STAMP)
            return Outcome(action, Result.DONE, created=(self._create(_new(head(action.name, annotations=stamp))),))
        except _Failed as error:
            return Outcome(action, error.result, "told")

    def _create_slice(self, action: CreateSlice) -> Outcome:
        created, errors = [], {}
        for place in action.hosts:
            pod = host(action.slice_name, action.index, place.host, size=action.size, of=action.group, name=place.pod)
            try:
                created.append(self._create(_new(pod)))
            except _Failed as error:
                errors[place.host] = error.result
        worst = max(errors.values(), key=_SEVERITY.index, default=Result.DONE)
        if worst is Result.REFUSED:
            self._roll_back(created)
            return Outcome(action, worst, "told")
        uncreated = tuple(number for number, result in errors.items() if result is Result.FAILED)
        return Outcome(action, worst, "told" if errors else "", created=tuple(created), uncreated=uncreated)

    def _roll_back(self, created: Iterable[Pod]) -> None:
        for pod in created:
            with contextlib.suppress(_Failed):
                self._delete(pod)

    def _create(self, intended: Pod) -> Pod:
        made: list[Pod] = []

        def lost() -> None:
            if not made:
                self.operator.writes.unsettled(CLUSTER_UID, intended.metadata.namespace, intended.name, intended)

        try:
            self._write(lambda: made.append(self.world.create(intended)), lost)
        except _Failed as error:
            if not (made and error.result is Result.UNSETTLED):
                raise
        self.operator.writes.created(CLUSTER_UID, made[0])
        return made[0]


_SEVERITY = (Result.DONE, Result.FAILED, Result.UNSETTLED, Result.REFUSED)


def _new(pod: Pod) -> Pod:
    meta = replace(pod.metadata, uid="", resource_version="", creation_timestamp=None)
    return replace(pod, metadata=meta, spec=replace(pod.spec, node_name=None), status=PodStatus("Pending"))


# -- what must hold at every moment ------------------------------------------------------------------------------------


def check_world(world: World) -> None:
    """No two pods whose containers may run share a place; of heads, only one that hangs may be besides the new one."""
    running = [p for p in world.own() if not p.terminal]
    slots = Counter(slot(p) for p in running if p.node_type == names.WORKER)
    assert not [s for s, count in slots.items() if count > 1], "two running pods hold the same slot"
    heads = [p for p in running if p.node_type == names.HEAD and not _hangs(p, world)]
    assert len(heads) <= 1, "two heads"


def _hangs(pod: Pod, world: World) -> bool:
    return pod.metadata.deletion_timestamp is not None and pod.metadata.deletion_timestamp < world.now


def slot(pod: Pod) -> Slot:
    return pod.group, pod.labels.get(names.REPLICA_INDEX, ""), pod.labels.get(names.HOST_INDEX, "0")


def slice_of(pod: Pod) -> tuple[str, str]:
    return pod.group, pod.labels.get(names.REPLICA_NAME, pod.name)


def _live(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    return tuple(p for p in pods if not p.terminating and not p.terminal)


def _live_slices(world: World) -> Counter[str]:
    return Counter(group for group, _ in {slice_of(p) for p in _live(world.own())})


def _never_too_many(world: World, snapshot: Snapshot, before: Counter[str]) -> None:
    now = _live_slices(world)
    for spec in snapshot.cluster.spec.worker_group_specs:
        assert now[spec.group_name] <= max(before[spec.group_name], wanted_slices(spec)), "more slices than wanted"


def judge(snapshot: Snapshot, plan: Plan) -> None:
    """Look at a plan as a stranger would: what it deletes must be ours and must have a visible cause."""
    own = {p.uid for p in snapshot.observed.pods}
    for action in plan.actions:
        match action:
            case DeleteHead(pod=pod):
                assert pod.uid in own
            case DeleteSlice(pods=pods):
                assert {p.uid for p in pods} <= own
                assert not any(p.terminating for p in pods), "asking twice"
                _has_a_cause(snapshot, action)
            case CreateHead() | CreateSlice():
                step = step_of_suspension(snapshot)
                assert step.create_pods, "nothing is created while suspended"
                assert not any(b.group is None for b in plan.blockers), "nothing is created for a mistaken spec"
            case _:
                pass


def _has_a_cause(snapshot: Snapshot, action: DeleteSlice) -> None:
    """With the autoscaler on, a slice that is whole, of the right size and not named must stay (I1)."""
    spec = snapshot.cluster.spec
    group = next((g for g in spec.worker_group_specs if g.group_name == action.group), None)
    if not spec.autoscaling or group is None or group.suspend or not step_of_suspension(snapshot).create_pods:
        return
    members: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in snapshot.observed.pods:
        if pod.node_type == names.WORKER:
            members[slice_of(pod)].append(pod)
    pods = members[slice_of(action.pods[0])]
    named = any(p.name in group.workers_to_delete for p in pods)
    lost = any(p.terminal or p.terminating for p in pods)
    partial = len({p.labels.get(names.HOST_INDEX, "0") for p in pods}) != group.hosts
    resized = any(_size(p) != group.hosts for p in pods)
    assert named or lost or partial or resized, f"{action.reason}: a whole slice that nobody named"


def _size(pod: Pod) -> int:
    annotations = pod.metadata.annotations
    return int(annotations.num_of_hosts or 1) if annotations else 1


# -- the end -----------------------------------------------------------------------------------------------------------


def converge(operator: Operator, limit: int = 150) -> int:
    """Let faults end and time pass until a pass has nothing to do and nothing to wait for; the number of passes."""
    world = operator.world
    for number in range(limit):
        operator.see_spec()
        operator.see_pods()
        plan = operator.run()
        if plan.blockers or (not plan.actions and not plan.waiting and not _restless(operator)):
            return number
        for uid in tuple(world.pods):
            world.recover(uid)
        world.pass_time(1.0 if plan.actions else max(plan.requeue_after or 0.0, 10.0))
        check_world(world)
    raise AssertionError(f"no rest after {limit} passes: {plan.actions or plan.waiting}")


def _restless(operator: Operator) -> bool:
    """Something will happen by itself."""
    stuck = operator.world.stuck
    waits = (p.uid not in stuck if p.terminating else not (p.ready or p.terminal) for p in operator.world.own())
    return any(waits) or bool(operator.writes.overlay(CLUSTER_UID).unsettled)


def check_converged(operator: Operator) -> None:
    """Pods are what the spec says, each slice whole, nothing left to do."""
    world = operator.world
    snapshot = operator.observe()
    plan = make_plan(snapshot)
    assert plan.empty, plan.actions
    if plan.blockers:
        return
    live = _live(world.own())
    spec = snapshot.cluster.spec
    assert all(p in live or p.uid in world.stuck for p in world.own())
    if spec.suspend or not step_of_suspension(snapshot).create_pods:
        assert not live
        return
    assert [p.node_type for p in live].count(names.HEAD) == 1
    assert {p.group for p in live} <= {g.group_name for g in spec.worker_group_specs} | {names.HEAD_GROUP}
    for group in spec.worker_group_specs:
        slices: dict[tuple[str, str], list[Pod]] = defaultdict(list)
        for pod in live:
            if pod.group == group.group_name:
                slices[slice_of(pod)].append(pod)
        for pods in slices.values():
            hosts = sorted(int(p.labels.get(names.HOST_INDEX, "0")) for p in pods)
            assert hosts == list(range(group.hosts)), f"a partial slice, or one of another size: {slices}"
        indices = [slot(pods[0])[1] for pods in slices.values()]
        assert len(set(indices)) == len(indices), "two slices of one index"
        wanted = wanted_slices(group)
        assert len(slices) == wanted or (spec.autoscaling and len(slices) > wanted)
        assert not {p.name for p in live} & set(group.workers_to_delete), "named, and still there"


def world_of(*groups: dict[str, Any], **spec: Any) -> World:
    """An empty world with a RayCluster."""
    return World(deepcopy(cluster(*groups, **spec).raw))
