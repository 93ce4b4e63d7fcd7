"""Does a large cluster make the small ones wait?"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence

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
    mark = stage.audit.mark()
    await stage.apply(ray_cluster("big", stage.sizes.big_slices))
    await stage.until(lambda ledger: ledger.count("big") >= BEGUN * pods)
    waits = []
    for number in range(stage.sizes.small_clusters):
        waits.append(asyncio.create_task(_first_pod(stage, f"small-{number}")))
        await asyncio.sleep(BETWEEN)
    had = stage.pods.ledger.count("big")
    applied, seconds = zip(*await asyncio.gather(*waits), strict=True)
    audited = _audited(stage.pods_created(mark), applied)
    note = f"the large one had {had} of {pods} pods when the last small one was applied"
    yield Measurement("fair-max", max(seconds), note=f"audit log: {max(audited):.2f} s; {note}" if audited else note)
    yield Measurement("fair-median", median(seconds), note=f"audit log: {median(audited):.2f} s" if audited else "")


async def _first_pod(stage: Stage, name: str) -> tuple[float, float]:
    now = time.time()
    sent = await stage.apply(ray_cluster(name, 1, hosts=1))
    await stage.until(lambda ledger: name in ledger.first)
    return now, stage.pods.ledger.first[name] - sent


def _audited(created: Sequence[tuple[str, float]], applied: Sequence[float]) -> list[float]:
    """Return the same seconds by the audit log; none if the operator lets the server name its pods."""
    first: dict[str, float] = {}
    for name, at in created:
        first.setdefault("-".join(name.split("-")[:2]), at)
    found = [(first.get(f"small-{number}"), now) for number, now in enumerate(applied)]
    return [at - now for at, now in found if at is not None]
