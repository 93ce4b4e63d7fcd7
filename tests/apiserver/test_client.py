"""Our client against a real API server: what the design relies on, and what each failure becomes."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any

import kopf
import msgspec
import pytest
from proxy import Proxy, everything, reads, watches, writes

from tpu_operator import errors
from tpu_operator.kube.client import Client
from tpu_operator.kube.credentials import load_credentials
from tpu_operator.kube.events import EventSink, ObjectReference
from tpu_operator.kube.resource import EVENTS, PODS, SERVICES, Resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from devcluster.plane import ControlPlane

pytestmark = pytest.mark.apiserver

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
UID = "00000000-0000-0000-0000-000000000000"

Json = dict[str, Any]


def pod(name: str, **labels: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "ray", "image": "ray", "env": [{"name": "X", "value": "y" * 2000}]}]},
    }


def config_map(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


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
    """A client that goes through the proxy and gives up after a second."""
    credentials = await load_credentials(str(proxy.write_kubeconfig(tmp_path / "proxy")))
    async with Client(credentials, timeout=1.0, silence=0.3) as client:
        yield client


async def names(client: Client, ns: str) -> list[str]:
    return [item["metadata"]["name"] for item in (await client.list(PODS, ns)).items]


async def test_a_created_pod_can_be_answered_with_its_metadata_only(client: Client, ns: str) -> None:
    whole = await client.create(PODS, ns, pod("whole"))
    small = await client.create(PODS, ns, msgspec.json.encode(pod("small")), metadata_only=True)

    assert small["kind"] == "PartialObjectMetadata"
    assert small["metadata"]["uid"]
    assert len(msgspec.json.encode(small)) < len(msgspec.json.encode(whole)) / 2
    assert (await client.get(PODS, ns, "small"))["spec"]["containers"][0]["name"] == "ray"


async def test_an_explicit_name_wins_over_generate_name(client: Client, ns: str) -> None:
    body = pod("explicit")
    body["metadata"]["generateName"] = "other-"

    assert (await client.create(PODS, ns, body))["metadata"]["name"] == "explicit"


async def test_a_dry_run_creates_nothing(client: Client, ns: str) -> None:
    await client.create(PODS, ns, pod("dry"), dry_run=True)

    with pytest.raises(errors.Gone):
        await client.get(PODS, ns, "dry")


async def test_a_taken_name_is_a_conflict_that_says_so(client: Client, ns: str) -> None:
    await client.create(PODS, ns, pod("a"))

    with pytest.raises(errors.Conflict) as caught:
        await client.create(PODS, ns, pod("a"))
    assert caught.value.reason == "AlreadyExists"


async def test_a_pod_of_another_uid_is_not_deleted(client: Client, ns: str) -> None:
    created = await client.create(PODS, ns, pod("a"))

    with pytest.raises(errors.Gone):
        await client.delete(PODS, ns, "a", uid=UID)
    with pytest.raises(errors.Conflict):
        await client.delete(PODS, ns, "a", uid=created["metadata"]["uid"], resource_version="1")
    await client.delete(PODS, ns, "a", uid=created["metadata"]["uid"], grace_seconds=0)
    with pytest.raises(errors.Gone):
        await client.delete(PODS, ns, "a")


async def test_a_quota_refuses(client: Client, ns: str) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    await client.create(QUOTAS, ns, quota)
    status = {"status": {"hard": {"pods": "1"}, "used": {"pods": "1"}}}  # a controller would write it
    await client.patch(QUOTAS, ns, "q", status, subresource="status")

    with pytest.raises(errors.Refused, match="exceeded quota"):
        await client.create(PODS, ns, pod("a"))


async def test_an_invalid_pod_is_refused_with_its_cause(client: Client, ns: str) -> None:
    with pytest.raises(errors.Refused) as caught:
        await client.create(PODS, ns, pod("Not_A_Name"))
    assert (caught.value.status, caught.value.cause) == (422, "FieldValueInvalid")


async def test_a_namespace_that_goes_is_named_as_the_cause(client: Client, apiserver: ControlPlane) -> None:
    name = "going"  # on a plane without controllers it stays Terminating
    await client.create(NAMESPACES, None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    await client.delete(NAMESPACES, None, name)

    with pytest.raises(errors.Refused) as caught:
        await client.create(PODS, name, pod("a"))
    assert caught.value.cause == "NamespaceTerminating"


async def test_a_missing_right_is_not_a_refusal(apiserver: ControlPlane, ns: str) -> None:
    credentials = await load_credentials(str(apiserver.kubeconfig_for("operator")))
    async with Client(credentials) as client:
        with pytest.raises(errors.Unauthorized, match="cannot create"):
            await client.create(PODS, ns, pod("a"))
        with pytest.raises(errors.Unauthorized, match="cannot list"):
            await client.list(PODS, ns)


async def test_a_list_comes_in_pages_and_whole(client: Client, ns: str) -> None:
    await asyncio.gather(*(client.create(PODS, ns, pod(f"p{number}", side="a")) for number in range(7)))
    await client.create(PODS, ns, pod("other", side="b"))

    listing = await client.list(PODS, ns, label_selector="side=a", limit=3)

    assert [item["metadata"]["name"] for item in listing.items] == [f"p{number}" for number in range(7)]
    assert int(listing.resource_version) >= max(int(item["metadata"]["resourceVersion"]) for item in listing.items)


async def test_a_watch_tells_what_happens_after_a_list(client: Client, ns: str) -> None:
    start = (await client.list(PODS, ns)).resource_version
    created = await client.create(PODS, ns, pod("a", side="a"))
    await client.create(PODS, ns, pod("unselected"))
    await client.patch(PODS, ns, "a", {"metadata": {"labels": {"more": "yes"}}})
    await client.delete(PODS, ns, "a", grace_seconds=0)

    watch = client.watch(PODS, ns, resource_version=start, label_selector="side=a", timeout=1)
    events = [event async for event in watch if event.type != "BOOKMARK"]

    types = [event.type for event in events]
    assert (types[0], set(types[1:-1]), types[-1]) == ("ADDED", {"MODIFIED"}, "DELETED")
    deleted = msgspec.json.decode(events[-1].object)["metadata"]
    assert deleted["uid"] == created["metadata"]["uid"]
    assert int(deleted["resourceVersion"]) > int(created["metadata"]["resourceVersion"])


async def test_a_pod_that_leaves_the_selection_and_comes_back_has_growing_versions(client: Client, ns: str) -> None:
    """The informer's tombstones rely on it: DELETED carries the version at which the object left."""
    start = (await client.list(PODS, ns)).resource_version
    await client.create(PODS, ns, pod("a", side="a"))
    for side in ("b", "a"):
        await client.patch(PODS, ns, "a", {"metadata": {"labels": {"side": side}}})

    watch = client.watch(PODS, ns, resource_version=start, label_selector="side=a", timeout=1)
    events = [event async for event in watch if event.type != "BOOKMARK"]

    assert [event.type for event in events] == ["ADDED", "DELETED", "ADDED"]
    versions = [int(msgspec.json.decode(event.object)["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


async def test_apply_owns_only_the_fields_it_names(client: Client, ns: str) -> None:
    await client.apply(CONFIG_MAPS, ns, "c", config_map("c", ours="1", dropped="1"))
    await client.patch(CONFIG_MAPS, ns, "c", {"data": {"theirs": "1"}})
    applied = await client.apply(CONFIG_MAPS, ns, "c", config_map("c", ours="2"))

    assert applied["data"] == {"ours": "2", "theirs": "1"}


async def test_a_patch_is_a_json_patch_or_a_merge_patch_by_its_shape(client: Client, ns: str) -> None:
    created = await client.create(CONFIG_MAPS, ns, config_map("c", a="1"))
    test = {"op": "test", "path": "/data/a", "value": "1"}
    await client.patch(CONFIG_MAPS, ns, "c", [test, {"op": "add", "path": "/data/b", "value": "2"}])

    with pytest.raises(errors.Refused):
        await client.patch(CONFIG_MAPS, ns, "c", [test | {"value": "other"}])
    with pytest.raises(errors.Conflict):
        await client.patch(
            CONFIG_MAPS, ns, "c", {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}}
        )
    assert (await client.get(CONFIG_MAPS, ns, "c"))["data"] == {"a": "1", "b": "2"}


async def test_a_kind_that_is_not_served_is_gone(client: Client, ns: str) -> None:
    with pytest.raises(errors.Gone):
        await client.list(Resource("example.org", "v1", "nothings", "Nothing"), ns)


async def test_anything_else_can_be_asked_for_by_its_path(client: Client) -> None:
    assert msgspec.json.decode(await client.raw("GET", "/version"))["major"] == "1"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}},
    }
    answer = await client.raw("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=review)
    assert msgspec.json.decode(answer)["status"]["allowed"] is True


async def test_each_request_is_told_to_the_observer(apiserver: ControlPlane, ns: str) -> None:
    told: list[tuple[str, str, int]] = []
    credentials = await load_credentials(str(apiserver.kubeconfig))
    async with Client(
        credentials, observer=lambda verb, kind, status, _: told.append((verb, str(kind.plural), status))
    ) as client:
        await client.create(PODS, ns, pod("a"))
        with pytest.raises(errors.Gone):
            await client.get(SERVICES, ns, "nothing")

    assert told == [("create", "pods", 201), ("get", "services", 404)]


async def test_the_connection_is_what_kopf_takes(apiserver: ControlPlane) -> None:
    credentials = await load_credentials(str(apiserver.kubeconfig))
    info = kopf.ConnectionInfo(**dataclasses.asdict(await credentials.connection()))

    assert info.server == apiserver.server
    assert info.as_http_headers() == await credentials.headers()


async def test_an_event_is_taken_and_becomes_a_series(client: Client, ns: str) -> None:
    sink = EventSink(client, reporting_controller="raycluster-controller", reporting_instance="operator-0")
    running = asyncio.create_task(sink.run())
    about = ObjectReference("ray.io/v1", "RayCluster", ns, "demo", UID)
    for _ in range(3):
        sink.emit(about, reason="CreatedSlice", type="Normal", action="CreateSlice", note="x" * 2000)
    await sink.idle()
    running.cancel()

    (event,) = (await client.list(EVENTS, ns)).items
    assert sink.failed == 0
    assert event["series"]["count"] == 3
    assert event["regarding"]["name"] == "demo"


# -- what goes wrong on the way ----------------------------------------------------------------------------------------


async def test_a_create_that_was_carried_out_without_an_answer_is_in_doubt(
    shaky: Client, proxy: Proxy, client: Client, ns: str
) -> None:
    proxy.lose_answer(writes("pods"))
    with pytest.raises(errors.AnswerLost):
        await shaky.create(PODS, ns, pod("a"))

    assert await names(client, ns) == ["a"]
    assert proxy.count(writes("pods")) == 1, "a POST is never sent twice"


async def test_a_create_that_never_arrived_is_in_doubt_too(
    shaky: Client, proxy: Proxy, client: Client, ns: str
) -> None:
    proxy.cut(writes("pods"))
    with pytest.raises(errors.AnswerLost):
        await shaky.create(PODS, ns, pod("a"))

    assert await names(client, ns) == []
    assert proxy.count(writes("pods")) == 1


async def test_a_create_that_takes_too_long_is_in_doubt(shaky: Client, proxy: Proxy, ns: str) -> None:
    proxy.delay(writes("pods"), 5.0)
    with pytest.raises(errors.AnswerLost):
        await shaky.create(PODS, ns, pod("a"))


async def test_a_read_without_an_answer_leaves_nothing_in_doubt(shaky: Client, proxy: Proxy, ns: str) -> None:
    proxy.cut(reads("pods"), times=10)
    with pytest.raises(errors.Transient) as caught:
        await shaky.list(PODS, ns)
    assert not isinstance(caught.value, errors.AnswerLost)


async def test_a_create_that_was_never_sent_is_not_in_doubt(apiserver: ControlPlane, ns: str) -> None:
    credentials = await load_credentials(str(apiserver.kubeconfig))
    credentials.server = "https://127.0.0.1:1"
    async with Client(credentials) as client:
        with pytest.raises(errors.Transient) as caught:
            await client.create(PODS, ns, pod("a"))
    assert not isinstance(caught.value, errors.AnswerLost)


async def test_the_server_is_told_to_give_up_before_us(client: Client, shaky: Client, proxy: Proxy, ns: str) -> None:
    await shaky.create(PODS, ns, pod("a"))

    (create,) = [seen for seen in proxy.requests if seen.method == "POST"]
    assert create.query == {"timeout": "1s", "fieldManager": "tpu-operator"}


async def test_overload_says_when_to_come_back(shaky: Client, proxy: Proxy, ns: str) -> None:
    proxy.fail(writes("pods"), 429, reason="TooManyRequests", retry_after=7)
    with pytest.raises(errors.Transient) as caught:
        await shaky.create(PODS, ns, pod("a"))
    assert caught.value.retry_after == 7


async def test_after_a_401_the_token_is_renewed_and_the_request_sent_once_more(
    shaky: Client, proxy: Proxy, client: Client, ns: str
) -> None:
    proxy.fail(writes("pods"), 401, reason="Unauthorized")
    await shaky.create(PODS, ns, pod("a"))
    assert await names(client, ns) == ["a"]

    proxy.fail(everything, 401, reason="Unauthorized", times=10)
    before = len(proxy.requests)
    with pytest.raises(errors.Unauthorized):
        await shaky.get(PODS, ns, "a")
    assert len(proxy.requests) - before == 2


async def test_a_silent_watch_ends(shaky: Client, proxy: Proxy, ns: str) -> None:
    start = (await shaky.list(PODS, ns)).resource_version
    proxy.hold_events(watches("pods"))

    with pytest.raises(errors.Transient, match="no answer"):
        await anext(shaky.watch(PODS, ns, resource_version=start))


async def test_a_watch_takes_an_event_of_any_size(client: Client, ns: str) -> None:
    start = (await client.list(CONFIG_MAPS, ns)).resource_version
    await client.create(CONFIG_MAPS, ns, config_map("big", data="x" * 900_000))

    watch = client.watch(CONFIG_MAPS, ns, resource_version=start, timeout=1)
    sizes = [len(bytes(event.object)) async for event in watch if event.type == "ADDED"]
    assert max(sizes) > 900_000
