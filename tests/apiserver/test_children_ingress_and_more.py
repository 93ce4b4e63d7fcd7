"""Ingress, route, network policies, token Secret and the user's service account on a real API server."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from bed import Bed, bed, group, pod_template, raycluster, uid_of
from devcluster.options import Options
from devcluster.plane import ControlPlane
from devcluster.pytest_plugin import CRD
from tpu_operator.errors import Gone
from tpu_operator.kube.resource import Resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from devcluster.pytest_plugin import NamespaceFactory

pytestmark = pytest.mark.apiserver

INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
POLICIES = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
ROUTES = Resource("route.openshift.io", "v1", "routes", "Route")
SECRETS = Resource("", "v1", "secrets", "Secret")
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
SERVICES = Resource("", "v1", "services", "Service")
NAME = "demo-head-ingress"
TOKEN = {"mode": "token"}


def web(**head: object) -> dict[str, Any]:
    head_group = {"enableIngress": True, "rayStartParams": {}, "template": pod_template(), **head}
    return raycluster("demo", headGroupSpec=head_group)


async def names_of(b: Bed, resource: Resource) -> set[str]:
    return {item["metadata"]["name"] for item in await b.all_of(resource)}


async def until_names(b: Bed, resource: Resource, expected: set[str]) -> None:
    await b.until_async(f"{resource.plural} {expected}", lambda: names_of(b, resource), lambda found: found == expected)


async def idle(b: Bed) -> None:
    """The operator writes nothing although it is made to look."""
    await b.settled()
    before = b.writes()
    await b.annotate("demo", **{"ray.io/note": str(sum(before.values()))})
    await b.settled()
    assert b.writes() == before


# -- ingress -----------------------------------------------------------------------------------------------------------


async def ingress(b: Bed) -> dict[str, Any]:
    return await b.client.get(INGRESSES, b.namespace, NAME)


async def test_an_ingress_is_made_kept_and_deleted_when_it_is_switched_off(operator: Bed) -> None:
    await operator.create(web())
    await until_names(operator, INGRESSES, {NAME})
    await operator.client.patch(
        INGRESSES,
        operator.namespace,
        NAME,
        {
            "metadata": {"annotations": {"controller.example/state": "x"}},
            "spec": {"ingressClassName": "theirs", "rules": [{"host": "hijacked"}]},
        },
    )
    mended = await operator.until_async(
        "the rule is back", lambda: ingress(operator), lambda i: "host" not in i["spec"]["rules"][0]
    )
    assert mended["metadata"]["annotations"]["controller.example/state"] == "x"
    assert mended["spec"]["ingressClassName"] == "theirs"
    await operator.annotate("demo", **{"controller.example/wish": "y"})
    await operator.until_async(
        "the user's annotation",
        lambda: ingress(operator),
        lambda i: i["metadata"]["annotations"].get("controller.example/wish") == "y",
    )
    await operator.settled()
    await operator.edit("demo", {"op": "remove", "path": "/spec/headGroupSpec/enableIngress"})
    await until_names(operator, INGRESSES, set())
    for reason in ("CreatedIngress", "UpdatedIngress", "DeletedIngress"):
        await operator.until_async(reason, lambda r=reason: operator.warnings(r), bool)


async def test_a_foreign_ingress_of_that_name_is_left_alone_and_told_of(operator: Bed) -> None:
    theirs = await operator.client.create(
        INGRESSES,
        operator.namespace,
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": NAME},
            "spec": {"defaultBackend": {"service": {"name": "x", "port": {"number": 1}}}},
        },
    )
    await operator.create(web())
    await operator.until_live(1)
    (text,) = await operator.until_async("told", lambda: operator.warnings("FailedToCreateIngress"), bool)
    assert "belongs to somebody else" in text
    await operator.settled()
    assert await ingress(operator) == theirs
    assert operator.calls["get", "ingresses"] <= 2
    await operator.patch("demo", headGroupSpec={"enableIngress": False})
    await operator.settled()
    assert await ingress(operator) == theirs


async def test_an_idle_cluster_with_an_ingress_is_not_written(operator: Bed) -> None:
    await operator.create(web(ingressOptions={"host": "a.example", "tls": [{"hosts": ["a.example"]}]}))
    await operator.until_live(1)
    await until_names(operator, INGRESSES, {NAME})
    await idle(operator)


# -- route -------------------------------------------------------------------------------------------------------------

ROUTE_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "routes.route.openshift.io"},
    "spec": {
        "group": "route.openshift.io",
        "scope": "Namespaced",
        "names": {"plural": "routes", "singular": "route", "kind": "Route", "listKind": "RouteList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture(scope="module")
def openshift(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server that serves routes."""
    crd: Path = tmp_path_factory.mktemp("crds") / "route.yaml"
    crd.write_text(json.dumps(ROUTE_CRD))
    with ControlPlane.start(Options(bare=True, crds=(CRD, crd))) as plane:
        yield plane


async def test_openshift_gets_a_route(openshift: ControlPlane, namespace: NamespaceFactory) -> None:
    async with bed(openshift, namespace(openshift), status_interval=0.1) as b:
        await b.create(web())
        await until_names(b, ROUTES, {"demo-head-route"})
        assert await names_of(b, INGRESSES) == set()
        await b.until_live(1)
        await idle(b)
        await b.patch("demo", headGroupSpec={"enableIngress": False})
        await until_names(b, ROUTES, set())


async def test_openshift_gets_an_ingress_if_the_administrator_wants_it(
    openshift: ControlPlane, namespace: NamespaceFactory
) -> None:
    async with bed(openshift, namespace(openshift), ingress_on_openshift=True) as b:
        await b.create(web())
        await until_names(b, INGRESSES, {NAME})
        assert await names_of(b, ROUTES) == set()
        assert b.calls["list", "routes"] == 0


async def test_what_is_not_served_is_not_watched(operator: Bed) -> None:
    assert operator.calls["list", "routes"] == operator.calls["list", "podgroups"] == 0
    assert operator.calls["list", "secrets"] == operator.calls["watch", "secrets"] == 0


# -- network policies --------------------------------------------------------------------------------------------------


@pytest.fixture
async def fencing(apiserver: ControlPlane, namespace: NamespaceFactory) -> AsyncIterator[Bed]:
    settings = {"feature_gates": {"RayClusterNetworkPolicy": True}, "status_interval": 0.1}
    async with bed(apiserver, namespace(apiserver), **settings) as made:
        yield made


async def test_policies_follow_the_spec(fencing: Bed) -> None:
    rules = {"head": {"ingressRules": [{"ports": [{"port": 8265}]}]}}
    await fencing.create(raycluster("demo", group("a"), group("b"), networkPolicy=rules))
    await until_names(fencing, POLICIES, {"demo-head", "demo-workers-a", "demo-workers-b"})
    await fencing.until_live(3)
    await idle(fencing)
    await fencing.edit("demo", {"op": "remove", "path": "/spec/workerGroupSpecs/1"})
    await until_names(fencing, POLICIES, {"demo-head", "demo-workers-a"})
    await fencing.edit("demo", {"op": "remove", "path": "/spec/networkPolicy"})
    await until_names(fencing, POLICIES, set())


async def test_a_hole_in_a_policy_is_closed(fencing: Bed) -> None:
    await fencing.create(raycluster("demo", networkPolicy={}))
    await until_names(fencing, POLICIES, {"demo-head"})
    await fencing.settled()
    hole = [{"op": "add", "path": "/spec/ingress/-", "value": {}}]
    await fencing.client.patch(POLICIES, fencing.namespace, "demo-head", hole)

    async def policy() -> dict[str, Any]:
        return await fencing.client.get(POLICIES, fencing.namespace, "demo-head")

    await fencing.until_async("closed", policy, lambda p: len(p["spec"]["ingress"]) == 1)


async def test_policies_of_an_operator_that_had_the_gate_go_with_the_field(
    fencing: Bed, apiserver: ControlPlane
) -> None:
    """The field is taken out while no operator with the gate runs."""
    await fencing.create(raycluster("demo", networkPolicy={}))
    await until_names(fencing, POLICIES, {"demo-head"})
    await fencing.stop()
    await fencing.edit("demo", {"op": "remove", "path": "/spec/networkPolicy"})
    async with bed(apiserver, fencing.namespace):
        await until_names(fencing, POLICIES, set())


# -- token -------------------------------------------------------------------------------------------------------------


async def secret(b: Bed, name: str = "demo") -> dict[str, Any]:
    return await b.client.get(SECRETS, b.namespace, name)


def auth(**options: object) -> dict[str, Any]:
    return raycluster("demo", authOptions={**TOKEN, **options})


async def test_a_token_is_made_once_and_never_read_again(operator: Bed) -> None:
    made = await operator.create(auth())
    await operator.until_live(1)
    await operator.until_async("the Secret", lambda: names_of(operator, SECRETS), lambda n: "demo" in n)
    first = await secret(operator)
    assert len(base64.b64decode(base64.b64decode(first["data"]["auth_token"]), validate=True)) == 32
    assert first["metadata"]["labels"] == {"ray.io/cluster": "demo"}
    assert [o["uid"] for o in first["metadata"]["ownerReferences"]] == [uid_of(made)]
    await idle(operator)
    await operator.restart()
    await idle(operator)
    assert await secret(operator) == first
    assert operator.made("secrets") == 1
    assert operator.calls["get", "secrets"] <= 4
    assert operator.calls["list", "secrets"] == 0


async def test_two_clusters_never_have_the_same_token(operator: Bed) -> None:
    for name in ("one", "two"):
        await operator.create({**auth(), "metadata": {"name": name}})
    await operator.until_async("Secrets", lambda: names_of(operator, SECRETS), lambda n: {"one", "two"} <= n)
    assert (await secret(operator, "one"))["data"] != (await secret(operator, "two"))["data"]


async def test_a_secret_of_ours_that_has_lost_its_token_gets_a_new_one(operator: Bed, monkeypatch: Any) -> None:
    monkeypatch.setattr("tpu_operator.controller.lookups.FRESH", 0.1)
    await operator.create(auth())
    await operator.until_live(1)
    await operator.until_async("the Secret", lambda: names_of(operator, SECRETS), lambda n: "demo" in n)
    await operator.settled()
    body = {"data": {"auth_token": None, "more": base64.b64encode(b"kept").decode()}}
    await operator.client.patch(SECRETS, operator.namespace, "demo", body)
    await operator.annotate("demo", look="1")
    found = await operator.until_async("a token", lambda: secret(operator), lambda s: "auth_token" in s["data"])
    assert base64.b64decode(found["data"]["more"]) == b"kept"


async def test_a_secret_of_somebody_else_is_not_touched(operator: Bed) -> None:
    """Quirk 7: without the key, pods would wait for ever without a word."""
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "demo"}, "stringData": {"x": "y"}}
    theirs = await operator.client.create(SECRETS, operator.namespace, body)
    await operator.create(auth())
    await operator.until_async("told", lambda: operator.warnings("NameTaken"), bool)
    await operator.settled()
    assert await secret(operator) == theirs
    assert await operator.pods() == []
    body = {"stringData": {"auth_token": "mine"}}
    await operator.client.patch(SECRETS, operator.namespace, "demo", body)
    await operator.until_live(1)


async def test_a_secret_of_the_users_choice_is_not_even_looked_at(operator: Bed) -> None:
    await operator.create(auth(secretName="mine"))
    await operator.until_live(1)
    await operator.settled()
    assert operator.calls["get", "secrets"] == operator.made("secrets") == 0


async def test_the_token_is_in_no_log(operator: Bed, caplog: pytest.LogCaptureFixture, capsys: Any) -> None:
    await operator.create(auth())
    await operator.until_live(1)
    await operator.until_async("the Secret", lambda: names_of(operator, SECRETS), lambda n: "demo" in n)
    await operator.settled()
    value = (await secret(operator))["data"]["auth_token"]
    told = capsys.readouterr()
    for text in (caplog.text, told.out, told.err):
        assert value not in text
        assert base64.b64decode(value).decode() not in text


# -- the user's service account ----------------------------------------------------------------------------------------


async def test_pods_wait_for_the_users_service_account(operator: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    """AD-07."""
    monkeypatch.setattr("tpu_operator.planning.prerequisites.LOOK_AGAIN", 0.5)
    monkeypatch.setattr("tpu_operator.controller.lookups.NEWS", 0.2)
    head = {"rayStartParams": {}, "template": pod_template(serviceAccountName="team-sa")}
    await operator.create(raycluster("demo", group("g"), enableInTreeAutoscaling=True, headGroupSpec=head))
    (text,) = await operator.until_async("told", lambda: operator.warnings("AutoscalerServiceAccountNotFound"), bool)
    assert "team-sa" in text
    await operator.watch_for(1)
    assert await operator.pods() == []
    with pytest.raises(Gone):
        await operator.client.get(ACCOUNTS, operator.namespace, "team-sa")
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "team-sa"}}
    await operator.client.create(ACCOUNTS, operator.namespace, body)
    await operator.until_live(2, seconds=3)
    assert len(await operator.warnings("AutoscalerServiceAccountNotFound")) == 1


# -- services ----------------------------------------------------------------------------------------------------------


async def test_a_head_service_goes_when_its_name_is_changed(operator: Bed) -> None:
    await operator.create(raycluster("demo"))
    await operator.until_live(1)
    await until_names(operator, SERVICES, {"demo-head-svc"})
    for name in ("door", "gate"):
        await operator.patch("demo", headGroupSpec={"headService": {"metadata": {"name": name}}})
        await until_names(operator, SERVICES, {name})
