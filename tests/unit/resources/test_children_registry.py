from __future__ import annotations

import pytest
from some_cluster import CONFIG, cluster, group, template

from tpu_operator.resources.registry import CHILD_KINDS, ChildKey, desired_children, possible_children

CLUSTERS = {
    "minimal": cluster(group()),
    "multi-host": cluster(group(numOfHosts=2)),
    "autoscaled": cluster(group(), enableInTreeAutoscaling=True),
    "own account": cluster(head={"template": template(serviceAccountName="mine")}, enableInTreeAutoscaling=True),
    "own service": cluster(head={"headService": {"metadata": {"name": "door"}}}),
    "serve": cluster(annotations={"ray.io/enable-serve-service": "true"}),
}


def keys(name: str) -> list[ChildKey]:
    return [ChildKey(m["kind"], m["metadata"]["name"]) for m in desired_children(CLUSTERS[name], CONFIG)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("minimal", {("Service", "demo-head-svc")}),
        ("multi-host", {("Service", "demo-head-svc"), ("Service", "demo-headless")}),
        (
            "autoscaled",
            {("Service", "demo-head-svc"), ("ServiceAccount", "demo"), ("Role", "demo"), ("RoleBinding", "demo")},
        ),
        ("own account", {("Service", "demo-head-svc"), ("Role", "demo"), ("RoleBinding", "demo")}),
        ("own service", {("Service", "door")}),
        ("serve", {("Service", "demo-head-svc"), ("Service", "demo-serve-svc")}),
    ],
)
def test_what_a_cluster_should_have(name, expected):
    assert set(keys(name)) == expected
    assert len(keys(name)) == len(expected)


@pytest.mark.parametrize("name", CLUSTERS)
def test_what_should_be_there_could_be_there(name):
    assert set(keys(name)) <= possible_children(CLUSTERS[name])


@pytest.mark.parametrize("name", CLUSTERS)
def test_what_was_turned_off_is_still_known(name):
    """But policies of worker groups that are gone, which are known by their labels."""
    without = cluster(annotations={})
    assert possible_children(without) <= possible_children(CLUSTERS[name])


@pytest.mark.parametrize("name", CLUSTERS)
def test_children_belong_to_the_cluster_and_are_seen_by_a_watch(name):
    kinds = {kind.kind: kind for kind in CHILD_KINDS}
    for manifest in desired_children(CLUSTERS[name], CONFIG):
        kind, metadata = kinds[manifest["kind"]], manifest["metadata"]
        assert manifest["apiVersion"] == kind.api_version
        (owner,) = metadata["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == ("uid-1", True)
        assert any(_selects(selector, metadata["labels"]) for selector in kind.selectors)


def _selects(selector: str, labels: dict[str, str]) -> bool:
    key, _, value = selector.partition("=")
    return key in labels and value in ("", labels[key])


def test_the_binding_leads_to_the_users_account():
    (binding,) = [m for m in desired_children(CLUSTERS["own account"], CONFIG) if m["kind"] == "RoleBinding"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "mine", "namespace": "ns"}]
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "demo"}


def test_the_role_lets_the_autoscaler_do_its_work():
    (role,) = [m for m in desired_children(CLUSTERS["autoscaled"], CONFIG) if m["kind"] == "Role"]
    rules = {(r["apiGroups"][0], r["resources"][0]): set(r["verbs"]) for r in role["rules"]}
    assert rules == {
        ("", "pods"): {"get", "list", "watch", "patch"},
        ("", "pods/resize"): {"patch"},
        ("ray.io", "rayclusters"): {"get", "patch"},
    }
