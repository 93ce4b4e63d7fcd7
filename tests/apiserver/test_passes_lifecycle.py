"""The program as it is installed: started, killed, stopped, asked for a plan (cases OP, KF)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from proxy import Proxy, everything, watches, writes

from bed import Bed, bed, group, label, raycluster, workers
from devcluster.options import Options
from devcluster.plane import ControlPlane
from tpu_operator.api import names

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Iterator

    from devcluster.pytest_plugin import NamespaceFactory

pytestmark = pytest.mark.apiserver

CRD = Path(__file__).parents[2] / "crds" / "ray.io_rayclusters.yaml"
COMMAND = (sys.executable, "-m", "tpu_operator.cli")


@pytest.fixture
async def user(apiserver: ControlPlane, namespace: NamespaceFactory) -> AsyncIterator[Bed]:
    """A namespace without an operator."""
    async with bed(apiserver, namespace(apiserver), running=False) as made:
        yield made


@asynccontextmanager
async def program(kubeconfig: Path, log: Path, *args: str) -> AsyncIterator[Process]:
    """`tpu-operator` with these arguments; killed at the end if it still runs."""
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(*COMMAND, *args, env=environment, stdout=out, stderr=out)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def ready(cluster: dict[str, Any]) -> bool:
    return cluster.get("status", {}).get("state") == "ready"


async def test_the_program_serves_and_stops_at_once_when_it_is_told_to(
    user: Bed, apiserver: ControlPlane, tmp_path: Path
) -> None:
    """KF-27, the easy case: exit code 0 within three seconds."""
    log = tmp_path / "log"
    async with program(apiserver.kubeconfig, log, "run", "--namespace", user.namespace) as process:
        await user.create(raycluster("demo", group("g", 2)))
        await user.all_ready("demo", 3)
        await user.until_cluster("demo", "ready", ready)
        process.send_signal(signal.SIGTERM)
        code = await asyncio.wait_for(process.wait(), 3)
    assert code == 0, log.read_text()
    assert "Traceback" not in log.read_text()


async def test_the_program_stops_at_once_before_it_has_begun(user: Bed, proxy: Proxy, tmp_path: Path) -> None:
    """SIGTERM while the API server cannot be reached."""
    proxy.cut(everything, times=10**6)
    kubeconfig = proxy.write_kubeconfig(tmp_path / "kubeconfig")
    async with program(kubeconfig, tmp_path / "log", "run", "--namespace", user.namespace) as process:
        await proxy.until(lambda: proxy.count(everything) >= 3)
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), 4)


async def test_a_program_that_is_killed_in_the_middle_goes_on_where_it_was(
    user: Bed, proxy: Proxy, tmp_path: Path
) -> None:
    """OP-01: kill -9 after some of a hundred creates, some of them under way; exactly a hundred in the end."""
    proxy.delay(writes("pods", "POST"), 0.02)
    kubeconfig = proxy.write_kubeconfig(tmp_path / "kubeconfig")
    await user.create(raycluster("demo", group("g", 25, 4)))
    arguments = ("run", "--namespace", user.namespace)
    async with program(kubeconfig, tmp_path / "log", *arguments) as process:
        await proxy.until(lambda: proxy.count(writes("pods", "POST")) >= 37)
        process.kill()
        await process.wait()
    async with program(kubeconfig, tmp_path / "log", *arguments) as process:
        pods = await user.until_live(101, seconds=20)
        process.send_signal(signal.SIGTERM)
        await process.wait()
    slots = {(label(p, names.REPLICA_INDEX), label(p, names.HOST_INDEX)) for p in workers(pods)}
    assert len(slots) == 100
    assert proxy.count(writes("pods", "DELETE")) == 0
    assert len(await user.pods()) == 101


async def test_a_plan_for_a_converged_cluster_is_nothing_to_do(
    user: Bed, apiserver: ControlPlane, tmp_path: Path
) -> None:
    manifest = tmp_path / "demo.yaml"
    spec = raycluster("demo", group("g", 2, 2))
    spec["metadata"]["namespace"] = user.namespace
    manifest.write_text(yaml.safe_dump(spec))
    await user.start()
    await user.create(spec)
    await user.all_ready("demo", 5)
    await user.until_cluster("demo", "ready", ready)
    await user.stop()
    log = tmp_path / "out"
    async with program(apiserver.kubeconfig, log, "plan", "-f", str(manifest), "--server") as process:
        assert await process.wait() == 0, log.read_text()
    assert "nothing to do" in log.read_text()
    spec["spec"]["workerGroupSpecs"][0]["replicas"] = 3
    manifest.write_text(yaml.safe_dump(spec))
    async with program(apiserver.kubeconfig, log, "plan", "-f", str(manifest), "--server") as process:
        assert await process.wait() == 0
    assert "create slice g-2: 2 of 2 hosts" in log.read_text()


async def test_an_operator_whose_requests_hang_stops_all_the_same(
    proxied: Bed, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KF-27."""
    monkeypatch.setattr("tpu_operator.controller.app.STOP_GRACE", 0.2)
    await proxied.create(raycluster("demo", group("g", 0)))
    await proxied.until_live(1)
    await proxied.settled()
    proxy.delay(writes("pods", "POST"), 60)
    await proxied.scale("demo", 50)
    await proxy.until(lambda: proxy.count(writes("pods", "POST")) >= 2)
    begun = asyncio.get_running_loop().time()
    await proxied.stop(seconds=5)
    assert asyncio.get_running_loop().time() - begun < 3


async def test_an_operator_whose_watches_are_dead_stops_all_the_same(proxied: Bed, proxy: Proxy) -> None:
    await proxy.until(lambda: any(watches("rayclusters")(stream.seen) for stream in proxy.streams))
    proxy.hold_events(watches("pods"))
    proxy.hold_events(watches("rayclusters"))
    await proxied.stop(seconds=5)


@pytest.fixture(scope="module")
def bare() -> Iterator[ControlPlane]:
    """An API server that has never heard of RayClusters."""
    with ControlPlane.start(Options(bare=True)) as plane:
        yield plane


async def test_a_crd_that_comes_after_the_operator_is_served(bare: ControlPlane, namespace: NamespaceFactory) -> None:
    """KF-29; and it is really watched, not only listed once."""
    async with bed(bare, namespace(bare), wait=False, status_interval=0.1) as b:
        await b.until_true("it has looked", lambda: b.calls["list", "rayclusters"] > 0)
        await asyncio.to_thread(bare.install_crds, CRD)
        await b.create(raycluster("demo", group("g", 1)))
        await b.until_live(2, seconds=20)
        for replicas in (2, 3):
            await b.scale("demo", replicas)
            await b.until_live(1 + replicas, seconds=5)


async def test_a_program_whose_crd_goes_ends_with_an_error_so_that_it_is_started_again(
    bare: ControlPlane, namespace: NamespaceFactory, tmp_path: Path
) -> None:
    """KF-05: no zombie that watches nothing. What waits for the CRD is the next process."""
    await asyncio.to_thread(bare.install_crds, CRD)
    async with bed(bare, namespace(bare), running=False) as b:
        log = tmp_path / "log"
        async with program(bare.kubeconfig, log, "run", "--namespace", b.namespace) as process:
            await b.create(raycluster("demo", group("g", 1)))
            await b.until_live(2)
            await asyncio.to_thread(bare.kubectl, "delete", "crd", "rayclusters.ray.io", "--wait=true")
            assert await asyncio.wait_for(process.wait(), 20) > 0, log.read_text()
