"""Does a large cluster make the small ones wait?"""

import asyncio
from collections.abc import AsyncGenerator

from bench.manifests import TPU_HOSTS, ray_cluster
from bench.rows import Measurement
from bench.stage import Stage
from bench.stats import median

BEGUN = 0.1
BETWEEN = 0.1


async def small_beside_big(stage: Stage) -> AsyncGenerator[Measurement, None]:
    """Apply small clusters while a large one is being made; time from each apply to the first pod of its cluster."""
    await stage.warm_up()
    pods = stage.sizes.big_slices * TPU_HOSTS + 1
    await stage.apply(ray_cluster("big", stage.sizes.big_slices))
    await stage.until(lambda ledger: ledger.count("big") >= BEGUN * pods)
    waits = []
    for number in range(stage.sizes.small_clusters):
        waits.append(asyncio.create_task(_first_pod(stage, f"small-{number}")))
        await asyncio.sleep(BETWEEN)
    had = stage.pods.ledger.count("big")
    seconds = await asyncio.gather(*waits)
    note = f"the large one had {had} of {pods} pods when the last small one was applied"
    yield Measurement("fair-max", max(seconds), note=note)
    yield Measurement("fair-median", median(seconds))


async def _first_pod(stage: Stage, name: str) -> float:
    sent = await stage.apply(ray_cluster(name, 1, hosts=1))
    await stage.until(lambda ledger: name in ledger.first)
    return stage.pods.ledger.first[name] - sent
