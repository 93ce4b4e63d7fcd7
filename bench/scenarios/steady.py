"""A large cluster that is up: what it costs to watch over it, and to begin again."""

import asyncio
import time
from collections.abc import AsyncGenerator

from bench.audit import summary
from bench.manifests import TPU_HOSTS, ray_cluster
from bench.rows import Measurement
from bench.stage import Stage

# Longer than the rows last.
TERMINATION = 600


async def ready_idle_restart(stage: Stage) -> AsyncGenerator[Measurement, None]:
    """Memory and CPU once all pods are ready, CPU and writes while nothing happens, and a restart."""
    slices = stage.sizes.big_slices
    await _ready(stage, slices)
    assert stage.operator is not None, "a stage is opened with an operator"
    usage = stage.operator.usage()
    yield Measurement("ready-memory", usage.memory)
    yield Measurement("ready-cpu", usage.cpu)
    mark = stage.audit.mark()
    usage = stage.operator.usage()
    await asyncio.sleep(stage.sizes.idle_seconds)
    yield Measurement("idle-cpu", stage.operator.usage().cpu - usage.cpu)
    found = stage.writes(mark)
    yield Measurement("idle-writes", found.total(), note=summary(found))
    yield await _restart("restart", stage, slices)


async def restart_huge(stage: Stage) -> AsyncGenerator[Measurement, None]:
    """Restart beside five times as many pods."""
    await _ready(stage, stage.sizes.huge_slices)
    yield await _restart("restart-10000", stage, stage.sizes.huge_slices)


async def _ready(stage: Stage, slices: int) -> None:
    await stage.start_kubelet(TERMINATION)
    pods = slices * TPU_HOSTS + 1
    await stage.apply(ray_cluster("big", slices))
    await stage.until(lambda ledger: ledger.count("big") >= pods)
    await stage.all_running()
    await stage.quiet()


async def _restart(row: str, stage: Stage, slices: int) -> Measurement:
    """End the operator as a crash would, name a slice to delete while it is down, and start it again."""
    assert stage.operator is not None, "a stage is opened with an operator"
    await stage.operator.kill()
    victims = stage.pods.ledger.slices("big")
    doomed = next(iter(victims.values()))
    uids = [pod.uid for pod in doomed]
    await stage.scale_down("big", slices - 1, doomed[:1])
    start = time.perf_counter()
    await stage.start_operator()
    end = await stage.until(lambda ledger: any(uid in ledger.lost for uid in uids))
    await stage.quiet()
    strangers = len(stage.pods.ledger.lost.keys() - uids)
    return Measurement(row, end - start, note=f"{strangers} other pods deleted" if strangers else "")
