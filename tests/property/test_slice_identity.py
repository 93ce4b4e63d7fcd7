"""Whatever happens to pods and process: the pods that live together know exactly who they are."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builders import group
from simulation import Crashed, Fault, Operator, World, converge, world_of
from tpu_operator.api import names
from tpu_operator.planning.plan import CreateSlice, Plan
from tpu_operator.planning.planner import plan
from tpu_operator.planning.pod import Pod
from tpu_operator.planning.snapshot import Snapshot
from tpu_operator.resources.pods.place import Place
from tpu_operator.resources.pods.worker import WorkerBlueprint
from tpu_operator.tpu import gke

CHIPS = 4
SHAPES = {1: "2x2", 2: "2x4", 4: "4x4"}
PICK = st.integers(0, 1000)
FAULTS = st.lists(st.sampled_from([None, None, *Fault]), max_size=8)
STEPS = st.one_of(
    st.tuples(st.just("scale"), PICK, st.integers(0, 4)),
    st.tuples(st.sampled_from(["name", "fail", "delete", "lose"]), PICK),
    st.tuples(st.just("work"), FAULTS),
    st.tuples(st.just("crash"), FAULTS, st.integers(0, 8)),
    st.tuples(st.sampled_from(["restart", "wait", "usual", "usual"])),
)


def tpu_group(name: str, replicas: int, hosts: int) -> dict[str, Any]:
    container = {"name": "ray-worker", "image": "ray", "resources": {"limits": {gke.RESOURCE: str(CHIPS)}}}
    selector = {gke.ACCELERATOR: "tpu-v6e-slice", gke.TOPOLOGY: SHAPES[hosts]}
    template = {"spec": {"nodeSelector": selector, "containers": [container]}}
    return group(name, replicas, hosts=hosts, high=4, template=template)


class Recorder(Operator):
    """An operator whose creates are written down as the executor would send them."""

    def __init__(self, world: World) -> None:
        self.manifests: dict[str, dict[str, Any]] = {}
        super().__init__(world)

    def observe(self) -> Snapshot:
        self.snapshot = super().observe()
        return self.snapshot

    def run(self, *args: Any, **kwargs: Any) -> Plan:
        try:
            return super().run(*args, **kwargs)
        finally:  # after a crash too: planning is pure, so it can be done again
            self._write_down(plan(self.snapshot))

    def _write_down(self, what: Plan) -> None:
        cluster = self.snapshot.cluster
        for action in what.actions:
            if isinstance(action, CreateSlice):
                spec = next(g for g in cluster.spec.worker_group_specs if g.group_name == action.group)
                blueprint = WorkerBlueprint.of(cluster, spec, self.config)
                for host in action.hosts:
                    place = Place(action.slice_name, action.index, host.host, action.size)
                    self.manifests[host.pod] = blueprint.pod(place, host.pod)

    def work(self, faults: list[Fault | None], crash_before: int | None = None) -> None:
        self.see_spec()
        self.see_pods()
        with contextlib.suppress(Crashed):
            self.run(lambda n: faults[n] if n < len(faults) else None, crash_before=crash_before)


def variables(manifest: dict[str, Any]) -> dict[str, str]:
    return {e["name"]: e.get("value", "") for e in manifest["spec"]["containers"][0]["env"]}


def check_identities(operator: Recorder) -> None:
    """Of the pods that are there and not on their way out."""
    slices: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for pod in operator.world.own():
        if pod.node_type == names.WORKER and not pod.terminating and not pod.terminal:
            manifest = operator.manifests[pod.name]
            assert manifest["metadata"]["labels"].items() >= own_labels(pod).items()
            slices[pod.group, pod.labels[names.REPLICA_INDEX]].append(manifest)
    for (name, index), manifests in slices.items():
        check_slice(name, index, manifests)


def own_labels(pod: Pod) -> dict[str, str]:
    keys = (names.REPLICA_NAME, names.REPLICA_INDEX, names.HOST_INDEX, names.NODE_GROUP)
    return {key: pod.labels[key] for key in keys if key in pod.labels}


def check_slice(name: str, index: str, manifests: list[dict[str, Any]]) -> None:
    hosts = int(manifests[0]["metadata"].get("annotations", {}).get(names.NUM_OF_HOSTS, 1))
    ids = [variables(manifest)["TPU_WORKER_ID"] for manifest in manifests]
    assert len(set(ids)) == len(ids), "an id twice"
    assert set(ids) <= {str(host) for host in range(hosts)}
    assert len({manifest["metadata"]["labels"].get(names.SLICE) for manifest in manifests}) == 1, "two incarnations"
    assert {variables(manifest)["TPU_NAME"] for manifest in manifests} == {f"{name}-{index}"}
    for manifest, worker_id in zip(manifests, ids, strict=True):
        labels, told = manifest["metadata"]["labels"], variables(manifest)
        assert labels[names.HOST_INDEX] == worker_id
        assert labels[names.LEGACY_REPLICA_INDEX] == f"{name}-{index}"
        if hosts > 1:
            own = f"{name}-{index}-{worker_id}"
            assert manifest["spec"]["hostname"] == own
            listed = told["TPU_WORKER_HOSTNAMES"].split(",")
            assert len(listed) == hosts
            assert listed[int(worker_id)] == f"{own}.{manifest['spec']['subdomain']}"
        else:
            assert "TPU_WORKER_HOSTNAMES" not in told


def act(operator: Recorder, step: tuple[Any, ...]) -> None:
    match step:
        case ("scale", which, replicas):
            groups = operator.world.groups
            groups[which % len(groups)]["replicas"] = replicas
            operator.world.edited()
        case ("name" | "fail" | "delete" | "lose" as kind, pick, *_):
            harm(operator.world, kind, pick)
        case ("work", faults):
            operator.work(faults)
        case ("crash", faults, count):
            operator.work(faults, crash_before=count)
        case ("restart",):
            operator.restart()
        case ("wait",):
            operator.world.pass_time(45)
        case _:
            operator.work([])
            for uid in tuple(operator.world.pods):
                operator.world.start(uid)


def harm(world: World, kind: str, pick: int) -> None:
    """Something happens to one of the pods, if there are any."""
    pods = sorted(world.own(), key=lambda pod: pod.name)
    if not pods:
        return
    pod = pods[pick % len(pods)]
    match kind:
        case "name":
            for spec in world.groups:
                if spec["groupName"] == pod.group:
                    spec["scaleStrategy"] = {"workersToDelete": [pod.name]}
            world.edited()
        case "fail":
            world.fail(pod.uid)
        case "lose" if pod.spec.node_name:
            world.stuck.add(pod.uid)
            world.delete(pod.uid)
        case _:
            world.delete(pod.uid)


@given(hosts=st.sampled_from([2, 4]), replicas=st.integers(1, 3), steps=st.lists(STEPS, min_size=1, max_size=25))
def test_ids_are_unique_and_equal_to_hostname_and_label_at_every_moment(hosts, replicas, steps):
    world = world_of(tpu_group("a", replicas, hosts), tpu_group("b", 2, 1))
    operator = Recorder(world)
    for step in steps:
        act(operator, step)
        check_identities(operator)
    world.stuck.clear()
    for spec in world.groups:
        spec.pop("scaleStrategy", None)
    world.edited()
    converge(operator)
    check_identities(operator)
    for spec in world.groups:
        live = [p for p in world.own() if p.group == spec["groupName"] and not p.terminating]
        by_index: dict[str, set[str]] = defaultdict(set)
        for pod in live:
            by_index[pod.labels[names.REPLICA_INDEX]].add(variables(operator.manifests[pod.name])["TPU_WORKER_ID"])
        assert len(by_index) == spec["replicas"]
        assert all(ids == {str(host) for host in range(spec["numOfHosts"])} for ids in by_index.values())
