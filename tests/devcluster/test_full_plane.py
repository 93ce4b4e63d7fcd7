"""The whole control plane with fake nodes: how pods and nodes live there."""

import json
import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from devcluster import ControlPlane, Options, PoolSpec
from devcluster.waiting import wait_until

pytestmark = pytest.mark.kwok
pytest_plugins = ["devcluster.pytest_plugin"]

POOL = PoolSpec("tpu-v6e-slice", "4x4")
SELECTOR = {
    "cloud.google.com/gke-tpu-accelerator": POOL.accelerator,
    "cloud.google.com/gke-tpu-topology": POOL.topology,
}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane.start(Options(pools=(POOL,))) as plane:
        yield plane


@pytest.fixture
def home(plane: ControlPlane, namespace: Callable[[ControlPlane], str]) -> str:
    return namespace(plane)


def create(plane: ControlPlane, home: str, name: str = "p", **metadata: object) -> None:
    container = {"name": "c", "image": "x", "resources": {"limits": {"google.com/tpu": "4"}}}
    spec = {"nodeSelector": SELECTOR, "tolerations": [{"key": "google.com/tpu", "operator": "Exists"}]}
    pod = {"metadata": {"name": name, **metadata}, "spec": {**spec, "containers": [container]}}
    with plane.client() as client:
        client.post(f"/api/v1/namespaces/{home}/pods", pod)


def get(plane: ControlPlane, home: str, kind: str) -> Mapping[str, Mapping]:
    return json.loads(plane.kubectl("get", "-n", home, kind, "-o", "json"))


def gone(plane: ControlPlane, home: str, name: str = "p") -> bool:
    return plane.kubectl("get", "-n", home, "pod", name, "--ignore-not-found", "-o", "name") == ""


def until(condition: Callable[[], bool]) -> None:
    wait_until(condition, "the expected state", timeout=30, check=lambda: None)


def ready(plane: ControlPlane, home: str) -> None:
    plane.kubectl("wait", "-n", home, "--for=condition=Ready", "pod", "--all", "--timeout=30s")


def test_a_pod_that_asks_for_chips_is_scheduled_on_a_fake_host_and_ready(plane: ControlPlane, home: str) -> None:
    create(plane, home)
    ready(plane, home)
    pod = get(plane, home, "pod/p")
    assert pod["spec"]["nodeName"].startswith("tpu-v6e-slice-4x4-0-host-")
    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["podIP"].startswith("10.")
    assert [status["ready"] for status in pod["status"]["containerStatuses"]] == [True]


def test_a_host_holds_as_many_chips_as_it_has(plane: ControlPlane, home: str) -> None:
    for number in range(5):
        create(plane, home, f"p-{number}")
    until(lambda: "Insufficient google.com/tpu" in plane.kubectl("get", "pods", "-n", home, "-o", "yaml"))
    phases = plane.kubectl("get", "pods", "-n", home, "-o", "jsonpath={.items[*].status.phase}").split()
    assert sorted(phases).count("Pending") >= 1


def test_a_labelled_pod_fails_with_exit_code_1(plane: ControlPlane, home: str) -> None:
    create(plane, home)
    ready(plane, home)
    plane.kubectl("label", "-n", home, "pod/p", "devcluster/fail=true")
    until(lambda: get(plane, home, "pod/p")["status"]["phase"] == "Failed")
    [status] = get(plane, home, "pod/p")["status"]["containerStatuses"]
    assert status["state"] == {"terminated": status["state"]["terminated"]}
    assert status["state"]["terminated"]["exitCode"] == 1


def test_a_pod_is_ready_after_its_delay_and_deleted_after_its_termination_time(plane: ControlPlane, home: str) -> None:
    create(plane, home, annotations={"devcluster/ready-delay": "1500ms", "devcluster/termination-seconds": "1"})
    start = time.monotonic()
    ready(plane, home)
    assert time.monotonic() - start > 1.2
    start = time.monotonic()
    plane.kubectl("delete", "-n", home, "pod/p", "--timeout=30s")
    assert time.monotonic() - start > 0.8


def test_a_stuck_pod_stays_terminating_until_the_label_is_gone(plane: ControlPlane, home: str) -> None:
    create(plane, home, "stuck", labels={"devcluster/stuck": "true"})
    create(plane, home, "normal")
    ready(plane, home)
    plane.kubectl("delete", "-n", home, "pod", "stuck", "--wait=false")
    plane.kubectl("delete", "-n", home, "pod", "normal", "--timeout=30s")
    assert "deletionTimestamp" in get(plane, home, "pod/stuck")["metadata"]
    plane.kubectl("label", "-n", home, "pod/stuck", "devcluster/stuck-")
    until(lambda: gone(plane, home, "stuck"))


def test_a_labelled_node_is_not_ready_until_the_label_is_gone(plane: ControlPlane) -> None:
    node = "node/tpu-v6e-slice-4x4-0-host-3"
    plane.kubectl("label", node, "devcluster/not-ready=true")
    plane.kubectl("wait", "--for=condition=Ready=false", node, "--timeout=30s")
    plane.kubectl("label", node, "devcluster/not-ready-")
    plane.kubectl("wait", "--for=condition=Ready", node, "--timeout=30s")
