from __future__ import annotations

import pytest
from some_cluster import CONFIG, cluster, group, head_of, ray, worker_of

SERVICE = {"ray.io/originated-from-crd": "RayService"}


def kind(probe: dict) -> str:
    return "http" if "httpGet" in probe else "exec" if "exec" in probe else "other"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (None, "exec"),
        ("", "exec"),
        ("latest", "exec"),
        ("2", "exec"),
        ("2.52.9", "exec"),
        ("2.53.0", "http"),
        ("2.53", "http"),
        ("v2.53.0", "http"),
        ("2.53.0rc1", "http"),
        ("3.0.0.dev0", "http"),
        ("10.0", "http"),
    ],
)
def test_the_handler_follows_from_the_ray_version(version, expected):
    own = cluster(group(), rayVersion=version)
    for container in (ray(head_of(own)), ray(worker_of(own))):
        assert kind(container["livenessProbe"]) == kind(container["readinessProbe"]) == expected


@pytest.mark.parametrize(
    ("labels", "head", "liveness", "readiness"),
    [
        ({}, True, (30, 5, 120), (10, 5, 10)),
        ({}, False, (30, 2, 120), (10, 2, 10)),
        (SERVICE, True, (30, 5, 120), (10, 5, 10)),
        (SERVICE, False, (30, 2, 120), (10, 2, 1)),
    ],
)
def test_timing_is_kuberays(labels, head, liveness, readiness):
    own = cluster(group(), labels=labels, rayVersion="2.46.0")
    container = ray(head_of(own) if head else worker_of(own))
    for probe, expected in ((container["livenessProbe"], liveness), (container["readinessProbe"], readiness)):
        assert (probe["initialDelaySeconds"], probe["timeoutSeconds"], probe["failureThreshold"]) == expected
        assert (probe["periodSeconds"], probe["successThreshold"]) == (5, 1)


def test_ports_follow_the_parameters():
    params = {"dashboard-agent-listen-port": "1001", "dashboard-port": "1002"}
    old = cluster(head={"rayStartParams": params}, rayVersion="2.46.0")
    (command,) = ray(head_of(old))["livenessProbe"]["exec"]["command"][2:]
    assert "http://localhost:1001/api/local_raylet_healthz" in command
    assert "http://localhost:1002/api/gcs_healthz" in command
    new = cluster(head={"rayStartParams": params}, rayVersion="2.53.0")
    assert ray(head_of(new))["readinessProbe"]["httpGet"] == {"path": "/api/healthz", "port": 1001}


@pytest.mark.parametrize("port", ["$PORT", "", "0", "70000", "-1"])
def test_a_port_that_is_no_number_falls_back(port):
    own = cluster(head={"rayStartParams": {"dashboard-agent-listen-port": port}}, rayVersion="2.53.0")
    assert ray(head_of(own))["livenessProbe"]["httpGet"]["port"] == 52365


@pytest.mark.parametrize(("ports", "expected"), [([], 8000), ([{"name": "serve", "containerPort": 8001}], 8001)])
@pytest.mark.parametrize("version", ["2.46.0", "2.55.0"])
def test_workers_of_a_service_are_ready_when_serve_answers(ports, expected, version):
    own = cluster(group({"ports": ports}), labels=SERVICE, rayVersion=version)
    command = ray(worker_of(own))["readinessProbe"]["exec"]["command"]
    assert f"http://localhost:{expected}/-/healthz" in command[2]


def test_the_users_probes_stay():
    own = cluster(group({"livenessProbe": {"tcpSocket": {"port": 1}}, "readinessProbe": None}))
    assert kind(ray(worker_of(own))["livenessProbe"]) == "other"
    assert kind(ray(worker_of(own))["readinessProbe"]) == "exec"


def test_no_probes_if_the_administrator_wants_none():
    config = CONFIG.model_copy(update={"probes_injection": False})
    assert not {"livenessProbe", "readinessProbe"} & ray(head_of(cluster(), config)).keys()
