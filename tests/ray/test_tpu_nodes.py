"""Real Ray nodes with the environment of our pods: what Ray makes of it. No TPU is needed, Ray believes what it is told.

TPU_OPERATOR_RAY_PYTHON names a Python that has Ray, `ray[default]==2.60.0` for example.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tpu_operator.api.raycluster import RayCluster
from tpu_operator.config import OperatorConfig
from tpu_operator.resources.pods.place import Place
from tpu_operator.resources.pods.worker import WorkerBlueprint

pytestmark = pytest.mark.ray

Json = dict[str, Any]
Node = tuple[dict[str, str], dict[str, float]]

SECONDS = 90.0
NODES = """
import json, sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="error")
print(json.dumps([[n["Labels"], n["Resources"]] for n in ray.nodes() if n["Alive"]]))
"""


def has_ray(python: str) -> bool:
    try:
        return subprocess.run([python, "-c", "import ray"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="module")
def python() -> str:
    found = os.environ.get("TPU_OPERATOR_RAY_PYTHON", "")
    if not found:
        pytest.skip("TPU_OPERATOR_RAY_PYTHON names no Python with Ray")
    if not has_ray(found):
        pytest.skip(f"TPU_OPERATOR_RAY_PYTHON: {found} cannot import ray")
    return found


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def slice_pods(accelerator: str, topology: str, chips: int, hosts: int, replicas: int) -> list[Json]:
    selector = {"cloud.google.com/gke-tpu-accelerator": accelerator, "cloud.google.com/gke-tpu-topology": topology}
    container = {"name": "ray", "image": "x", "resources": {"limits": {"google.com/tpu": str(chips), "cpu": "1"}}}
    template = {"spec": {"nodeSelector": selector, "containers": [container]}}
    group = {"groupName": "workers", "replicas": replicas, "numOfHosts": hosts, "template": template}
    head = {"template": {"spec": {"containers": [{"name": "h", "image": "x"}]}}}
    spec = {"headGroupSpec": head, "workerGroupSpecs": [group]}
    cluster = RayCluster.parse({"metadata": {"name": "demo", "namespace": "n", "uid": "u"}, "spec": spec})
    made = WorkerBlueprint.of(cluster, cluster.spec.worker_group_specs[0], OperatorConfig())
    places = [Place(f"workers-slc{r}x", r, host, hosts) for r in range(replicas) for host in range(hosts)]
    return [made.pod(place, f"pod-{place.index}-{place.host}") for place in places]


def environment(pod: Json) -> dict[str, str]:
    """What a kubelet would set, as far as TPUs and the node's group are concerned."""
    entries = pod["spec"]["containers"][0]["env"]
    told = {e["name"]: e["value"] for e in entries if e["name"].startswith("TPU_") and "value" in e}
    return {**told, "RAY_NODE_TYPE_NAME": pod["metadata"]["labels"]["ray.io/group"]}


def resources(pod: Json) -> list[str]:
    """The flag by which the generated command tells Ray its chips."""
    command = next(e["value"] for e in pod["spec"]["containers"][0]["env"] if e["name"] == "KUBERAY_GEN_RAY_START_CMD")
    return [word for word in shlex.split(command) if word.startswith("--resources=")]


class Nodes:
    """Ray nodes on this machine, each `ray start --block` in a session of its own."""

    def __init__(self, python: str, stack: ExitStack) -> None:
        self._python, self._stack = python, stack
        # Ray puts sockets there, whose paths must be short.
        self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True)))
        self.address = f"127.0.0.1:{free_port()}"

    def start(self, *flags: str, **env: str) -> None:
        ports = [f"--{name}={free_port()}" for name in ("dashboard-agent-listen-port", "metrics-export-port")]
        common = ["--block", "--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats", *ports]
        command = [str(Path(self._python).with_name("ray")), "start", *common, *flags]
        log = self._stack.enter_context((self._folder / f"{time.monotonic_ns()}.log").open("w"))
        process = subprocess.Popen(command, env={**os.environ, **env}, stdout=log, stderr=log, start_new_session=True)
        self._stack.callback(_end, process)

    def head(self) -> None:
        port = self.address.rpartition(":")[2]
        self.start("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={self._folder}/s")

    def join(self, pod: Json) -> None:
        self.start(f"--address={self.address}", *resources(pod), **environment(pod))

    def until(self, count: int) -> list[Node]:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            asked = subprocess.run(
                [self._python, "-c", NODES, self.address], capture_output=True, text=True, check=False, timeout=SECONDS
            )
            if asked.returncode == 0 and len(found := json.loads(asked.stdout.splitlines()[-1])) == count:
                return [(labels, amounts) for labels, amounts in found]
        raise AssertionError(f"no {count} Ray nodes: {asked.stdout}{asked.stderr}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ray's own `stop` would end every Ray on this machine."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, kind)
            process.wait(10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


@contextmanager
def nodes_of(python: str) -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(python, stack)


@pytest.mark.parametrize(
    ("slice_", "pod_type", "accelerator"),
    [
        (("tpu-v6e-slice", "2x4", 4, 2, 2), "v6e-8", "TPU-V6E"),
        (("tpu7x", "2x2x2", 4, 2, 1), "v7x-16", "TPU-V7X"),
        (("tpu-v5-lite-podslice", "2x2", 4, 1, 2), "v5litepod-4", "TPU-V5LITEPOD"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_each_slice_has_its_labels_and_exactly_one_head_resource(python, slice_, pod_type, accelerator):
    hosts, replicas = slice_[3:]
    pods = slice_pods(*slice_)
    with nodes_of(python) as nodes:
        nodes.head()
        every = nodes.until(1)
        for number, pod in enumerate(pods):  # one by one: on one machine they would race for ports
            nodes.join(pod)
            every = nodes.until(2 + number)
        found = [node for node in every if "TPU" in node[1]]
    assert len(found) == len(pods)
    for replica in range(replicas):
        name = f"workers-{replica}"
        members = sorted(
            (n for n in found if n[0]["ray.io/tpu-slice-name"] == name), key=lambda n: n[0]["ray.io/tpu-worker-id"]
        )
        assert [labels["ray.io/tpu-worker-id"] for labels, _ in members] == [str(h) for h in range(hosts)]
        assert {labels["ray.io/tpu-topology"] for labels, _ in members} == {slice_[1]}
        assert {labels["ray.io/tpu-pod-type"] for labels, _ in members} == {pod_type}
        assert {labels["ray.io/accelerator-type"] for labels, _ in members} == {accelerator}
        assert all(amounts["TPU"] == slice_[2] and amounts[name] == 1 for _, amounts in members)
        heads = [amounts.get(f"TPU-{pod_type}-head") for _, amounts in members]
        assert heads == [1] + [None] * (hosts - 1)
