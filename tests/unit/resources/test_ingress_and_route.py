"""The ways to the dashboard from outside."""

from __future__ import annotations

import pytest
from some_cluster import CONFIG, cluster

from tpu_operator.config import OperatorConfig
from tpu_operator.resources.ingress import ingresses
from tpu_operator.resources.registry import child_kinds
from tpu_operator.resources.route import route_name, routes

OPENSHIFT = frozenset({"v1", "networking.k8s.io/v1", "route.openshift.io/v1", "config.openshift.io/v1"})
VANILLA = frozenset({"v1", "networking.k8s.io/v1"})
NO_ROUTES = frozenset({"v1", "networking.k8s.io/v1", "security.openshift.io/v1"})


def web(annotations=None, **head):
    return cluster(head={"enableIngress": True, **head}, annotations=annotations or {})


def spec(**head):
    (made,) = ingresses(web(**head), CONFIG)
    return made["spec"]


def test_none_is_made_unless_it_is_wanted():
    for wanted in (None, False):
        assert ingresses(cluster(head={"enableIngress": wanted}), CONFIG) == ()
        assert routes(cluster(head={"enableIngress": wanted}), CONFIG) == ()


def test_it_leads_to_the_dashboard_port_of_the_head_service():
    (path,) = spec()["rules"][0]["http"]["paths"]
    assert (path["path"], path["pathType"]) == ("/", "Prefix")
    assert path["backend"]["service"] == {"name": "demo-head-svc", "port": {"number": 8265}}
    assert "host" not in spec()["rules"][0]
    assert "tls" not in spec()


def test_it_follows_a_dashboard_that_has_moved_and_a_service_of_another_name():
    made = spec(rayStartParams={"dashboard-port": "9000"}, headService={"metadata": {"name": "door"}})
    (path,) = made["rules"][0]["http"]["paths"]
    assert path["backend"]["service"] == {"name": "door", "port": {"number": 9000}}


def test_options_are_taken_over():
    tls = [{"hosts": ["a"], "secretName": "s"}, {"secretName": "t"}]
    made = spec(ingressOptions={"host": "a", "path": "/x", "pathType": "Exact", "tls": tls})
    assert made["rules"][0]["host"] == "a"
    assert made["rules"][0]["http"]["paths"][0]["path"] == "/x"
    assert made["rules"][0]["http"]["paths"][0]["pathType"] == "Exact"
    assert made["tls"] == tls


@pytest.mark.parametrize("build", [ingresses, routes])
def test_annotations_are_those_for_the_ingress_controller_only(build):
    """Quirk 63."""
    annotations = {
        "kubernetes.io/ingress.class": "nginx",
        "nginx.ingress.kubernetes.io/rewrite-target": "/$1",
        "cert-manager.io/issuer": "x",
        "ray.io/ft-enabled": "false",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    (made,) = build(web(annotations), CONFIG)
    assert set(made["metadata"]["annotations"]) == {
        "nginx.ingress.kubernetes.io/rewrite-target",
        "cert-manager.io/issuer",
    }


def test_the_class_is_that_of_the_annotation():
    (made,) = ingresses(web({"kubernetes.io/ingress.class": "nginx"}), CONFIG)
    assert made["spec"]["ingressClassName"] == "nginx"
    assert "ingressClassName" not in spec()
    assert "annotations" not in ingresses(web(), CONFIG)[0]["metadata"]


def test_a_route_leads_to_the_same_port():
    (made,) = routes(web(), CONFIG)
    assert made["spec"] == {
        "to": {"kind": "Service", "name": "demo-head-svc", "weight": 100},
        "port": {"targetPort": 8265},
        "wildcardPolicy": "None",
    }


@pytest.mark.parametrize("namespace", ["ns", "n" * 40, "n" * 63])
def test_the_host_of_a_route_has_room_for_its_namespace(namespace):
    from dataclasses import replace

    of = web()
    name = route_name(replace(of, metadata=replace(of.metadata, name="c" * 53, namespace=namespace)))
    assert len(name) + 1 + len(namespace) <= max(63, 21 + len(namespace))


@pytest.mark.parametrize(
    ("served", "on_openshift", "expected"),
    [
        (None, False, {"Ingress"}),
        (VANILLA, False, {"Ingress"}),
        (OPENSHIFT, False, {"Route"}),
        (OPENSHIFT, True, {"Ingress"}),
        (NO_ROUTES, False, {"Ingress"}),
    ],
)
def test_openshift_gets_routes_unless_the_administrator_wants_ingresses(served, on_openshift, expected):
    config = OperatorConfig(ingress_on_openshift=on_openshift)
    assert {k.kind for k in child_kinds(config, served)} & {"Ingress", "Route"} == expected
