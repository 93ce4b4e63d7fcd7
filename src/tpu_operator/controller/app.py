"""Composition root: builds the process from its parts, and lives until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import platform
import random
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from tpu_operator import __version__
from tpu_operator.api import names
from tpu_operator.controller.caches import Caches
from tpu_operator.controller.clusters import Clusters, Key
from tpu_operator.controller.executor import RAYCLUSTERS, Executor
from tpu_operator.controller.handlers import build_registry, build_settings, kopf
from tpu_operator.controller.node_plugin import with_known_platform
from tpu_operator.controller.observer import Observer
from tpu_operator.controller.reconciler import Reconciler
from tpu_operator.controller.reporter import Reporter
from tpu_operator.errors import ApiError, Gone, InvalidInput, Unauthorized
from tpu_operator.kube.client import Client
from tpu_operator.kube.credentials import load_credentials
from tpu_operator.kube.events import EventSink
from tpu_operator.kube.limiter import FairLimiter
from tpu_operator.kube.queue import WorkQueue
from tpu_operator.planning.snapshot import ClusterFacts
from tpu_operator.resources.registry import CHILD_KINDS, child_kinds

if TYPE_CHECKING:
    from tpu_operator.config import OperatorConfig
    from tpu_operator.kube.credentials import Credentials

log = structlog.get_logger()

STOP_GRACE = 5.0
"""Seconds that passes under way get to end when the process is told to stop."""

FAREWELL = 0.25
"""Seconds that TLS connections, kopf's among them, get to close before the loop does, as aiohttp advises."""

LOOK_AGAIN = 1.0
"""Seconds between two looks whether RayClusters are served."""

LIST_AGAIN = 2.0
"""Seconds between two tries of the first list of RayClusters, as long as the CRD or the rights are missing."""


@dataclass(slots=True)
class App:
    """One operator process. Everything it needs is built here and handed on, nothing is looked up."""

    config: OperatorConfig
    client: Client
    credentials: Credentials
    clusters: Clusters = field(default_factory=Clusters)
    queue: WorkQueue[Key] = field(init=False)
    caches: Caches = field(init=False)
    events: EventSink = field(init=False)
    reconciler: Reconciler = field(init=False)
    known: asyncio.Event = field(default_factory=asyncio.Event)
    """It is known which APIs are served."""
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    """The caches of one namespace at least are filled and passes may start."""
    _filled: set[str | None] = field(default_factory=set)
    _parked: set[Key] = field(default_factory=set)
    """Keys whose namespace's caches are not filled."""
    _background: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue = WorkQueue(self._process, workers=self.config.concurrent_passes)
        self.caches = Caches(self.client, self.config, self.wake)
        self.events = EventSink(
            self.client,
            reporting_controller=names.REPORTING_CONTROLLER,
            reporting_instance=f"tpu-operator-{platform.node()}"[:128],
            namespace=self.credentials.namespace,
        )
        self.reconciler = Reconciler(
            client=self.client,
            clusters=self.clusters,
            caches=self.caches,
            observer=Observer(self.clusters, self.caches, self.config, ClusterFacts(), memories={}),
            executor=Executor(self.client, FairLimiter(self.config.create_parallelism), self.caches, self.config),
            reporter=Reporter(self.client, self.clusters, self.events, self.config),
            queue=self.queue,
            uids={},
        )

    async def _process(self, key: Key) -> None:
        if self._filled.isdisjoint((None, key.namespace)):
            self._parked.add(key)
        else:
            await self.reconciler.reconcile(key)

    def wake(self, key: Key) -> None:
        """Something about a child has changed: look soon, but let a huge cluster rest between two looks."""
        rest = self.reconciler.rest(key)
        if rest > 0:
            self.queue.add_after(key, rest)
        else:
            self.queue.add(key)

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set or the process gets SIGTERM or SIGINT."""
        clusterwide = not self.config.namespaces
        log.info("starting", version=__version__, namespaces=list(self.config.namespaces) or "all")
        self._spawn()

        async def wind_up() -> None:
            stop.set()  # kopf waits for its own waiter on this flag
            await self._wind_up()

        try:
            if await self._served(stop):
                await kopf.operator(
                    registry=build_registry(self.clusters, self.queue.add, self.credentials, wind_up),
                    settings=build_settings(clusterwide=clusterwide),
                    clusterwide=clusterwide,
                    namespaces=self.config.namespaces,
                    standalone=True,
                    stop_flag=stop,
                )
        finally:
            await self._wind_up()
            log.info("stopped")

    async def _served(self, stop: asyncio.Event) -> bool:
        """Wait until RayClusters are served: kopf looks for them at its start and, in namespaces, never again (KF-29).

        False if the process is to stop before that.
        """
        waits = {asyncio.create_task(self._until_served()), asyncio.create_task(stop.wait())}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        return not stop.is_set()

    async def _until_served(self) -> None:
        complaint = ""
        while (missing := await self._missing()) is not None:
            if missing != complaint:
                log.warning("waiting for the API", error=missing)
            complaint = missing
            await asyncio.sleep(LOOK_AGAIN)

    async def _missing(self) -> str | None:
        """Why RayClusters cannot be served yet. Everybody may ask an API server what it serves."""
        try:
            served = await self.client.raw("GET", f"/apis/{names.GROUP}/{names.VERSION}")
        except Gone:
            return f"{names.PLURAL}.{names.GROUP} are not known: install the CRD (`tpu-operator crd`)"
        except ApiError as error:
            return error.message
        return None if f'"{names.PLURAL}"'.encode() in served else f"{names.API_VERSION} has no {names.PLURAL}"

    def _spawn(self) -> None:
        works = {"caches": self._fill_caches(), "events": self.events.run()}
        for namespace in self.config.namespaces or (None,):
            works[f"relist {namespace}"] = self._relist(namespace)
            works[f"open {namespace}"] = self._open_when_filled(namespace)
        self._background = [asyncio.create_task(work, name=name) for name, work in works.items()]

    async def _fill_caches(self) -> None:
        """Watch the kinds of which the API is served, for as long as the process lives."""
        served = await self._served_apis()
        self.caches.serve(served)
        self.reconciler.observer.facts = ClusterFacts(served)
        self.known.set()
        await self.caches.run()

    async def _served_apis(self) -> frozenset[str] | None:
        """All group/versions; None if we may not know. An API that is installed later is found by the next process."""
        while True:
            try:
                answer = json.loads(await self.client.raw("GET", "/apis"))
            except Unauthorized:
                return None
            except ApiError:
                await asyncio.sleep(LOOK_AGAIN)
            else:
                versions = (v["groupVersion"] for group in answer["groups"] for v in group["versions"])
                return frozenset(versions) | {"v1"}

    async def _wind_up(self) -> None:
        """Let passes end and stop what runs beside kopf. As a handler of its own clean-up, for else it waits for all this."""
        await self.queue.stop(STOP_GRACE)
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self._background.clear()

    async def _open_when_filled(self, namespace: str | None) -> None:
        """No pass before every cache is filled: a pass on half a picture would create what is there already.

        Each namespace by itself, so that one without rights does not stop the others (AD-08).
        """
        await self.known.wait()
        await self.caches.filled(namespace)
        self._filled.add(namespace)
        self.queue.open()
        for key in [key for key in self._parked if namespace in (None, key.namespace)]:
            self._parked.discard(key)
            self.queue.add(key)
        self.opened.set()
        log.info(
            "caches are filled", namespace=namespace or "all", pods=len(self.caches.pods), clusters=len(self.clusters)
        )

    async def _relist(self, namespace: str | None) -> None:
        """List RayClusters at the start and now and then: kopf's watch can lose an event, a list cannot."""
        complaint = ""
        while True:
            pause = self.config.resync * random.uniform(0.9, 1.1)  # noqa: S311  (spreads load, hides nothing)
            try:
                listing = await self.client.list(RAYCLUSTERS, namespace)
            except ApiError as error:
                if error.message != complaint:
                    log.warning("cannot list RayClusters", namespace=namespace, error=error.message)
                complaint, pause = error.message, LIST_AGAIN
            else:
                complaint = ""
                raws = ({**raw, "kind": names.KIND, "apiVersion": names.API_VERSION} for raw in listing.items)
                for key in self.clusters.replace(raws, namespace, int(listing.resource_version)):
                    self.queue.add(key)
            await asyncio.sleep(pause)


async def refuse_missing_apis(client: Client, config: OperatorConfig) -> None:
    """InvalidInput if the configuration needs an API that this Kubernetes does not serve, e.g. that of a batch scheduler.

    Without such a configuration nothing is asked: the operator starts before the API server does.
    """
    for kind in set(child_kinds(config)) - set(CHILD_KINDS):
        group, _, version = kind.api_version.rpartition("/")
        try:
            await client.raw("GET", f"/apis/{group}/{version}")
        except Gone as error:
            text = f"the API {kind.api_version} is not served here, but batch_scheduler is {config.batch_scheduler}"
            raise InvalidInput(f"{text}; install that scheduler first, or unset it") from error


async def serve(config: OperatorConfig, stop: asyncio.Event | None = None) -> None:
    """Run an operator process with the credentials that are at hand: KUBECONFIG, or those of the pod."""
    stop = stop or asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):  # kopf puts its own in their place once it runs
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    credentials = await load_credentials()
    async with Client(credentials) as client:
        await refuse_missing_apis(client, config)
        with contextlib.suppress(asyncio.CancelledError):
            await App(await with_known_platform(config, client), client, credentials).run(stop)
    await asyncio.sleep(FAREWELL)
