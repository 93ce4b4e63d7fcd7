from __future__ import annotations

import copy

import pytest
from some_cluster import CONFIG, cluster, group

from tpu_operator.resources.diff import covers, must_be_replaced
from tpu_operator.resources.registry import desired_children


@pytest.mark.parametrize(
    ("live", "desired", "covered"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"a": "1"}, False),
        ({}, {"a": 1}, False),
        ({}, {"a": None, "b": {}, "c": [], "d": False, "e": "", "f": 0}, True),
        ({"d": True}, {"d": False}, False),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 1}}}, True),
        ({"a": "x"}, {"a": {"b": 1}}, False),
        ({"l": [1, 2]}, {"l": [1, 2]}, True),
        ({"l": [1, 2]}, {"l": [2, 1]}, False),
        ({"l": [1, 2]}, {"l": [1]}, False),
        ({"l": [{"name": "a", "x": 1}, {"name": "b"}]}, {"l": [{"name": "b"}, {"name": "a"}]}, True),
        ({"l": [{"name": "a"}]}, {"l": [{"name": "b"}]}, False),
        ({"l": [{"k": "a", "x": 1}]}, {"l": [{"k": "a"}]}, True),
        ({"l": [{"k": "a"}, {"k": "b"}]}, {"l": [{"k": "a"}]}, False),
        ({"ports": [{"port": 1, "protocol": "TCP", "targetPort": 1}]}, {"ports": [{"port": 1}]}, True),
        ({"ports": [{"port": 1, "protocol": "UDP"}]}, {"ports": [{"port": 1}]}, False),
        ({"selector": {"a": "1"}}, {"selector": {"a": "1"}}, True),
        ({"selector": {"a": "1", "b": "2"}}, {"selector": {"a": "1"}}, False),
        ({"requests": {"storage": "1Gi"}}, {"requests": {"storage": "1024Mi"}}, True),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": 1}}, True),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}, False),
        ({"requests": {}}, {"requests": {"cpu": "2"}}, False),
    ],
)
def test_what_is_meant_is_there_already(live, desired, covered):
    assert covers(live, desired) is covered


def managed(fields: dict, manager: str = "tpu-operator", operation: str = "Apply") -> dict:
    return {"manager": manager, "operation": operation, "fieldsV1": fields}


@pytest.mark.parametrize(
    ("entry", "covered"),
    [
        (managed({"f:metadata": {"f:annotations": {"f:kept": {}}}}), True),
        (managed({"f:metadata": {"f:annotations": {".": {}, "f:gone": {}}}}), False),
        (managed({"f:metadata": {"f:annotations": {"f:gone": {}}}}, manager="kubectl"), True),
        (managed({"f:metadata": {"f:annotations": {"f:gone": {}}}}, operation="Update"), True),
        (managed({"f:spec": {"f:ports": {'k:{"port":1,"protocol":"TCP"}': {".": {}, "f:name": {}}}}}), True),
        (managed({"f:spec": {"f:ports": {'k:{"port":2,"protocol":"TCP"}': {".": {}, "f:name": {}}}}}), False),
        (managed({"f:spec": {"f:clusterIP": {}}}), False),
        (managed({"f:metadata": {"f:finalizers": {'v:"a"': {}}}}), True),
        (managed({"f:metadata": {"f:finalizers": {'v:"b"': {}}}}), False),
    ],
)
def test_what_was_meant_before_and_no_longer_is_noticed(entry, covered):
    desired = {
        "metadata": {"annotations": {"kept": "1"}, "finalizers": ["a"]},
        "spec": {"ports": [{"name": "x", "port": 1}]},
    }
    live = copy.deepcopy(desired)
    live["metadata"] |= {"managedFields": [entry]}
    live["metadata"]["annotations"]["gone"] = "1"
    live["spec"]["ports"][0]["protocol"] = "TCP"
    live["spec"]["ports"].append({"name": "y", "port": 2, "protocol": "TCP"})
    assert covers(live, desired) is covered


def test_children_cover_themselves():
    own = cluster(group(numOfHosts=2), enableInTreeAutoscaling=True)
    for manifest in desired_children(own, CONFIG):
        assert covers(copy.deepcopy(manifest), manifest)
        assert not must_be_replaced(manifest, manifest)


def service(**spec: object) -> dict:
    return {"kind": "Service", "spec": spec}


@pytest.mark.parametrize(
    ("live", "desired", "replaced"),
    [
        (service(clusterIP="None"), service(clusterIP="None"), False),
        (service(clusterIP="None"), service(type="NodePort"), True),
        (service(clusterIP="10.0.0.1"), service(clusterIP="None"), True),
        (service(clusterIP="10.0.0.1", type="ClusterIP"), service(type="NodePort"), False),
        ({"roleRef": {"name": "a"}}, {"kind": "RoleBinding", "roleRef": {"name": "b"}}, True),
        ({"rules": []}, {"kind": "Role", "rules": [1]}, False),
    ],
)
def test_what_cannot_be_changed_is_replaced(live, desired, replaced):
    assert must_be_replaced(live, desired) is replaced
