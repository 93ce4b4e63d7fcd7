"""The informer against a real API server, with a proxy between them that loses, holds back and expires streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import Struct
from proxy import Proxy, reads, watches

from tpu_operator.kube.client import Client
from tpu_operator.kube.credentials import load_credentials
from tpu_operator.kube.informer import Informer
from tpu_operator.kube.resource import PODS

if TYPE_CHECKING:
    from pathlib import Path

    from devcluster.plane import ControlPlane

pytestmark = pytest.mark.apiserver

PATIENCE = 20.0
EXPIRED = {
    "type": "ERROR",
    "object": {
        "kind": "Status",
        "code": 410,
        "reason": "Expired",
        "message": "too old resource version",
        "metadata": {},
    },
}


class Meta(Struct, frozen=True, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str
    labels: dict[str, str] = {}
    deletion_timestamp: str | None = None


class Pod(Struct, frozen=True):
    metadata: Meta


decode = msgspec.json.Decoder(Pod).decode


class World:
    """An informer that runs, what it told, and a way to wait until the cache shows what it should."""

    def __init__(self, client: Client, **options: Any) -> None:
        self.told: list[tuple[str | None, str | None]] = []
        self.relists = 0
        self._changed = asyncio.Event()
        self.informer: Informer[Pod] = Informer(
            client,
            PODS,
            decode,
            indexes={"side": lambda pod: (pod.metadata.labels.get("side", ""),)},
            on_change=self._change,
            on_relist=self._relist,
            **options,
        )

    def _change(self, old: Pod | None, new: Pod | None) -> None:
        self.told.append((old and old.metadata.name, new and new.metadata.name))
        self._changed.set()

    def _relist(self, _namespace: str | None, _version: int) -> None:
        self.relists += 1
        self._changed.set()

    @property
    def names(self) -> set[str]:
        return {pod.metadata.name for pod in self.informer.objects()}

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def shows(self, *names: str) -> None:
        await self.until(lambda: self.names == set(names))


@asynccontextmanager
async def running(client: Client, **options: Any) -> AsyncIterator[World]:
    world = World(client, **options)
    task = asyncio.create_task(world.informer.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await world.informer.synced.wait()
        yield world
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def ns(namespace: Callable[[ControlPlane], str], apiserver: ControlPlane) -> str:
    return namespace(apiserver)


@pytest.fixture
async def client(apiserver: ControlPlane) -> AsyncIterator[Client]:
    async with Client(await load_credentials(str(apiserver.kubeconfig))) as client:
        yield client


@pytest.fixture
async def proxy(apiserver: ControlPlane) -> AsyncIterator[Proxy]:
    async with Proxy(apiserver.server, apiserver.ca_file, apiserver.tokens["admin"]) as proxy:
        yield proxy


@pytest.fixture
async def shaky(proxy: Proxy, tmp_path: Path) -> AsyncIterator[Client]:
    """A client through the proxy that takes half a second of silence for a dead stream."""
    credentials = await load_credentials(str(proxy.write_kubeconfig(tmp_path / "proxy")))
    async with Client(credentials, silence=0.5) as client:
        yield client


async def create(client: Client, ns: str, *names: str, **labels: str) -> None:
    for name in names:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": labels},
            "spec": {"containers": [{"name": "ray", "image": "ray"}]},
        }
        await client.create(PODS, ns, body, metadata_only=True)


async def delete(client: Client, ns: str, name: str) -> None:
    await client.delete(PODS, ns, name, grace_seconds=0)


async def label(client: Client, ns: str, name: str, **labels: str) -> None:
    await client.patch(PODS, ns, name, {"metadata": {"labels": labels}})


async def test_the_cache_has_what_was_there_and_what_comes(client: Client, ns: str) -> None:
    await create(client, ns, "old", side="a")
    async with running(client, namespaces=[ns]) as world:
        assert world.names == {"old"}
        await create(client, ns, "new", side="b")
        await world.shows("old", "new")

        (old,) = world.informer.by_index("side", "a")
        await label(client, ns, "old", side="b")
        await world.until(lambda: len(world.informer.by_index("side", "b")) == 2)
        assert world.informer.by_index("side", "a") == ()

        await delete(client, ns, "old")
        await world.shows("new")
        assert world.informer.recently_deleted(old.metadata.uid)
        assert world.informer.get(old.metadata.uid) is None
        assert world.informer.healthy


async def test_only_selected_objects_are_there(client: Client, ns: str) -> None:
    await create(client, ns, "unselected", side="b")
    options = {"label_selector": "side=a", "keep": lambda pod: "drop" not in pod.metadata.labels}
    async with running(client, namespaces=[ns], **options) as world:
        await create(client, ns, "a", "c", side="a")
        await create(client, ns, "dropped", side="a", drop="yes")
        await world.shows("a", "c")
        await label(client, ns, "a", side="b")
        await world.shows("c")
        await label(client, ns, "a", side="a")
        await world.shows("a", "c")
        await label(client, ns, "a", drop="yes")
        await world.shows("c")


async def test_several_namespaces_are_followed_and_no_other(
    client: Client, apiserver: ControlPlane, namespace: Callable[[ControlPlane], str]
) -> None:
    one, two, other = (namespace(apiserver) for _ in range(3))
    async with running(client, namespaces=[one, two]) as world:
        for ns in (one, two, other):
            await create(client, ns, f"in-{ns}")
        await world.shows(f"in-{one}", f"in-{two}")
        assert world.informer.find(two, f"in-{two}") is not None
        assert world.relists == 2


async def test_a_pod_made_again_under_its_name_is_another_one(client: Client, ns: str) -> None:
    async with running(client, namespaces=[ns]) as world:
        await create(client, ns, "a")
        await world.shows("a")
        first = world.informer.find(ns, "a")
        await delete(client, ns, "a")
        await create(client, ns, "a")
        await world.until(lambda: world.informer.find(ns, "a") not in (None, first) and len(world.names) == 1)
        assert first is not None
        assert world.informer.recently_deleted(first.metadata.uid)


async def changes_unseen(client: Client, ns: str) -> None:
    await delete(client, ns, "gone")
    await create(client, ns, "new")
    await label(client, ns, "changed", side="b")
    await delete(client, ns, "again")
    await create(client, ns, "again")


def caught_up(world: World, ns: str, before: Pod) -> bool:
    again = world.informer.find(ns, "again")
    moved = [pod.metadata.name for pod in world.informer.by_index("side", "b")]
    return world.names == {"new", "changed", "again"} and moved == ["changed"] and again not in (None, before)


Break = Callable[[Proxy, str], None]


def expire_by_event(proxy: Proxy, _: str) -> None:
    assert proxy.inject(EXPIRED, watches("pods")) == 1


def expire_by_status(proxy: Proxy, _: str) -> None:
    proxy.fail(watches("pods"), 410, reason="Expired", times=3)
    assert proxy.cut_streams() == 1


def cut(proxy: Proxy, _: str) -> None:
    assert proxy.cut_streams() == 1


def end(proxy: Proxy, _: str) -> None:
    assert proxy.end_streams() == 1


def server_down(proxy: Proxy, _: str) -> None:
    proxy.fail(lambda seen: seen.of("pods"), 503, times=2)
    proxy.cut(lambda seen: seen.of("pods"), times=2)  # aiohttp itself tries a GET twice
    assert proxy.cut_streams() == 1


def rights_gone(proxy: Proxy, ns: str) -> None:
    message = 'pods is forbidden: User "operator" cannot watch resource "pods" in API group "" in the namespace'
    proxy.fail(lambda seen: seen.of("pods"), 403, reason="Forbidden", message=message, times=3)
    assert proxy.cut_streams() == 1


def nonsense(proxy: Proxy, _: str) -> None:
    proxy.fail(reads("pods"), 200, times=2)
    assert proxy.inject({"type": "ADDED", "object": "not an object"}, watches("pods")) == 1


def silence(proxy: Proxy, _: str) -> None:
    assert len(proxy.streams) == 1


BREAKS = {
    "410 as an event": expire_by_event,
    "410 as a status, thrice": expire_by_status,
    "cut": cut,
    "ended": end,
    "server down": server_down,
    "rights taken and given back": rights_gone,
    "nonsense": nonsense,
    "silent": silence,
}


@pytest.mark.parametrize("break_it", BREAKS.values(), ids=BREAKS)
async def test_nothing_that_happened_in_a_gap_is_missed(
    shaky: Client, client: Client, proxy: Proxy, ns: str, break_it: Break
) -> None:
    await create(client, ns, "gone", "changed", "again", side="a")
    async with running(shaky, namespaces=[ns]) as world:
        gone, again = world.informer.find(ns, "gone"), world.informer.find(ns, "again")
        assert gone is not None
        assert again is not None
        await opened(proxy)
        proxy.swallow_events(watches("pods"))
        await changes_unseen(client, ns)
        break_it(proxy, ns)

        await world.until(lambda: caught_up(world, ns, again))
        assert world.informer.recently_deleted(gone.metadata.uid)
        assert world.told.count(("gone", None)) == 1


async def opened(proxy: Proxy) -> None:
    """Wait until the informer has its watch open."""
    async with asyncio.timeout(PATIENCE):
        await proxy.until(lambda: bool(proxy.streams))


async def test_an_expired_stream_costs_one_list(shaky: Client, proxy: Proxy, ns: str, client: Client) -> None:
    async with running(shaky, namespaces=[ns]) as world:
        await opened(proxy)
        proxy.inject(EXPIRED)
        await create(client, ns, "a")
        await world.shows("a")
        assert proxy.count(reads("pods")) == 2


async def test_an_informer_without_rights_says_so_and_starts_when_it_gets_them(
    shaky: Client, proxy: Proxy, ns: str, client: Client
) -> None:
    await create(client, ns, "a")
    message = 'pods is forbidden: User "operator" cannot list resource "pods"'
    proxy.fail(reads("pods"), 403, reason="Forbidden", message=message, times=1000)
    world = World(shaky, namespaces=[ns])
    task = asyncio.create_task(world.informer.run())
    async with asyncio.timeout(PATIENCE):
        await proxy.until(lambda: proxy.count(reads("pods")) == 2)
        assert world.informer.last_error == message
        assert not world.informer.healthy
        assert not world.informer.synced.is_set()
        proxy.heal()
        await world.informer.synced.wait()
    assert world.names == {"a"}
    assert world.informer.healthy
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_events_held_back_arrive_in_order(shaky: Client, proxy: Proxy, ns: str, client: Client) -> None:
    """What a slow watch cache does: our view is old, then it catches up."""
    async with Client(shaky._credentials, silence=60) as patient, running(patient, namespaces=[ns]) as world:
        await opened(proxy)
        proxy.hold_events(watches("pods"))
        await create(client, ns, "a", "b")
        await delete(client, ns, "a")
        assert world.names == set()
        proxy.release_events()
        await world.shows("b")
        await world.until(lambda: ("a", None) in world.told)
        assert world.told[0] == (None, "a")
