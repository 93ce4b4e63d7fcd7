"""Whatever users, nodes, the network and the process itself do: the invariants hold, and peace brings what was asked."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from builders import BORN, group, pod
from simulation import Crashed, Fault, Operator, World, check_converged, check_world, converge, world_of
from tpu_operator.api import names
from tpu_operator.planning.pod import PodCondition, PodStatus

COUNTS = st.integers(0, 4)
HOSTS = st.sampled_from([1, 1, 2, 4])
PICK = st.integers(0, 1000)
FAULTS = st.lists(st.sampled_from([None, None, None, *Fault]), max_size=12)
SECONDS = st.sampled_from([0.5, 1, 5, 20, 45, 120])
OFTEN = st.sampled_from([True, True, True, False])
SEEN = st.sampled_from([None, None, None, 0, 1, 3])
STALE = ["demo-a-worker-stale", "somebody-elses-pod", "no-such-pod"]


def somebody_elses(name: str, **meta: Any) -> Any:
    """A pod that looks like ours, with another controller."""
    labels = {names.NODE_TYPE: names.WORKER, names.NODE_GROUP: "a", names.REPLICA_INDEX: "0"}
    return pod(name, labels, "ray-worker", owner_references=(), creation_timestamp=BORN, **meta)


class Clusters(RuleBasedStateMachine):
    """Users edit, nodes fail, writes fail, caches lag, processes die."""

    world: World
    operator: Operator

    @initialize(a=COUNTS, b=COUNTS, hosts=HOSTS, autoscaling=st.booleans(), steady=st.booleans())
    def begin(self, a: int, b: int, hosts: int, autoscaling: bool, steady: bool) -> None:
        self.world = world_of(group("a", a, hosts=hosts, high=4), group("b", b, high=4), autoscaling=autoscaling)
        self.world.put(somebody_elses("somebody-elses-pod"))
        self.operator = Operator(self.world)
        if steady:
            converge(self.operator)

    # users and the autoscaler

    @rule(which=PICK, replicas=COUNTS)
    def scale(self, which: int, replicas: int) -> None:
        if (spec := self._group(which)) is not None:
            spec["replicas"] = replicas
            self.world.edited()

    @rule(which=PICK, picks=st.lists(PICK, max_size=2), stale=st.sampled_from([None, *STALE]), drop=st.integers(0, 2))
    def name_victims(self, which: int, picks: list[int], stale: str | None, drop: int) -> None:
        """As the autoscaler does it: names and the lower number in one patch; now and then names of other pods."""
        spec = self._group(which)
        if spec is None:
            return
        pods = sorted((p for p in self.world.own() if p.group == spec["groupName"]), key=lambda p: p.name)
        named = [pods[pick % len(pods)].name for pick in picks if pods]
        spec["scaleStrategy"] = {"workersToDelete": [*named, *([stale] if stale else [])]}
        spec["replicas"] = max(0, spec["replicas"] - drop)
        self.world.edited()

    @rule(which=PICK, low=st.integers(0, 2), high=st.integers(1, 4))
    def set_bounds(self, which: int, low: int, high: int) -> None:
        """Now and then the lower bound is above the upper one: a mistake."""
        if (spec := self._group(which)) is not None:
            spec["minReplicas"], spec["maxReplicas"] = low, high
            self.world.edited()

    @rule(which=PICK, hosts=HOSTS)
    def resize(self, which: int, hosts: int) -> None:
        if (spec := self._group(which)) is not None:
            spec["numOfHosts"] = hosts
            self.world.edited()

    @rule(name=st.sampled_from(["a", "b", "c"]), replicas=COUNTS, hosts=HOSTS)
    def add_group(self, name: str, replicas: int, hosts: int) -> None:
        if all(g["groupName"] != name for g in self.world.groups):
            self.world.groups.append(group(name, replicas, hosts=hosts, high=4))
            self.world.edited()

    @rule(which=PICK)
    def remove_group(self, which: int) -> None:
        if (spec := self._group(which)) is not None:
            self.world.groups.remove(spec)
            self.world.edited()

    @rule(which=PICK, to=st.sampled_from(["a", "b", "c"]))
    def rename_group(self, which: int, to: str) -> None:
        spec = self._group(which)
        if spec is not None and all(g["groupName"] != to for g in self.world.groups):
            spec["groupName"] = to
            self.world.edited()

    @rule(suspend=st.sampled_from([True, False, None]))
    def suspend(self, suspend: bool | None) -> None:
        self.world.spec["suspend"] = suspend
        self.world.edited()

    @rule(which=PICK, suspend=st.booleans())
    def suspend_group(self, which: int, suspend: bool) -> None:
        if (spec := self._group(which)) is not None:
            spec["suspend"] = suspend
            self.world.edited()

    @rule(on=st.booleans())
    def autoscaling(self, on: bool) -> None:
        self.world.spec["enableInTreeAutoscaling"] = on
        self.world.edited()

    # kubelets, nodes, people with kubectl

    @rule(picks=st.lists(PICK, min_size=1, max_size=8))
    def start(self, picks: list[int]) -> None:
        for pick in picks:
            if (uid := self._pod(pick)) is not None:
                self.world.start(uid)

    @rule()
    def start_all(self) -> None:
        for uid in tuple(self.world.pods):
            self.world.start(uid)

    @rule(pick=PICK)
    def unready(self, pick: int) -> None:
        uid = self._pod(pick)
        if uid is not None and self.world.pods[uid].phase == "Running":
            status = PodStatus("Running", conditions=(PodCondition("Ready", "False"),))
            self.world.change(uid, status=status)

    @rule(pick=PICK, reason=st.sampled_from([None, "Evicted", "UnexpectedAdmissionError"]))
    def fail(self, pick: int, reason: str | None) -> None:
        if (uid := self._pod(pick)) is not None:
            self.world.fail(uid, reason)

    @rule(pick=PICK)
    def delete_from_outside(self, pick: int) -> None:
        if (uid := self._pod(pick)) is not None:
            self.world.delete(uid)

    @rule(pick=PICK)
    def lose_node(self, pick: int) -> None:
        """The kubelet is gone: the pod will be asked to go, and never goes."""
        uid = self._pod(pick)
        if uid is not None and self.world.pods[uid].spec.node_name:
            self.world.stuck.add(uid)
            self.world.delete(uid)

    @rule(pick=PICK)
    def hold_back(self, pick: int) -> None:
        """A foreign finalizer: the pod will not go when it is deleted."""
        if (uid := self._pod(pick)) is not None:
            self.world.stuck.add(uid)

    @rule()
    def release(self) -> None:
        self.world.stuck.clear()

    @rule(seconds=SECONDS)
    def wait(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    # the operator

    @rule(spec=OFTEN, pods=SEEN, faults=FAULTS)
    def work(self, spec: bool, pods: int | None, faults: list[Fault | None]) -> None:
        self._see(spec, pods)
        self.operator.run(lambda n: faults[n] if n < len(faults) else None)

    @rule(spec=OFTEN, pods=SEEN, faults=FAULTS, count=st.integers(0, 12))
    def crash(self, spec: bool, pods: int | None, faults: list[Fault | None], count: int) -> None:
        self._see(spec, pods)
        with contextlib.suppress(Crashed):
            self.operator.run(lambda n: faults[n] if n < len(faults) else None, crash_before=count)

    @rule()
    def restart(self) -> None:
        self.operator.restart()

    @rule(times=st.integers(1, 3))
    def usual(self, times: int) -> None:
        """Everything is seen, a pass runs, pods start."""
        for _ in range(times):
            self._see(spec=True, pods=None)
            self.operator.run()
            self.start_all()
            self.world.pass_time(1)

    def _see(self, spec: bool, pods: int | None) -> None:
        if spec:
            self.operator.see_spec()
        self.operator.see_pods(pods)

    # what must hold

    @invariant()
    def nothing_is_wrong(self) -> None:
        if hasattr(self, "world"):
            check_world(self.world)
            assert any(p.name == "somebody-elses-pod" for p in self.world.pods.values()), "a foreign pod was deleted"

    def teardown(self) -> None:
        """When all faults end, the cluster becomes what the spec says, and then nothing is written."""
        if not hasattr(self, "world"):
            return
        self._mend()
        converge(self.operator)
        check_converged(self.operator)
        writes = self.world.version
        self.operator.restart()
        assert self.operator.run().empty
        assert self.world.version == writes

    def _mend(self) -> None:
        for spec in self.world.groups:
            spec["maxReplicas"] = max(spec["maxReplicas"], spec["minReplicas"])
            if self.world.spec.get("enableInTreeAutoscaling"):
                spec["suspend"] = False
        if self.world.conditions or self.world.spec.get(
            "suspend"
        ):  # a suspension once begun runs to its end, and waits for pods that hang
            self.world.stuck.clear()
        self.world.edited()

    # pickers

    def _group(self, which: int) -> dict[str, Any] | None:
        groups = self.world.groups
        return groups[which % len(groups)] if groups else None

    def _pod(self, pick: int) -> str | None:
        pods = sorted(self.world.own(), key=lambda p: p.name)
        return pods[pick % len(pods)].uid if pods else None


TestClusters = Clusters.TestCase
TestClusters.settings = settings(stateful_step_count=30)
