"""From one apply to many pods."""

import asyncio
import base64
import time
from collections.abc import AsyncGenerator

from bench.api import PODS
from bench.audit import summary
from bench.manifests import TPU_HOSTS, Bodies, floor_copy, ray_cluster
from bench.rows import Measurement
from bench.stage import Stage
from devcluster.certificates import write_certificates

WEBHOOK_DELAY = 0.02
WEBHOOK_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
HEAT = 128


async def create(stage: Stage) -> AsyncGenerator[Measurement, None]:
    """Time until all pods of a large cluster exist, beside a bare client, and the writes it took."""
    bodies = await stage.warm_up()
    mark = stage.audit.mark()
    yield await _create("create", stage, bodies)
    found = stage.writes(mark)
    yield Measurement("create-writes", found.total(), note=summary(found))


async def create_behind_webhook(stage: Stage) -> AsyncGenerator[Measurement, None]:
    """Do the same while each create of a pod has to pass a slow admission webhook."""
    bodies = await stage.warm_up()
    await _register_webhook(stage, bodies)
    yield await _create("create-webhook", stage, bodies)


async def _create(row: str, stage: Stage, bodies: Bodies) -> Measurement:
    slices = stage.sizes.slices
    pods = slices * TPU_HOSTS + 1
    # A fresh API server is slow at first, which would make the first floor too high.
    await stage.floor_creates(bodies.floor("heat", HEAT))
    before = await stage.floor_creates(bodies.floor("before", pods - 1))
    mark, now = stage.audit.mark(), time.time()
    start = await stage.apply(ray_cluster("big", slices))
    end = await stage.until(lambda ledger: ledger.count("big") >= pods)
    await stage.quiet()
    audited = stage.pods_created(mark)[-1][1] - now
    extra = stage.pods.ledger.count("big") - pods
    await stage.remove("big")
    await stage.quiet()
    after = await stage.floor_creates(bodies.floor("after", pods - 1))
    return Measurement(
        row, end - start, (before, after), f"audit log: {audited:.2f} s" + (f"; {extra} pods too many" if extra else "")
    )


async def _register_webhook(stage: Stage, bodies: Bodies) -> None:
    folder = stage.folder / "webhook"
    folder.mkdir()
    certificates = write_certificates(folder)
    child = await stage.helper(
        "webhook", [str(certificates.serving), str(certificates.serving_key), str(WEBHOOK_DELAY)]
    )
    port = child.greeting.split()[1]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    webhook = {
        "name": "late.bench.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {
            "url": f"https://127.0.0.1:{port}/",
            "caBundle": base64.b64encode(certificates.ca.read_bytes()).decode(),
        },
        "rules": [rule],
    }
    body = {"metadata": {"name": "late.bench.example.com"}, "webhooks": [webhook]}
    await stage.api.call("POST", WEBHOOK_CONFIGURATIONS, body)
    await _webhook_in_force(stage, bodies)


async def _webhook_in_force(stage: Stage, bodies: Bodies) -> None:
    """Wait until the API server has noticed the webhook: a create that is only tried takes as long as it should."""
    for _ in range(3):
        elapsed = 0.0
        while elapsed < WEBHOOK_DELAY:
            start = time.perf_counter()
            await stage.api.call("POST", f"{PODS}?dryRun=All", floor_copy(bodies.worker, "dry", 0))
            elapsed = time.perf_counter() - start
            await asyncio.sleep(WEBHOOK_DELAY)
