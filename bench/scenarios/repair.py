"""One host of a slice is lost: how long until the slice is whole again?"""

import asyncio
import time
from collections.abc import AsyncGenerator

from bench.api import MERGE_PATCH, PODS
from bench.ledger import Pod
from bench.manifests import TPU_HOSTS, ray_cluster
from bench.rows import Measurement
from bench.stage import Stage

TERMINATION = 5


async def host_failed(stage: Stage) -> AsyncGenerator[Measurement, None]:
    """Let a host fail in each of half the slices; time until all slices are whole."""
    victims = await _running(stage)
    slices = stage.sizes.repaired_slices
    broken = {pod.uid for pod in victims}
    start = time.perf_counter()
    await asyncio.gather(*(_fail(stage, pod) for pod in victims))
    end = await stage.until(lambda ledger: ledger.whole("big", TPU_HOSTS, broken) == slices)
    yield Measurement("failed", end - start)


async def host_deleted(stage: Stage) -> AsyncGenerator[Measurement, None]:
    """Delete a host in each of half the slices; time until its mates are deleted, and until all slices are whole."""
    victims = await _running(stage)
    slices = stage.sizes.repaired_slices
    lost = {pod.slice for pod in victims}
    mates = [pod.uid for pod in stage.pods.ledger.workers("big") if pod.slice in lost and pod not in victims]
    start = time.perf_counter()
    await asyncio.gather(*(stage.api.call("DELETE", f"{PODS}/{pod.name}") for pod in victims))
    end = await stage.until(lambda ledger: ledger.all_lost(mates))
    yield Measurement("deleted-mates", end - start, note=f"{len(mates)} mates")
    end = await stage.until(lambda ledger: ledger.whole("big", TPU_HOSTS) == slices)
    yield Measurement("deleted-whole", end - start)


async def _running(stage: Stage) -> list[Pod]:
    """Make the slices, and return one host of every second: what is to be lost."""
    await stage.start_kubelet(TERMINATION)
    slices = stage.sizes.repaired_slices
    await stage.apply(ray_cluster("big", slices, termination=TERMINATION))
    await stage.until(lambda ledger: ledger.count("big") >= slices * TPU_HOSTS + 1)
    await stage.all_running()
    await stage.quiet()
    return [pods[1] for pods in list(stage.pods.ledger.slices("big").values())[::2]]


async def _fail(stage: Stage, pod: Pod) -> None:
    status = {"status": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}}
    await stage.api.call("PATCH", f"{PODS}/{pod.name}/status", status, content=MERGE_PATCH)
