"""The parts of the launcher that need no control plane."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml

from devcluster.__main__ import parser
from devcluster.crds import definitions
from devcluster.credentials import kubeconfig, write_tokens
from devcluster.daemons import Daemons
from devcluster.errors import DevclusterError, PortTakenError, StartError
from devcluster.kwok import STAGES
from devcluster.options import Options, User
from devcluster.pools import PoolSpec
from devcluster.ports import free_ports
from devcluster.scratch import claim, sweep
from devcluster.waiting import wait_until


def test_free_ports_are_different() -> None:
    assert len(set(free_ports(20))) == 20


def test_a_folder_is_swept_only_when_its_owner_is_gone(tmp_path: Path) -> None:
    held = claim(tmp_path)
    assert sweep(tmp_path) == []
    held.lock.close()
    assert sweep(tmp_path) == [held.path]
    assert not held.path.exists()


def test_starting_removes_what_a_dead_owner_left(tmp_path: Path) -> None:
    (left := tmp_path / "1-abc").mkdir()
    (left / "etcd").mkdir()
    claim(tmp_path).remove()
    assert [path.name for path in tmp_path.iterdir()] == [".starting"]


def test_tokens_are_written_with_their_groups(tmp_path: Path) -> None:
    tokens = write_tokens(tmp_path / "tokens", [User("a", ("g", "h")), User("b")])
    assert (tmp_path / "tokens").read_text().splitlines() == [f'{tokens["a"]},a,a,"g,h"', f"{tokens['b']},b,b,"]
    assert (tmp_path / "tokens").stat().st_mode & 0o077 == 0


def test_a_kubeconfig_needs_no_other_file() -> None:
    document = yaml.safe_load(yaml.safe_dump(kubeconfig("https://x:1", b"ca", "me", "secret")))
    assert document["clusters"][0]["cluster"]["certificate-authority-data"] == "Y2E="
    assert document["users"] == [{"name": "me", "user": {"token": "secret"}}]


def test_a_bare_plane_with_pools_is_a_contradiction() -> None:
    with pytest.raises(ValueError, match="bare"):
        Options(bare=True, pools=(PoolSpec("tpu-v6e-slice", "4x4"),))


def test_a_file_without_crds_is_an_error(tmp_path: Path) -> None:
    (file := tmp_path / "crd.yaml").write_text("# generated\n")
    with pytest.raises(DevclusterError, match="no CustomResourceDefinition"):
        definitions(file)


def test_stages_have_unique_names_and_a_selector() -> None:
    stages = list(yaml.safe_load_all(STAGES.read_text()))
    assert len({stage["metadata"]["name"] for stage in stages}) == len(stages)
    assert all(stage["spec"]["selector"]["matchExpressions"] for stage in stages)


def test_the_command_of_run_is_all_that_follows_the_dashes() -> None:
    options = parser().parse_args(["run", "--pool", "tpu-v6e-slice:4x4", "--", "sh", "--pool", "x"])
    assert options.command == ["--", "sh", "--pool", "x"]
    assert options.pool == [PoolSpec("tpu-v6e-slice", "4x4")]


def test_waiting_ends_with_what_was_waited_for() -> None:
    with pytest.raises(StartError, match="moon"):
        wait_until(lambda: False, "moon", timeout=0, check=lambda: None)


@pytest.mark.parametrize(
    ("complaint", "error"), [("bad flag", StartError), ("listen: address already in use", PortTakenError)]
)
def test_a_program_that_ends_is_reported_with_its_log(tmp_path: Path, complaint: str, error: type[StartError]) -> None:
    daemons = Daemons(home=tmp_path, logs=tmp_path)
    daemon = daemons.start("prog", ["/bin/sh", "-c", f"echo {complaint}; exit 3"])
    daemon.process.wait()
    with pytest.raises(error, match=rf"(?s)prog ended with code 3.*{complaint}") as caught:
        daemons.check()
    assert type(caught.value) is error
    daemons.close()


def test_a_program_that_will_not_end_is_killed(tmp_path: Path) -> None:
    daemons = Daemons(home=tmp_path, logs=tmp_path)
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
    daemon = daemons.start("deaf", [sys.executable, "-c", deaf])
    wait_until(lambda: "deaf" in daemon.log.read_text(), "deaf", timeout=30, check=daemons.check)
    daemons.stop(["deaf"], grace=0.05)
    assert daemon.process.returncode == -signal.SIGKILL
    daemons.close()


def test_programs_outlive_the_thread_that_asked_for_them(tmp_path: Path) -> None:
    daemons = Daemons(home=tmp_path, logs=tmp_path)
    thread = threading.Thread(target=daemons.start, args=("cat", ["/bin/sleep", "600"]))
    thread.start()
    thread.join()
    daemons.check()
    assert "cat" in daemons.pids()
    daemons.close()
    assert daemons.pids() == {}


def test_a_program_ends_when_its_starter_is_killed() -> None:
    starter = """
import os, signal, subprocess
from devcluster.daemons import mortal_command
command = mortal_command(["/bin/sh", "-c", "echo ready; exec sleep 600"])
process = subprocess.Popen(command, stdout=subprocess.PIPE)
process.stdout.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    # The program shares standard error, so the pipe is at its end only when the program is.
    command = [sys.executable, "-c", starter]
    done = subprocess.run(command, stderr=subprocess.PIPE, env=environment, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
