"""etcd and kube-apiserver alone: started, used, stopped, killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import AuditLevel, ControlPlane, Options, User
from devcluster.errors import CommandError, RequestError, StartError
from devcluster.scratch import default_root
from devcluster.waiting import wait_until

pytestmark = pytest.mark.apiserver

ROOT = Path(__file__).parents[2]
POD = {
    "metadata": {"name": "p", "finalizers": ["example.dev/held"]},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}
WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    crd = tmp_path_factory.mktemp("crd") / "widgets.yaml"
    crd.write_text(WIDGETS)
    users = (User("operator"), User("reader", ("system:masters",)))
    with ControlPlane.start(Options(bare=True, crds=(crd,), audit=AuditLevel.METADATA, users=users)) as plane:
        yield plane


def test_a_namespace_takes_pods_and_custom_objects_and_is_emptied_in_spite_of_finalizers(plane: ControlPlane) -> None:
    plane.create_namespace("full")
    widget = {
        "apiVersion": "example.dev/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "finalizers": ["example.dev/x"]},
    }
    with plane.client() as client:
        client.post("/api/v1/namespaces/full/pods", POD)
        client.post("/apis/example.dev/v1/namespaces/full/widgets", widget)
        plane.delete_namespace("full")
        assert client.get("/api/v1/namespaces/full/pods")["items"] == []
        assert client.get("/apis/example.dev/v1/namespaces/full/widgets")["items"] == []


def test_a_user_without_a_role_may_do_nothing_and_a_master_everything(plane: ControlPlane) -> None:
    with plane.client("operator") as client, pytest.raises(RequestError) as caught:
        client.get("/api/v1/pods")
    assert caught.value.status == 403
    with plane.client("reader") as client:
        assert client.get("/api/v1/pods")["kind"] == "PodList"


def test_kubectl_speaks_to_the_plane_and_complains_as_an_error(plane: ControlPlane) -> None:
    assert "widgets.example.dev" in plane.kubectl("get", "crd", "-o", "name")
    with pytest.raises(CommandError, match="NotFound"):
        plane.kubectl("get", "namespace", "nowhere")


def test_every_request_is_in_the_audit_log_when_it_has_been_answered(plane: ControlPlane) -> None:
    assert plane.audit_log is not None
    plane.create_namespace("audited")
    entries = [json.loads(line) for line in plane.audit_log.read_text().splitlines()]
    created = [e for e in entries if e["verb"] == "create" and e["objectRef"].get("name") == "audited"]
    assert [(e["user"]["username"], e["responseStatus"]["code"]) for e in created] == [("admin", 201)]


def test_stopping_leaves_no_process_and_no_folder() -> None:
    plane = ControlPlane.start(Options(bare=True))
    pids, folder = plane.pids(), plane.logs.parent
    assert set(pids) == {"etcd", "kube-apiserver"}
    plane.stop()
    plane.stop()
    assert not folder.exists()
    assert not any(map(alive, pids.values()))


def test_a_program_that_cannot_start_leaves_nothing_behind() -> None:
    before = set(default_root().iterdir())
    with pytest.raises(StartError, match="unknown flag: --nonsense"):
        ControlPlane.start(Options(bare=True, apiserver_flags=("--nonsense",)))
    assert set(default_root().iterdir()) <= before


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_up_leaves_no_process_behind_however_it_ends(how: signal.Signals) -> None:
    command = [sys.executable, "-m", "devcluster", "up", "--bare"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as up:
        assert up.stdout is not None
        kubeconfig = Path(up.stdout.readline().strip())
        children = programs_under(kubeconfig.parents[1])
        up.send_signal(how)
        code = up.wait(60)
    assert len(children) == 2
    wait_gone(children)
    assert code == (-how if how == signal.SIGKILL else 0)
    assert kubeconfig.exists() == (how == signal.SIGKILL)  # then the next start removes it


@pytest.mark.parametrize(
    ("script", "want"), [("exit 3", 3), ("kill -TERM $$", 128 + 15), ('test -s "$KUBECONFIG" && kubectl get ns', 0)]
)
def test_run_returns_the_exit_code_of_its_command(script: str, want: int) -> None:
    command = [sys.executable, "-m", "devcluster", "run", "--bare", "--", "sh", "-c", script]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == want


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def programs_under(folder: Path) -> list[int]:
    """Return the processes whose command line names a file in `folder`."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if str(folder) in command_line(pid)]


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def wait_gone(pids: list[int]) -> None:
    """Wait for what the kernel does after the launcher has ended; a zombie, whose command line is empty, is gone."""
    wait_until(lambda: not any(map(command_line, pids)), "all programs gone", timeout=10, check=lambda: None)
