"""A test bed: the operator in this process, against a real API server, in a namespace of its own.

A bare API server has no scheduler and no kubelet; where a test needs what they do, the bed plays it.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Thread
from typing import Any

from devcluster.plane import ControlPlane
from tpu_operator.api import names
from tpu_operator.config import OperatorConfig
from tpu_operator.controller.app import App
from tpu_operator.controller.executor import RAYCLUSTERS
from tpu_operator.errors import ApiError, Conflict, Gone
from tpu_operator.kube.client import Client, Observer
from tpu_operator.kube.credentials import Credentials, load_credentials
from tpu_operator.kube.resource import EVENTS, PODS, Resource

Json = dict[str, Any]

SECONDS = 15.0


def pod_template(chips: int = 0, **spec: object) -> Json:
    resources: Json = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}
    if chips:
        for kind in resources.values():
            kind["google.com/tpu"] = str(chips)
    return {"spec": {"containers": [{"name": "ray", "image": "ray:test", "resources": resources}], **spec}}


def group(name: str = "g", replicas: int | None = 1, hosts: int = 1, **fields: object) -> Json:
    spec: Json = {"groupName": name, "numOfHosts": hosts, "template": pod_template(), **fields}
    if replicas is not None:
        spec["replicas"] = replicas
    return spec


def raycluster(name: str, *groups: Json, **spec: object) -> Json:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name},
        "spec": {
            "rayVersion": "2.60.0",
            "headGroupSpec": {"rayStartParams": {}, "template": pod_template()},
            "workerGroupSpecs": list(groups),
            **spec,
        },
    }


def name_of(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def uid_of(obj: Json) -> str:
    return str(obj["metadata"]["uid"])


def label(obj: Json, key: str) -> str:
    return str(obj["metadata"].get("labels", {}).get(key, ""))


def slot(pod: Json) -> tuple[str, str, str]:
    """Group, replica index, host index."""
    return (label(pod, names.NODE_GROUP), label(pod, names.REPLICA_INDEX), label(pod, names.HOST_INDEX) or "0")


def alive(pod: Json) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


def workers(pods: Iterable[Json]) -> list[Json]:
    return [p for p in pods if label(p, names.NODE_TYPE) == names.WORKER]


def condition(cluster: Json, kind: str) -> Json:
    found = [c for c in cluster.get("status", {}).get("conditions", []) if c["type"] == kind]
    return found[0] if found else {}


@dataclass
class Bed:
    """What a test uses: `client` acts as the user, `process` is the operator, `calls` counts its requests."""

    client: Client
    namespace: str
    new_process: Callable[[], Process]
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    process: Process | None = None

    # -- the operator's process ----------------------------------------------------------------------------------------

    @property
    def app(self) -> App:
        """The operator; it runs in another thread: for looking only."""
        assert self.process is not None
        return self.process.app

    async def start(self, *, wait: bool = True) -> None:
        """Start an operator that remembers nothing; `wait` until it acts."""
        self.process = self.new_process()
        await self.process.start(wait=wait)

    async def stop(self, seconds: float = SECONDS) -> None:
        """End the operator in good order, if there is one."""
        process, self.process = self.process, None
        if process is not None:
            await process.stop(seconds)

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def made(self, plural: str = "pods") -> int:
        """How many creates the operator has sent."""
        return self.calls["create", plural]

    def killed(self, plural: str = "pods") -> int:
        """How many deletes the operator has sent."""
        return self.calls["delete", plural]

    # -- the user ------------------------------------------------------------------------------------------------------

    async def create(self, cluster: Json) -> Json:
        return await self.client.create(RAYCLUSTERS, self.namespace, cluster)

    async def edit(self, name: str, *operations: Json) -> Json:
        """A JSON patch, the autoscaler's way: no test, no resourceVersion."""
        return await self.client.patch(RAYCLUSTERS, self.namespace, name, list(operations))

    async def scale(self, name: str, replicas: int, to_delete: Iterable[str] = (), index: int = 0) -> None:
        path = f"/spec/workerGroupSpecs/{index}"
        await self.edit(
            name,
            {"op": "add", "path": f"{path}/replicas", "value": replicas},
            {"op": "add", "path": f"{path}/scaleStrategy", "value": {"workersToDelete": list(to_delete)}},
        )

    async def annotate(self, name: str, **annotations: str) -> None:
        """Change an annotation: something new about the object that concerns nobody."""
        await self.client.patch(RAYCLUSTERS, self.namespace, name, {"metadata": {"annotations": annotations}})

    async def patch(self, name: str, **spec: object) -> Json:
        """A merge patch of the spec."""
        return await self.client.patch(RAYCLUSTERS, self.namespace, name, {"spec": spec})

    async def delete_cluster(self, name: str, propagation: str = "Background") -> None:
        await self.client.delete(RAYCLUSTERS, self.namespace, name, propagation=propagation)

    async def cluster(self, name: str) -> Json:
        return await self.client.get(RAYCLUSTERS, self.namespace, name)

    # -- looking -------------------------------------------------------------------------------------------------------

    async def pods(self, cluster: str | None = None) -> list[Json]:
        selector = f"{names.CLUSTER}={cluster}" if cluster else None
        return (await self.client.list(PODS, self.namespace, label_selector=selector)).items

    async def workers(self, cluster: str | None = None) -> list[Json]:
        return workers(await self.pods(cluster))

    async def head(self, cluster: str | None = None) -> Json:
        """The one live head."""
        (found,) = [p for p in await self.pods(cluster) if label(p, names.NODE_TYPE) == names.HEAD and alive(p)]
        return found

    async def until_live(self, count: int, cluster: str | None = None, seconds: float = SECONDS) -> list[Json]:
        """Wait until `count` pods are alive, the head included; give these."""
        pods = await self.until(f"{count} live pods", lambda pods: sum(map(alive, pods)) == count, cluster, seconds)
        return [pod for pod in pods if alive(pod)]

    async def warnings(self, reason: str) -> list[str]:
        """Texts of the Events of that reason."""
        return [str(e["note"]) for e in await self.events() if e["reason"] == reason]

    async def events(self) -> list[Json]:
        return (await self.client.list(EVENTS, self.namespace)).items

    async def all_of(self, resource: Resource) -> list[Json]:
        return (await self.client.list(resource, self.namespace)).items

    async def until(
        self, what: str, true: Callable[[list[Json]], object], cluster: str | None = None, seconds: float = SECONDS
    ) -> list[Json]:
        """Look at the pods until `true` holds."""
        return await self._until(what, lambda: self.pods(cluster), true, seconds)

    async def until_cluster(
        self, name: str, what: str, true: Callable[[Json], object], seconds: float = SECONDS
    ) -> Json:
        """Look at a RayCluster until `true` holds."""
        return await self._until(what, lambda: self.cluster(name), true, seconds)

    async def until_events(
        self, what: str, true: Callable[[list[Json]], object], seconds: float = SECONDS
    ) -> list[Json]:
        return await self._until(what, self.events, true, seconds)

    async def until_true(self, what: str, true: Callable[[], object], seconds: float = SECONDS) -> None:
        """Wait for something in this process, such as what the operator remembers."""

        async def look() -> dict[str, Any]:
            return {}

        await self._until(what, look, lambda _: true(), seconds)

    async def until_async(
        self, what: str, look: Callable[[], Awaitable[Any]], true: Callable[[Any], object], seconds: float = SECONDS
    ) -> Any:
        """Look at anything until `true` holds."""
        return await self._until(what, look, true, seconds)

    async def watch_for(self, seconds: float) -> None:
        """Let time pass: for what must not happen."""
        await asyncio.sleep(seconds)

    def at(self, namespace: str) -> Bed:
        """The same operator, looked at in another of its namespaces."""
        return replace(self, namespace=namespace)

    async def _until(self, what: str, look: Callable[[], Any], true: Callable[[Any], object], seconds: float) -> Any:
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            seen = await look()
            if true(seen):
                return seen
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(f"not within {seconds} s: {what}; seen: {_brief(seen)}")
            await asyncio.sleep(0.03)

    async def settled(self, quiet: float = 0.6) -> None:
        """The operator has nothing left to do: no write of it for `quiet` seconds."""
        loop = asyncio.get_running_loop()
        last, since = self.writes(), loop.time()
        while loop.time() - since < quiet:
            await asyncio.sleep(0.05)
            if self.writes() != last:
                last, since = self.writes(), loop.time()

    def writes(self) -> Counter[tuple[str, str]]:
        """Requests of the operator that write, by verb and plural; Events aside."""
        return Counter(
            {k: n for k, n in self.calls.items() if k[0] not in ("get", "list", "watch") and k[1] != "events"}
        )

    # -- scheduler and kubelet -----------------------------------------------------------------------------------------

    async def bind(self, pod: Json, node: str = "node") -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name_of(pod)},
            "target": {"kind": "Node", "name": node},
        }
        with suppress(Conflict):
            await self.client.raw(
                "POST",
                f"/api/v1/namespaces/{self.namespace}/pods/{name_of(pod)}/binding",
                body=json.dumps(body).encode(),
            )

    async def status(self, pod: Json, **status: object) -> None:
        await self.client.patch(PODS, self.namespace, name_of(pod), {"status": status}, subresource="status")

    async def make_ready(self, pods: Iterable[Json]) -> None:
        """Bind and start pods."""
        for pod in pods:
            if alive(pod) and pod["status"].get("phase") == "Pending":
                await self.bind(pod)
                await self.status(
                    pod,
                    phase="Running",
                    podIP="10.1.2.3",
                    conditions=[{"type": "Ready", "status": "True"}],
                    containerStatuses=[_running(c["name"]) for c in pod["spec"]["containers"]],
                )

    async def all_ready(self, cluster: str, count: int) -> list[Json]:
        """Wait for `count` live pods and make all of them ready."""
        found = await self.until(f"{count} pods", lambda pods: sum(map(alive, pods)) == count, cluster)
        await self.make_ready(found)
        return await self.until(
            f"{count} ready pods",
            lambda pods: sum(p["status"].get("phase") == "Running" for p in pods) == count,
            cluster,
        )

    async def fail(self, pod: Json, reason: str = "Error") -> None:
        await self.status(pod, phase="Failed", reason=reason)

    async def delete_pod(self, pod: Json, grace: int | None = None) -> None:
        with suppress(Gone):
            await self.client.delete(PODS, self.namespace, name_of(pod), grace_seconds=grace)

    @asynccontextmanager
    async def kubelet(self) -> AsyncIterator[None]:
        """Start every pod and end every terminating one, for as long as the block lasts."""

        async def play() -> None:
            while True:
                with suppress(ApiError):
                    await self.make_ready(await self.pods())
                    await self.end_terminating()
                await asyncio.sleep(0.05)

        task = asyncio.create_task(play())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def end_terminating(self) -> None:
        """What a kubelet does at the end of the grace period."""
        for pod in await self.pods():
            if not alive(pod):
                await self.delete_pod(pod, grace=0)


def _running(container: str) -> Json:
    return {
        "name": container,
        "ready": True,
        "started": True,
        "image": "",
        "imageID": "",
        "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
    }


def _brief(seen: Any) -> str:
    if isinstance(seen, list) and all(isinstance(p, dict) for p in seen):
        return "; ".join(
            f"{name_of(p)} {p.get('status', {}).get('phase', '')} {'' if alive(p) else 'terminating'}" for p in seen
        )
    return json.dumps(seen.get("status", seen) if isinstance(seen, dict) else seen)[:2000]


class Process:
    """The operator in a thread and event loop of its own.

    kopf takes every task of its loop that is younger than itself for its own and waits for it when it stops, so the
    test's tasks must not run there.
    """

    def __init__(self, config: OperatorConfig, load: Callable[[], Awaitable[Credentials]], observer: Observer) -> None:
        self._config = config
        self._load = load
        self._observer = observer
        self.app: App
        self._built: Future[None] = Future()
        self._opened: Future[None] = Future()
        self._thread = Thread(target=self._main, name="operator", daemon=True)

    async def start(self, *, wait: bool) -> None:
        self._thread.start()
        await asyncio.wait_for(asyncio.wrap_future(self._opened if wait else self._built), SECONDS)

    async def stop(self, seconds: float = SECONDS) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        await asyncio.to_thread(self._thread.join, seconds)
        assert not self._thread.is_alive(), f"the operator did not stop within {seconds} s"

    def _main(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._run())

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        credentials = await self._load()
        async with Client(credentials, observer=self._observer) as client:
            self.app = App(self._config, client, credentials)
            self._built.set_result(None)
            telling = asyncio.create_task(self._tell())
            await self.app.run(self._stop)
            telling.cancel()
        await asyncio.sleep(0.05)  # TLS connections say farewell

    async def _tell(self) -> None:
        await self.app.opened.wait()
        self._opened.set_result(None)


@asynccontextmanager
async def bed(
    plane: ControlPlane,
    namespace: str,
    *,
    server: str | None = None,
    also: Iterable[str] = (),
    running: bool = True,
    wait: bool = True,
    **settings: object,
) -> AsyncIterator[Bed]:
    """A bed in `namespace`; `settings` are fields of OperatorConfig.

    `server`: where the operator finds the API server. `also`: further namespaces it serves. With `running` off there
    is no operator until `start`; without `wait` it may not act yet.
    """
    calls: Counter[tuple[str, str]] = Counter()
    config = OperatorConfig(namespaces=(namespace, *also), **settings)  # type: ignore[arg-type]

    def count(verb: str, resource: Resource, status: int, seconds: float) -> None:
        calls[verb, resource.plural] += 1

    async def load() -> Credentials:
        credentials = await load_credentials(str(plane.kubeconfig))
        if server is not None:
            credentials.server, credentials.ssl_context = server, None
        return credentials

    async with Client(await load_credentials(str(plane.kubeconfig))) as user:
        made = Bed(user, namespace, lambda: Process(config, load, count), calls)
        if running:
            await made.start(wait=wait)
        try:
            yield made
        finally:
            await made.stop()
