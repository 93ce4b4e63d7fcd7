"""kopf: RayCluster events become keys. Nothing is decided here."""

from __future__ import annotations

import dataclasses
from itertools import chain, repeat
from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.lean import without

__all__ = ["build_registry", "build_settings", "kopf"]

with without("pykube", "pykube.objects", "kubernetes.client", "kubernetes_asyncio", "kubernetes_asyncio.client"):
    import kopf

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from tpu_operator.api.json import JsonObject
    from tpu_operator.controller.caches import Wake
    from tpu_operator.controller.clusters import Clusters
    from tpu_operator.kube.credentials import Credentials


def build_registry(
    clusters: Clusters, wake: Wake, credentials: Credentials, on_cleanup: Callable[[], Awaitable[None]]
) -> kopf.OperatorRegistry:
    """The operator's handlers: raw events only, so that kopf writes nothing to anybody's object."""
    registry = kopf.OperatorRegistry()

    async def login(**_: object) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(**dataclasses.asdict(await credentials.connection()))

    async def event(event: kopf.RawEvent, **_: object) -> None:
        raw: JsonObject = event["object"]  # type: ignore[assignment]  # kopf types the body more loosely
        key = clusters.remove(raw) if event["type"] == "DELETED" else clusters.put(raw)
        if key is not None:
            wake(key)

    async def cleanup(**_: object) -> None:
        await on_cleanup()

    kopf.on.cleanup(registry=registry)(cleanup)
    kopf.on.login(registry=registry)(login)
    kopf.on.event(names.GROUP, names.VERSION, names.PLURAL, registry=registry)(event)
    return registry


class Pauses:
    """Seconds between kopf's tries of a request, without end.

    After eight tries, a minute, it would end the whole process because of one namespace that is closed to us (AD-08).
    """

    def __iter__(self) -> Iterator[float]:
        return chain((0.5, 1.0, 2.0, 4.0, 8.0), repeat(15.0))


def build_settings(*, clusterwide: bool) -> kopf.OperatorSettings:
    """Settings of kopf without peering, postings, progress or finalizers; its scan of the cluster only where it may look."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = not clusterwide
    settings.watching.server_timeout = 290
    settings.networking.error_backoffs = Pauses()
    settings.queueing.exit_timeout = 1.0
    settings.queueing.idle_timeout = 0.5  # its workers outlive a stop by that long
    settings.process.ultimate_exiting_timeout = 10.0
    return settings
