"""Scaling down many slices by name."""

from collections.abc import AsyncGenerator

from bench.manifests import TPU_HOSTS, ray_cluster
from bench.rows import Measurement
from bench.stage import Stage

# Longer than the row lasts: what is measured is how fast deletions are asked for.
TERMINATION = 600


async def delete_slices(stage: Stage) -> AsyncGenerator[Measurement, None]:
    """Name one host of every slice; time until the deletion of all hosts has been accepted, beside bare deletes."""
    bodies = await stage.warm_up()
    await stage.start_kubelet(TERMINATION)
    slices = stage.sizes.deleted_slices
    hosts = slices * TPU_HOSTS
    before = await _floor(stage, "before", bodies.floor("before", hosts, head=False))
    await stage.apply(ray_cluster("big", slices))
    await stage.until(lambda ledger: ledger.count("big") >= hosts + 1)
    await stage.all_running()
    await stage.quiet()
    uids = [pod.uid for pod in stage.pods.ledger.workers("big")]
    victims = [pods[0] for pods in stage.pods.ledger.slices("big").values()]
    start = await stage.scale_down("big", 0, victims)
    end = await stage.until(lambda ledger: ledger.all_lost(uids))
    await stage.quiet()
    after = await _floor(stage, "after", bodies.floor("after", hosts, head=False))
    yield Measurement("delete", end - start, (before, after), f"{len(uids)} pods of {len(victims)} slices")


async def _floor(stage: Stage, cluster: str, pods: list[dict[str, object]]) -> float:
    await stage.floor_creates(pods, keep=True)
    await stage.all_running()
    return await stage.floor_deletes(list(stage.pods.ledger.live[cluster].values()))
