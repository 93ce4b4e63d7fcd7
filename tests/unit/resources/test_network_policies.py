"""Isolation of the pods of a cluster."""

from __future__ import annotations

import pytest
from some_cluster import cluster, group

from tpu_operator.config import Gate, OperatorConfig
from tpu_operator.resources.diff import covers
from tpu_operator.resources.network_policy import is_own_policy, network_policies

ON = OperatorConfig(feature_gates={Gate.NETWORK_POLICY})
WITHOUT_DNS = OperatorConfig(feature_gates={Gate.NETWORK_POLICY}, network_policy_dns=False)
OWN = {"podSelector": {"matchLabels": {"ray.io/cluster": "demo"}}}
DNS = {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}


def policies(config=ON, **options):
    made = network_policies(cluster(group(), networkPolicy=options), config)
    return {p["metadata"]["name"]: p["spec"] for p in made}


def test_there_are_none_without_the_field_or_the_gate():
    assert network_policies(cluster(group()), ON) == ()
    assert network_policies(cluster(group(), networkPolicy={}), OperatorConfig()) == ()


@pytest.mark.parametrize(
    ("mode", "types"),
    [
        (None, ["Ingress", "Egress"]),
        ("DenyAll", ["Ingress", "Egress"]),
        ("DenyAllIngress", ["Ingress"]),
        ("DenyAllEgress", ["Egress"]),
    ],
)
def test_what_is_denied_is_what_the_mode_says_and_the_clusters_pods_talk_to_each_other(mode, types):
    for spec in policies(mode=mode).values():
        assert spec["policyTypes"] == types
        assert spec.get("ingress") == ([{"from": [OWN]}] if "Ingress" in types else None)
        assert spec.get("egress") == ([{"to": [OWN]}, DNS] if "Egress" in types else None)


def test_names_are_not_asked_for_if_the_administrator_does_not_want_it():
    """Quirk 65: as in KubeRay then."""
    assert policies(WITHOUT_DNS)["demo-head"]["egress"] == [{"to": [OWN]}]


def test_head_and_groups_have_policies_of_their_own():
    selectors = {name: spec["podSelector"]["matchLabels"] for name, spec in policies().items()}
    assert selectors == {
        "demo-head": {"ray.io/cluster": "demo", "ray.io/node-type": "head"},
        "demo-workers-small": {
            "ray.io/cluster": "demo",
            "ray.io/node-type": "worker",
            "ray.io/group": "small",
        },
    }


@pytest.mark.parametrize(
    ("options", "head", "worker"),
    [
        ({"head": {"ingressRules": [{"ports": [{"port": 1}]}]}}, [{"ports": [{"port": 1}]}], []),
        ({"worker": {"ingressRules": [{}]}}, [], [{}]),
        (
            {
                "worker": {"ingressRules": [{}]},
                "workerGroups": [{"groupName": "small", "ingressRules": [{"from": [OWN]}]}],
            },
            [],
            [{"from": [OWN]}],
        ),
        ({"worker": {"ingressRules": [{}]}, "workerGroups": [{"groupName": "small"}]}, [], []),
    ],
)
def test_exceptions_are_appended(options, head, worker):
    made = policies(**options)
    assert made["demo-head"]["ingress"][1:] == head
    assert made["demo-workers-small"]["ingress"][1:] == worker


def test_the_submitter_of_a_ray_job_reaches_the_dashboard():
    from dataclasses import replace

    plain = cluster(group(), networkPolicy={}, head={"rayStartParams": {"dashboard-port": "9"}})
    owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "train", "controller": True}
    labels = {"ray.io/job-submission-mode": "K8sJobMode"}
    of_job = replace(plain, metadata=replace(plain.metadata, owner_references=(owner,), labels=labels))
    (head, worker) = network_policies(of_job, ON)
    labels = {"ray.io/originated-from-cr-name": "train", "ray.io/originated-from-crd": "RayJob"}
    rule = {"from": [{"podSelector": {"matchLabels": labels}}], "ports": [{"protocol": "TCP", "port": 9}]}
    assert head["spec"]["ingress"] == [{"from": [OWN]}, rule]
    assert worker["spec"]["ingress"] == [{"from": [OWN]}]
    for other in ({"ray.io/job-submission-mode": "HTTPMode"}, {}):
        other_mode = replace(of_job, metadata=replace(of_job.metadata, labels=other))
        assert network_policies(other_mode, ON)[0]["spec"]["ingress"] == [{"from": [OWN]}]


def test_a_policy_of_a_group_that_is_gone_is_known_by_its_labels():
    for made in network_policies(cluster(group(), networkPolicy={}), ON):
        assert is_own_policy(made["metadata"]["labels"])
    assert not is_own_policy({"ray.io/cluster": "demo"})


@pytest.mark.parametrize("path", ["ingress", "egress"])
def test_a_rule_or_a_peer_that_somebody_has_added_is_noticed(path):
    import copy

    (head, _) = network_policies(cluster(group(), networkPolicy={}), ON)
    assert covers(copy.deepcopy(head), head)
    for hole in ([{}], [{"ports": [{"port": 22}]}]):
        live = copy.deepcopy(head)
        live["spec"][path] += hole
        assert not covers(live, head)
    live = copy.deepcopy(head)
    next(iter(live["spec"][path][0].values())).append({"ipBlock": {"cidr": "0.0.0.0/0"}})
    assert not covers(live, head)


def test_what_the_api_server_leaves_out_or_fills_in_is_no_difference():
    rules = {"ingressRules": [{"from": [], "ports": [{"port": 1}]}]}
    (head, _) = network_policies(cluster(group(), networkPolicy={"head": rules}), ON)
    live = {**head, "spec": {**head["spec"], "ingress": [{"from": [OWN]}, {"ports": [{"port": 1, "protocol": "TCP"}]}]}}
    assert covers(live, head)
