"""Many small clusters at once."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence, Sized

from bench.audit import summary, total
from bench.manifests import ray_cluster
from bench.rows import Measurement
from bench.stage import Stage

WORKERS = 3
APPLIES_IN_FLIGHT = 16


async def many_clusters(stage: Stage) -> AsyncGenerator[Measurement, None]:
    """Apply many clusters; time from the first apply to the last pod, and what was written."""
    await stage.warm_up()
    names = [f"small-{number}" for number in range(stage.sizes.clusters)]
    mark = stage.audit.mark()
    start = time.perf_counter()
    waiting = iter(names)
    await asyncio.gather(*(_apply_all(stage, waiting) for _ in range(APPLIES_IN_FLIGHT)))
    applied = time.perf_counter() - start
    end = await stage.until(lambda ledger: _all_there(ledger.live, names))
    await stage.quiet()
    found = stage.writes(mark)
    yield Measurement("clusters", end - start, note=f"the applies alone took {applied:.1f} s; {summary(found)}")
    events = total(found, resource="events", verbs=["create", "patch"])
    yield Measurement("clusters-events", events, note=f"of {found.total()} writes")


async def _apply_all(stage: Stage, names: Iterator[str]) -> None:
    for name in names:
        await stage.apply(ray_cluster(name, WORKERS, hosts=1))


def _all_there(live: Mapping[str, Sized], names: Sequence[str]) -> bool:
    # The last one first: it is most likely to be missing.
    return all(len(live.get(name, ())) > WORKERS for name in reversed(names))
