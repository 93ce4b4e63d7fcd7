"""The command line, as a person uses it; nothing here needs a server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tpu_operator import __version__
from tpu_operator.cli.main import app

MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: passed-over}
---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: demo}
spec:
  rayVersion: 2.60.0
  headGroupSpec:
    template: {spec: {containers: [{name: ray-head, image: ray}]}}
  workerGroupSpecs:
  - groupName: g
    replicas: 2
    numOfHosts: 2
    template: {spec: {containers: [{name: ray-worker, image: ray}]}}
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(MANIFEST)
    return path


def run(*args: object, code: int = 0, stdin: str | None = None) -> str:
    result = CliRunner().invoke(app, [str(a) for a in args], input=stdin)
    assert result.exit_code == code, result.output
    return result.output


def test_version_is_the_packages() -> None:
    assert run("version").strip() == __version__


def test_the_crd_is_printed_as_it_lies_in_the_repository() -> None:
    assert run("crd") == (Path(__file__).parents[3] / "crds" / "ray.io_rayclusters.yaml").read_text()


def test_the_plan_of_a_new_cluster_creates_services_head_and_whole_slices(manifest: Path) -> None:
    text = run("plan", "-f", manifest)
    assert "apply Service demo-head-svc" in text
    assert "apply Service demo-headless" in text
    assert "create head demo-head-" in text
    assert "create slice g-0: 2 of 2 hosts" in text
    assert "create slice g-1: 2 of 2 hosts" in text


def test_the_plan_is_also_given_for_machines(manifest: Path) -> None:
    plans = json.loads(run("plan", "-f", manifest, "-o", "json"))
    assert [a["action"] for a in plans[0]["actions"]].count("CreateSlice") == 2
    assert plans[0]["blockers"] == []


def test_a_manifest_can_come_from_standard_input() -> None:
    assert "RayCluster default/demo" in run("plan", "-f", "-", stdin=MANIFEST)


def test_a_mistake_is_named_with_its_field_and_the_exit_code_is_1(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(MANIFEST.replace("replicas: 2", "replicas: 2\n    minReplicas: 5\n    maxReplicas: 3"))
    assert "spec.workerGroupSpecs[0].minReplicas" in run("plan", "-f", bad, code=1)


def observed(tmp_path: Path, lost: int) -> Path:
    folder = tmp_path / "observed"
    folder.mkdir()
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": "u1", "controller": True}
    pods = []
    for index in range(2):
        for host in range(2):
            labels = {
                "ray.io/cluster": "demo",
                "ray.io/node-type": "worker",
                "ray.io/group": "g",
                "ray.io/worker-group-replica-name": f"g-slice{index}",
                "ray.io/worker-group-replica-index": str(index),
                "ray.io/replica-host-index": str(host),
            }
            phase = "Failed" if (index, host) == (0, lost) else "Running"
            meta = {"name": f"w{index}{host}", "uid": f"w{index}{host}", "labels": labels, "ownerReferences": [owner]}
            meta["annotations"] = {"tpu-operator.io/num-of-hosts": "2"}
            pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": {"phase": phase}})
    (folder / "pods.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "PodList", "items": pods}))
    return folder


def test_a_failed_host_in_the_observed_folder_dooms_its_slice_only(manifest: Path, tmp_path: Path) -> None:
    text = run("plan", "-f", manifest, "--observed", observed(tmp_path, lost=1))
    assert "delete slice g-0: phase Failed (w00, w01)" in text
    assert "g-1" not in text


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("plan", "-f", "nowhere.yaml"), "cannot read nowhere.yaml"),
        (("plan", "-f", "-", "-o", "xml"), "write text or json"),
        (("plan", "-f", "-", "--server", "--observed", "x"), "give one of them"),
    ],
)
def test_what_cannot_work_is_said_in_one_line(args: tuple[str, ...], says: str) -> None:
    output = run(*args, code=2, stdin=MANIFEST)
    assert says in output
    assert "Traceback" not in output


def test_a_file_without_a_raycluster_is_refused() -> None:
    assert "has no RayCluster" in run("plan", "-f", "-", code=2, stdin="kind: ConfigMap")


def test_help_and_version_do_not_import_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [m for m in sys.modules if m.startswith("tpu_operator.controller")]:
        monkeypatch.delitem(sys.modules, name)
    run("--help")
    run("version")
    assert "tpu_operator.controller.app" not in sys.modules
