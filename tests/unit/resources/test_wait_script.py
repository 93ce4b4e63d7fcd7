"""The script of wait-gcs-ready, run by bash with a `ray` of our own."""

from __future__ import annotations

import socket
import subprocess

from some_cluster import cluster, container, group, worker_of


def run(port: int, ray: str) -> subprocess.CompletedProcess[str]:
    own = cluster(group(), head={"rayStartParams": {"port": str(port)}})
    waits = container(worker_of(own), "wait-gcs-ready")
    script = waits["args"][0].replace("demo-head-svc.ns.svc.cluster.local", "127.0.0.1")
    command = [*waits["command"], f"ray() {{ {ray}; }}\nsleep() {{ :; }}\n{script}"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)


def test_it_ends_when_the_gcs_is_healthy():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = run(port, 'echo "$*" >&2')
    assert "ready" in done.stdout
    assert not done.stderr  # for the first two minutes Ray's complaints would only alarm


def test_it_goes_on_while_the_gcs_is_not_healthy():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = run(port, 'tries=$((tries + 1)); echo "$tries" > /dev/null; [ "$tries" -ge 3 ]')
    assert "ready" in done.stdout


def test_a_port_that_bash_cannot_reach_still_leaves_the_word_to_ray():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert "ready" in run(port, "true").stdout
