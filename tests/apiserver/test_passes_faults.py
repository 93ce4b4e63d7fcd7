"""An API server that is slow, refuses, forgets answers or loses watches (cases KF, DK, AD)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from proxy import Proxy, Seen, everything, watches, writes

from bed import Bed, alive, bed, condition, group, label, name_of, pod_template, raycluster, workers
from tpu_operator.api import names
from tpu_operator.controller.executor import RAYCLUSTERS
from tpu_operator.errors import Gone
from tpu_operator.kube.resource import Resource

if TYPE_CHECKING:
    from devcluster.plane import ControlPlane
    from devcluster.pytest_plugin import NamespaceFactory

pytestmark = pytest.mark.apiserver

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
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


def ready(cluster: dict[str, Any]) -> bool:
    return cluster.get("status", {}).get("state") == "ready"


def status_writes(seen: Seen) -> bool:
    return seen.method in ("PATCH", "PUT") and seen.path.endswith("/status") and seen.of("rayclusters")


def live_workers(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [p for p in workers(pods) if alive(p)]


# -- watches -----------------------------------------------------------------------------------------------------------


async def test_what_happened_while_the_pods_watch_was_expired_is_noticed(proxied: Bed, proxy: Proxy) -> None:
    """KF-02."""
    await proxied.create(raycluster("demo", group("g", 2)))
    before = await proxied.until_live(3)
    await proxied.settled()
    proxy.swallow_events(watches("pods"))
    await proxied.delete_pod(workers(before)[0], grace=0)
    proxy.inject(EXPIRED, watches("pods"))
    await proxied.until_live(3)
    await proxied.settled()
    assert (proxied.made(), proxied.killed()) == (4, 0)


async def test_what_happened_while_the_rayclusters_watch_was_expired_is_noticed(proxied: Bed, proxy: Proxy) -> None:
    """KF-02 for kopf's watch."""
    await proxied.create(raycluster("demo", group("g", 1)))
    await proxied.create(raycluster("gone", group("g", 1)))
    await proxied.until("4 pods", lambda pods: len(pods) == 4)
    await proxied.settled()
    proxy.swallow_events(watches("rayclusters"))
    await proxied.scale("demo", 2)
    await proxied.create(raycluster("more", group("g", 1)))
    proxy.inject(EXPIRED, watches("rayclusters"))
    await proxied.until_live(3, "demo")
    await proxied.until_live(2, "more")


async def test_a_deletion_that_no_watch_told_of_is_found_by_the_relist(
    apiserver: ControlPlane, namespace: NamespaceFactory, proxy: Proxy
) -> None:
    """KF-02: kopf never tells of a cluster that was deleted during a gap."""
    async with bed(apiserver, namespace(apiserver), server=proxy.url, resync=0.5) as b:
        await b.create(raycluster("demo", group("g", 1)))
        pods = await b.until_live(2)
        await b.settled()
        proxy.swallow_events(watches("rayclusters"))
        await b.delete_cluster("demo")
        await b.until_true("forgotten", lambda: len(b.app.clusters) == 0)
        await b.delete_pod(workers(pods)[0], grace=0)
        await b.settled()
        assert b.made() == 2


async def test_old_news_of_a_deleted_cluster_create_nothing(proxied: Bed, proxy: Proxy) -> None:
    """KF-03."""
    await proxied.create(raycluster("demo", group("g", 2)))
    await proxied.until_live(3)
    await proxied.settled()
    old = await proxied.cluster("demo")
    await proxied.delete_cluster("demo")
    for pod in await proxied.pods():
        await proxied.delete_pod(pod, grace=0)
    await proxied.until_true("forgotten", lambda: len(proxied.app.clusters) == 0)
    for kind in ("ADDED", "MODIFIED"):
        assert proxy.inject({"type": kind, "object": old}, watches("rayclusters"))
    await proxied.settled(1.0)
    assert proxied.made() == 3
    assert await proxied.pods() == []


@pytest.mark.parametrize("plural", ["pods", "rayclusters"])
async def test_rights_that_were_gone_for_a_while_leave_no_zombie(proxied: Bed, proxy: Proxy, plural: str) -> None:
    """KF-05: watches end and may not begin again until somebody gives the rights back."""
    await proxied.create(raycluster("demo", group("g", 2)))
    before = await proxied.until_live(3)
    await proxied.settled()

    def looks(seen: Seen) -> bool:
        return seen.of(plural) and seen.method == "GET" and seen.path.endswith(plural)

    message = f'{plural} is forbidden: User "operator" cannot list resource "{plural}"'
    proxy.fail(looks, 403, times=10**6, message=message, reason="Forbidden")
    proxy.cut_streams(watches(plural))
    seen = proxy.count(looks)
    await proxied.delete_pod(workers(before)[0], grace=0)
    await proxied.scale("demo", 3)
    await proxy.until(lambda: proxy.count(looks) >= seen + 2)
    proxy.heal()
    await proxied.until_live(4, seconds=20)
    await proxied.settled()
    assert (proxied.made(), proxied.killed()) == (5, 0)


async def test_events_of_own_writes_that_come_late_make_nothing_twice(proxied: Bed, proxy: Proxy) -> None:
    """KF-12: of the RayClusters' watch."""
    proxy.hold_events(watches("rayclusters"))
    await proxied.create(raycluster("demo", group("g", 2)))
    proxy.release_events()
    await proxied.until_live(3)
    proxy.hold_events(watches("rayclusters"))
    await proxied.make_ready(await proxied.pods())
    await proxied.until_cluster("demo", "ready", ready)
    await proxied.annotate("demo", touched="yes")
    await proxied.scale("demo", 3)
    proxy.release_events()
    await proxied.until_live(4)
    await proxied.settled()
    assert (proxied.made(), proxied.killed()) == (4, 0)


# -- writes of the status ----------------------------------------------------------------------------------------------


async def test_a_status_that_is_refused_makes_no_hot_loop_and_the_pods_are_right(proxied: Bed, proxy: Proxy) -> None:
    """KF-06: other clusters are not concerned."""

    def of_demo(seen: Seen) -> bool:
        return status_writes(seen) and "/rayclusters/demo/" in seen.path

    proxy.fail(of_demo, 422, times=10**6, message="status.state: Invalid value", reason="Invalid")
    await proxied.create(raycluster("demo", group("g", 2)))
    await proxied.create(raycluster("other", group("g", 2)))
    await proxied.until_live(3, "demo")
    await proxied.all_ready("other", 3)
    await proxied.until_cluster("other", "ready", ready)
    first = proxy.count(of_demo)
    await proxied.settled(0.3)
    await proxied.scale("demo", 4)
    await proxied.until_live(5, "demo")
    await proxied.watch_for(2.0)
    assert proxy.count(of_demo) - first <= 5
    assert (proxied.made(), proxied.killed()) == (8, 0)
    proxy.heal()
    await proxied.all_ready("demo", 5)
    await proxied.until_cluster("demo", "ready", ready)


async def test_a_refused_status_does_not_make_the_operator_forget_its_pauses(proxied: Bed, proxy: Proxy) -> None:
    """KF-06: refused pods keep their growing pauses though nobody can be told of them."""
    proxy.fail(status_writes, 422, times=10**6, message="no", reason="Invalid")
    await proxied.create(raycluster("demo", group("g", 2, template=pod_template(activeDeadlineSeconds=-1))))
    await proxied.until_live(1)
    await proxied.watch_for(2.5)
    assert proxied.made() <= 4


async def test_a_status_that_meets_every_kind_of_trouble_is_right_in_the_end(proxied: Bed, proxy: Proxy) -> None:
    """KF-23."""
    await proxied.create(raycluster("demo", group("g", 1)))
    await proxied.until_live(2)
    await proxied.settled()
    for status, reason in ((422, "Invalid"), (409, "Conflict"), (500, "InternalError")):
        proxy.fail(status_writes, status, reason=reason)
    proxy.lose_answer(status_writes)
    await proxied.make_ready(await proxied.pods())
    await proxied.until_cluster("demo", "ready", ready, seconds=20)
    assert (proxied.made(), proxied.killed()) == (2, 0)


async def test_conflicts_of_the_status_repeat_no_other_step(proxied: Bed, proxy: Proxy) -> None:
    """KF-24."""
    proxy.fail(status_writes, 409, times=20, message="the object has been modified", reason="Conflict")
    await proxied.create(raycluster("demo", group("g", 3)))
    await proxied.all_ready("demo", 4)
    await proxied.until_cluster("demo", "ready", ready)
    assert (proxied.made(), proxied.killed()) == (4, 0)
    assert proxied.made("services") + proxied.calls["apply", "services"] <= 3


# -- creates -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["lost", "cut", "500", "429"])
async def test_creates_that_go_wrong_end_in_the_right_number(proxied: Bed, proxy: Proxy, fault: str) -> None:
    """AD-11: whether they were carried out or not. Slices stay whole."""
    creates = writes("pods", "POST")
    {
        "lost": lambda: proxy.lose_answer(creates, times=5),
        "cut": lambda: proxy.cut(creates, times=5),
        "500": lambda: proxy.fail(
            creates, 500, times=5, message="etcdserver: request timed out", reason="InternalError"
        ),
        "429": lambda: proxy.fail(creates, 429, times=2, reason="TooManyRequests", retry_after=1),
    }[fault]()
    await proxied.create(raycluster("demo", group("g", 3, 4)))
    pods = await proxied.until_live(13)
    await proxied.settled()
    slots = {(label(p, names.REPLICA_INDEX), label(p, names.HOST_INDEX)) for p in live_workers(pods)}
    assert len(slots) == 12
    assert len(await proxied.pods()) == 13
    assert len({label(p, names.REPLICA_NAME) for p in live_workers(pods)}) == 3


async def test_a_create_whose_answer_and_look_up_are_lost_is_not_sent_again(proxied: Bed, proxy: Proxy) -> None:
    """AD-11: the look-up fails too, so it stays open for a while what became of it."""
    proxy.hold_events(watches("pods"))
    proxy.lose_answer(writes("pods", "POST"), times=3)
    proxy.fail(lambda seen: seen.method == "GET" and "/pods/" in seen.path, 503, times=6, reason="ServiceUnavailable")
    await proxied.create(raycluster("demo", group("g", 2)))
    await proxied.until_live(3)
    await proxied.settled(1.5)
    proxy.release_events()
    await proxied.settled()
    assert len(await proxied.pods()) == 3
    assert proxied.made() == 3


async def test_deletes_that_go_wrong_end_in_the_right_number(proxied: Bed, proxy: Proxy) -> None:
    await proxied.create(raycluster("demo", group("g", 6)))
    await proxied.until_live(7)
    await proxied.settled()
    deletes = writes("pods", "DELETE")
    proxy.lose_answer(deletes)
    proxy.fail(deletes, 500, reason="InternalError")
    proxy.cut(deletes)
    await proxied.scale("demo", 3)
    await proxied.until_live(4)
    await proxied.settled()
    assert len(live_workers(await proxied.pods())) == 3
    assert proxied.made() == 7


async def test_services_that_cannot_be_made_for_a_moment_are_made_later(proxied: Bed, proxy: Proxy) -> None:
    proxy.fail(writes("services"), 500, times=3, reason="InternalError")
    await proxied.create(raycluster("demo", group("g", 1, 2)))
    await proxied.until_live(3)
    services = Resource("", "v1", "services", "Service")

    async def there() -> list[str]:
        return sorted(map(name_of, await proxied.all_of(services)))

    wanted = sorted([names.head_service("demo"), names.headless_service("demo")])
    await proxied.until_async("both services", there, lambda found: found == wanted)


async def test_a_request_that_hangs_for_one_cluster_does_not_delay_another(
    proxied: Bed, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DK-16."""
    monkeypatch.setattr("tpu_operator.controller.app.STOP_GRACE", 0.1)

    def of_slow(seen: Seen) -> bool:
        return seen.method == "POST" and seen.of("pods") and b'"slow-' in seen.body

    proxy.delay(of_slow, 60)
    await proxied.create(raycluster("slow", group("g", 100)))
    await proxy.until(lambda: proxy.count(of_slow) >= 1)
    await proxied.create(raycluster("demo", group("g", 3)))
    await proxied.until_live(4, "demo", seconds=3)
    await proxied.stop()


async def test_many_hanging_creates_leave_room_for_other_clusters(proxied: Bed, proxy: Proxy) -> None:
    """DK-16: the workers of a huge cluster hang, all slots of the limiter are theirs at first."""

    def of_slow(seen: Seen) -> bool:
        return seen.method == "POST" and seen.of("pods") and b'"slow-g-worker' in seen.body

    await proxied.create(raycluster("slow", group("g", 0)))
    await proxied.until_live(1)
    await proxied.settled()
    proxy.delay(of_slow, 1.5)
    await proxied.scale("slow", 40)
    await proxy.until(lambda: proxy.count(of_slow) >= 1)
    await proxied.create(raycluster("demo", group("g", 3)))
    await proxied.until_live(4, "demo", seconds=3)


# -- quota and admission -----------------------------------------------------------------------------------------------


async def set_quota(b: Bed, pods: int) -> None:
    """A quota with the status that the controller manager would write."""
    body = {"metadata": {"name": "quota"}, "spec": {"hard": {"pods": str(pods)}}}
    await b.client.apply(QUOTAS, b.namespace, "quota", {"apiVersion": "v1", "kind": "ResourceQuota", **body})
    used = str(sum(map(alive, await b.pods())))
    status = {"status": {"hard": {"pods": str(pods)}, "used": {"pods": used}}}
    await b.client.patch(QUOTAS, b.namespace, "quota", status, subresource="status")


async def test_a_quota_lets_some_pods_in_is_told_and_the_rest_follows(
    operator: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AD-01, DK-11: without touching the object, and never more than wanted."""
    monkeypatch.setattr("tpu_operator.planning.remember.REFUSAL_FIRST", 0.5)
    await set_quota(operator, 4)
    await operator.create(raycluster("demo", group("g", 5)))
    await operator.until_live(4)
    seen = await operator.until_cluster(
        "demo", "told", lambda c: condition(c, "ReplicaFailure").get("status") == "True"
    )
    assert "exceeded quota" in condition(seen, "ReplicaFailure")["message"]
    await operator.settled()
    assert operator.made() <= 10
    await set_quota(operator, 10)
    await operator.until_live(6)
    await operator.until_cluster("demo", "no failure", lambda c: not condition(c, "ReplicaFailure"))
    await operator.settled()
    assert len(await operator.pods()) == 6


async def test_a_quota_that_ends_inside_a_slice_leaves_no_part_of_it(operator: Bed) -> None:
    """AD-01 for slices: two fit and a half, so two are there."""
    await set_quota(operator, 1 + 4 + 4 + 2)
    await operator.create(raycluster("demo", group("g", 3, 4)))
    await operator.until_cluster("demo", "told", lambda c: condition(c, "ReplicaFailure").get("status") == "True")
    await operator.settled()
    pods = live_workers(await operator.pods())
    sizes = {
        i: sum(label(p, names.REPLICA_INDEX) == i for p in pods) for i in {label(p, names.REPLICA_INDEX) for p in pods}
    }
    assert set(sizes.values()) <= {4}
    assert len(pods) <= 8


async def test_refused_creates_come_with_growing_pauses(operator: Bed) -> None:
    """AD-01: a quota of nothing; at most ten tries in five minutes, so very few in two seconds."""
    await operator.create(raycluster("demo", group("g", 5)))
    await operator.until_live(6)
    await set_quota(operator, 6)
    await operator.scale("demo", 30)
    await operator.until_cluster("demo", "told", lambda c: condition(c, "ReplicaFailure").get("status") == "True")
    await operator.watch_for(2.0)
    assert operator.made() - 6 <= 3


# -- one bad object, large objects, no rights, no API --------------------------------------------------------------------


async def test_one_bad_object_stops_no_other(operator: Bed) -> None:
    """KF-26."""
    for number in range(9):
        await operator.create(raycluster(f"good{number}", group("g", 1)))
    await operator.create(raycluster("bad", group("g", 1), group("g", 3)))
    await operator.until("9 clusters", lambda pods: len(pods) == 18)
    await operator.until_cluster("bad", "told", lambda c: condition(c, "Stalled").get("status") == "True")
    await operator.settled()
    assert (operator.made(), operator.killed()) == (18, 0)


async def test_a_spec_of_three_hundred_kilobytes_is_served_like_any_other(operator: Bed) -> None:
    """KF-09."""
    spec = raycluster("demo", group("g", 2))
    environment = [{"name": f"V{n}", "value": "x" * 3000} for n in range(100)]
    spec["spec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]["env"] = environment
    await operator.create(spec)
    await operator.all_ready("demo", 3)
    await operator.until_cluster("demo", "ready", ready)
    await operator.settled()
    assert (operator.made(), operator.killed()) == (3, 0)
    assert "annotations" not in (await operator.cluster("demo"))["metadata"]


async def test_a_foreign_finalizer_is_left_to_its_owner(operator: Bed) -> None:
    """KF-14."""
    cluster = raycluster("demo", group("g", 1))
    cluster["metadata"]["finalizers"] = ["somebody.else/holds-it"]
    await operator.create(cluster)
    await operator.until_live(2)
    await operator.settled()
    await operator.delete_cluster("demo")
    for pod in await operator.pods():
        await operator.delete_pod(pod, grace=0)
    await operator.settled()
    assert (await operator.cluster("demo"))["metadata"]["finalizers"] == ["somebody.else/holds-it"]
    assert operator.made() == 2
    await operator.client.patch(RAYCLUSTERS, operator.namespace, "demo", {"metadata": {"finalizers": None}})
    with pytest.raises(Gone):
        await operator.cluster("demo")


async def test_an_api_server_that_cannot_be_reached_at_the_start_is_waited_for(
    apiserver: ControlPlane, namespace: NamespaceFactory, proxy: Proxy
) -> None:
    """KF-29."""
    proxy.cut(everything, times=10**6)
    async with bed(apiserver, namespace(apiserver), server=proxy.url, wait=False) as b:
        await b.create(raycluster("demo", group("g", 2)))
        await proxy.until(lambda: proxy.count(everything) >= 10)
        proxy.heal()
        await b.until_live(3, seconds=25)
        await b.settled()
        assert (b.made(), b.killed()) == (3, 0)


async def test_each_namespace_is_looked_at_by_itself_and_no_other(
    apiserver: ControlPlane, namespace: NamespaceFactory, proxy: Proxy
) -> None:
    """AD-08: no request at the scope of the whole cluster."""
    one, two, three = namespace(apiserver), namespace(apiserver), namespace(apiserver)
    async with bed(apiserver, one, also=[two], server=proxy.url) as b:
        for name in (one, two, three):
            await b.at(name).create(raycluster("demo", group("g", 1)))
        await b.at(one).until_live(2)
        await b.at(two).until_live(2)
        await b.settled()
        assert await b.at(three).pods() == []
        objects = [r.path for r in proxy.requests if r.path.count("/") > 4 or r.of("pods") or r.of("namespaces")]
        assert all(f"/namespaces/{one}" in path or f"/namespaces/{two}" in path for path in objects)


async def test_a_namespace_without_rights_does_not_stop_the_others(
    apiserver: ControlPlane, namespace: NamespaceFactory, proxy: Proxy
) -> None:
    """AD-08: and once the rights are there, it is served."""
    one, two = namespace(apiserver), namespace(apiserver)
    message = 'pods is forbidden: User "operator" cannot list resource "pods"'
    proxy.fail(lambda seen: f"/{two}/" in seen.path, 403, times=10**6, message=message, reason="Forbidden")
    async with bed(apiserver, one, also=[two], server=proxy.url, wait=False) as b:
        await b.create(raycluster("demo", group("g", 1)))
        await b.at(two).create(raycluster("demo", group("g", 1)))
        await b.until_live(2)
        await b.settled()
        proxy.heal()
        await b.at(two).until_live(2, seconds=20)
