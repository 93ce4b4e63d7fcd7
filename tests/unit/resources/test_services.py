from __future__ import annotations

import pytest
from some_cluster import CONFIG, cluster, group, template

from tpu_operator.resources.services import head_service, headless_service, serve_service

USUAL = {"client": 10001, "dashboard": 8265, "gcs-server": 6379, "metrics": 8080, "serve": 8000}
CHIPS = {"resources": {"limits": {"google.com/tpu": "4"}}}


def ports(service: dict) -> dict[str, int]:
    return {p["name"]: p["port"] for p in service["spec"]["ports"]}


def with_head(**head: object) -> dict:
    return head_service(cluster(head=head), CONFIG)


def test_the_head_service_is_headless_and_has_kuberays_labels():
    service = head_service(cluster(), CONFIG)
    assert service["metadata"]["name"] == "demo-head-svc"
    assert service["metadata"]["labels"] == {
        "ray.io/cluster": "demo",
        "ray.io/node-type": "head",
        "ray.io/identifier": "demo-head",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert ports(service) == USUAL


def test_the_selector_names_only_what_no_template_can_change():
    labels = {"ray.io/identifier": "mine", "app.kubernetes.io/name": "front", "ray.io/cluster": "other"}
    service = with_head(template={"metadata": {"labels": labels}, **template()})
    assert service["spec"]["selector"] == {"ray.io/cluster": "demo", "ray.io/node-type": "head"}
    assert service["metadata"]["labels"]["app.kubernetes.io/name"] == "front"


@pytest.mark.parametrize(
    ("kind", "cluster_ip", "headless"),
    [(None, False, True), ("ClusterIP", False, True), ("ClusterIP", True, False), ("NodePort", False, False)],
)
def test_when_the_head_service_is_headless(kind, cluster_ip, headless):
    config = CONFIG.model_copy(update={"head_cluster_ip_service": cluster_ip})
    spec = head_service(cluster(head={"serviceType": kind} if kind else {}), config)["spec"]
    assert spec["type"] == (kind or "ClusterIP")
    assert (spec.get("clusterIP") == "None") is headless


@pytest.mark.parametrize(
    ("container_ports", "params", "expected"),
    [
        (
            [],
            {"port": "1", "dashboard-port": "2", "metrics-export-port": "3", "ray-client-server-port": "4"},
            {"gcs-server": 1, "dashboard": 2, "metrics": 3, "client": 4, "serve": 8000},
        ),
        ([{"containerPort": 7}], {}, {"7-port": 7, "metrics": 8080}),
        ([{"name": "metrics", "containerPort": 7}], {}, {"metrics": 7}),
        ([], {"port": "$PORT"}, USUAL),
    ],
)
def test_where_ports_come_from(container_ports, params, expected):
    service = with_head(rayStartParams=params, template=template({"ports": container_ports}))
    assert ports(service) == expected
    assert list(ports(service)) == sorted(expected)


def test_a_udp_port_stays_one():
    service = with_head(template=template({"ports": [{"name": "dns", "containerPort": 53, "protocol": "UDP"}]}))
    assert service["spec"]["ports"][0] == {"name": "dns", "port": 53, "protocol": "UDP"}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ([], USUAL),
        ([{"name": "api", "port": 9000}], {"api": 9000, **USUAL}),
        ([{"name": "dashboard", "port": 80}], {**USUAL, "dashboard": 80}),
        ([{"name": "web", "port": 8265}], {"web": 8265, **{n: p for n, p in USUAL.items() if n != "dashboard"}}),
    ],
)
def test_a_head_service_of_the_user_gets_the_ports_that_it_lacks(own, expected):
    assert ports(with_head(headService={"spec": {"ports": own}})) == expected


def test_a_head_service_of_the_user_keeps_what_is_its_own():
    metadata = {
        "name": "door",
        "namespace": "x",
        "labels": {"team": "a", "ray.io/cluster": "x"},
        "annotations": {"n": "1"},
    }
    spec = {"selector": {"a": "b"}, "sessionAffinity": "ClientIP"}
    service = with_head(serviceType="NodePort", headService={"metadata": metadata, "spec": spec})
    found = service["metadata"]
    assert (found["name"], found["namespace"], found["annotations"]) == ("door", "ns", {"n": "1"})
    assert (found["labels"]["team"], found["labels"]["ray.io/cluster"]) == ("a", "demo")
    assert service["spec"]["type"] == "NodePort"
    assert service["spec"]["selector"] == {"ray.io/cluster": "demo", "ray.io/node-type": "head"}
    assert "clusterIP" not in service["spec"]


@pytest.mark.parametrize(
    ("groups", "wanted"),
    [
        ([], False),
        ([group()], False),
        ([group(CHIPS)], False),
        ([group(), group(numOfHosts=2)], True),
        ([group({**CHIPS, "env": [{"name": "MEGASCALE_NUM_SLICES", "value": "2"}]})], True),
    ],
)
def test_hosts_that_need_names_get_a_headless_service(groups, wanted):
    service = headless_service(cluster(*groups), CONFIG)
    assert (service is not None) is wanted
    if service:
        assert service["metadata"]["name"] == "demo-headless"
        assert service["metadata"]["labels"] == {"ray.io/headless-worker-svc": "demo"}
        assert service["spec"]["selector"] == {"ray.io/cluster": "demo", "ray.io/node-type": "worker"}
        assert service["spec"]["publishNotReadyAddresses"] is True


@pytest.mark.parametrize(
    ("annotation", "container_ports", "expected"),
    [
        (None, [], None),
        ("True", [], None),
        ("true", [], {"serve": 8000}),
        ("true", [{"name": "serve-2", "containerPort": 9}], {"serve-2": 9}),
        ("true", [{"name": "server", "containerPort": 9}], None),
    ],
)
def test_serve_has_a_service_if_it_has_a_port(annotation, container_ports, expected):
    annotations = {"ray.io/enable-serve-service": annotation} if annotation else {}
    own = cluster(head={"template": template({"ports": container_ports})}, annotations=annotations)
    service = serve_service(own, CONFIG)
    assert (service and ports(service)) == expected
