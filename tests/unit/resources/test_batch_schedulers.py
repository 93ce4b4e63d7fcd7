"""What batch schedulers find in pods and PodGroups."""

from __future__ import annotations

import json
from typing import Any

import pytest
from some_cluster import cluster, group, head_of, template, worker_of

from tpu_operator.config import OperatorConfig
from tpu_operator.planning.children import child_key
from tpu_operator.planning.validation.batch_scheduler import kai_queue, network_tier
from tpu_operator.resources.pod_groups import plugins_pod_groups, volcano_pod_groups
from tpu_operator.resources.registry import child_kinds, desired_children, possible_children

GANG = "ray.io/gang-scheduling-enabled"
TASK_GROUPS = "yunikorn.apache.org/task-groups"
TASK_GROUP = "yunikorn.apache.org/task-group-name"
RAY_JOB = {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "job"}


def sized(cpu: str, **more: str) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu, **more}}}


def slices(replicas: int = 2, hosts: int = 4, **fields: Any) -> dict[str, Any]:
    return group(sized("2", **{"google.com/tpu": "4"}), replicas=replicas, numOfHosts=hosts, **fields)


def a_cluster(*groups: dict[str, Any], labels: dict[str, str] | None = None, **spec: Any):
    return cluster(*groups, head={"template": template(sized("1"))}, labels=labels or {}, **spec)


def config(scheduler: str, **fields: Any) -> OperatorConfig:
    return OperatorConfig(batch_scheduler=scheduler, **fields)


def both(made, settings: OperatorConfig) -> list[dict[str, Any]]:
    return [head_of(made, settings), worker_of(made, settings)]


# -- pods --------------------------------------------------------------------------------------------------------------


def test_without_a_batch_scheduler_pods_are_left_alone():
    made = a_cluster(slices(), labels={"volcano.sh/queue-name": "q", GANG: "true"})
    for pod in both(made, OperatorConfig()):
        assert "schedulerName" not in pod["spec"]
        assert "volcano.sh/queue-name" not in pod["metadata"]["labels"]


@pytest.mark.parametrize(
    ("scheduler", "name"),
    [
        ("volcano", "volcano"),
        ("yunikorn", "yunikorn"),
        ("scheduler-plugins", "scheduler-plugins-scheduler"),
        ("kai-scheduler", "kai-scheduler"),
    ],
)
def test_every_pod_goes_to_the_scheduler_whatever_its_template_says(scheduler, name):
    made = cluster(group(template=template(schedulerName="mine")))
    assert {pod["spec"]["schedulerName"] for pod in both(made, config(scheduler))} == {name}


@pytest.mark.parametrize(
    ("scheduler", "given", "in_pod"),
    [
        (
            "volcano",
            {"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high"},
            {"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high"},
        ),
        (
            "yunikorn",
            {"yunikorn.apache.org/app-id": "a", "yunikorn.apache.org/queue": "root.q"},
            {"applicationId": "a", "queue": "root.q"},
        ),
        ("kai-scheduler", {"kai.scheduler/queue": "q"}, {"kai.scheduler/queue": "q"}),
        ("scheduler-plugins", {GANG: "true"}, {"scheduling.x-k8s.io/pod-group": "demo"}),
    ],
)
def test_labels_of_the_cluster_reach_the_pods(scheduler, given, in_pod):
    usual = {key for pod in both(a_cluster(slices()), config(scheduler)) for key in pod["metadata"]["labels"]}
    assert not usual & in_pod.keys()
    for pod in both(a_cluster(slices(), labels=given), config(scheduler)):
        assert in_pod.items() <= pod["metadata"]["labels"].items()
    for pod in both(a_cluster(slices(), labels=dict.fromkeys(given, "")), config(scheduler)):
        assert not {value for key, value in pod["metadata"]["labels"].items() if key in in_pod} & {""}


@pytest.mark.parametrize(("labels", "name"), [({}, "ray-demo-pg"), (RAY_JOB, "ray-job-pg")])
def test_volcano_finds_the_pod_group_and_the_task_in_annotations(labels, name):
    head, worker = both(a_cluster(slices(), labels=labels), config("volcano"))
    for pod, task in ((head, "headgroup"), (worker, "small")):
        annotations = pod["metadata"]["annotations"]
        assert annotations["scheduling.k8s.io/group-name"] == name
        assert annotations["volcano.sh/task-spec"] == task


# -- gangs -------------------------------------------------------------------------------------------------------------

ON_OR_OFF = [("true", True), ("yes", True), ("", True), ("false", False), ("False", False), (None, False)]


@pytest.mark.parametrize(("value", "on"), ON_OR_OFF)
def test_false_means_no_gang_and_any_other_value_means_one(value, on):
    made = a_cluster(slices(), labels={} if value is None else {GANG: value})
    head = head_of(made, config("yunikorn"))
    assert (TASK_GROUPS in head["metadata"].get("annotations", {})) is on
    assert bool(plugins_pod_groups(made, config("scheduler-plugins"))) is on
    label = "scheduling.x-k8s.io/pod-group"
    assert (label in head_of(made, config("scheduler-plugins"))["metadata"]["labels"]) is on


def task_groups(made, **fields: Any) -> dict[str, dict[str, Any]]:
    (text,) = {pod["metadata"]["annotations"][TASK_GROUPS] for pod in both(made, config("yunikorn", **fields))}
    return {item["name"]: item for item in json.loads(text)}


def test_yunikorn_reads_the_gang_from_annotations():
    place = {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "t"}], "affinity": {"nodeAffinity": {}}}
    pods = template(sized("2"), **place)
    made = a_cluster(group(template=pods, replicas=3, minReplicas=1, numOfHosts=2), labels={GANG: "true"})
    assert task_groups(made) == {
        "headgroup": {"name": "headgroup", "minMember": 1, "minResource": {"cpu": "1"}},
        "small": {"name": "small", "minMember": 6, "minResource": {"cpu": "2"}, **place},
    }
    head, worker = both(made, config("yunikorn"))
    assert head["metadata"]["annotations"][TASK_GROUP] == "headgroup"
    assert worker["metadata"]["annotations"][TASK_GROUP] == "small"


def test_under_the_autoscaler_the_gang_of_yunikorn_is_the_least_and_without_empty_groups():
    labels = {GANG: "true"}
    made = a_cluster(slices(3, minReplicas=1), labels=labels, enableInTreeAutoscaling=True)
    assert task_groups(made)["small"]["minMember"] == 4
    none = a_cluster(slices(3), labels=labels, enableInTreeAutoscaling=True)
    assert task_groups(none).keys() == {"headgroup"}
    assert TASK_GROUP not in worker_of(none, config("yunikorn"))["metadata"]["annotations"]


def test_placeholders_are_as_large_as_the_pods_with_their_sidecars():
    made = a_cluster(slices(1), labels={GANG: "true"}, enableInTreeAutoscaling=True)
    sidecar = {"name": "audit", "image": "a", **sized("250m")}
    groups = task_groups(made, head_sidecar_containers=[sidecar])
    assert groups["headgroup"]["minResource"] == {"cpu": "1750m", "memory": "512Mi"}


def test_the_users_own_task_groups_are_kept():
    made = a_cluster(slices(0), labels={GANG: "true"}, annotations={TASK_GROUPS: "[]"})
    for pod in both(made, config("yunikorn")):
        assert pod["metadata"]["annotations"][TASK_GROUPS] == "[]"
        assert TASK_GROUP in pod["metadata"]["annotations"]


# -- PodGroups ---------------------------------------------------------------------------------------------------------


SIZES = [
    pytest.param([slices(2)], {}, (9, "17", "32"), id="MH-34 pods, not slices, and the head"),
    pytest.param([slices(9, maxReplicas=2)], {}, (9, "17", "32"), id="quirk 51 clamped in both numbers"),
    pytest.param([slices(3, minReplicas=1)], {"enableInTreeAutoscaling": True}, (5, "9", "16"), id="the least"),
    pytest.param([slices(2), slices(1, suspend=True, groupName="off")], {}, (9, "17", "32"), id="suspended group"),
    pytest.param([slices(-3, minReplicas=-2)], {}, (1, "1", None), id="never negative"),
]


@pytest.mark.parametrize(("groups", "spec", "size"), SIZES)
@pytest.mark.parametrize("scheduler", ["volcano", "scheduler-plugins"])
def test_the_pod_group_has_the_size_of_the_cluster(groups, spec, size, scheduler):
    build = {"volcano": volcano_pod_groups, "scheduler-plugins": plugins_pod_groups}[scheduler]
    (made,) = build(a_cluster(*groups, labels={GANG: "true"}, **spec), config(scheduler))
    least = made["spec"]["minResources"]
    assert (made["spec"]["minMember"], least["cpu"], least.get("google.com/tpu")) == size


def test_volcanos_pod_group_follows_the_labels_of_the_cluster():
    labels = {
        "volcano.sh/queue-name": "q",
        "ray.io/priority-class-name": "high",
        "volcano.sh/network-topology-mode": "soft",
        "volcano.sh/network-topology-highest-tier-allowed": "2",
    }
    annotations = {"volcano.sh/x": "y", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    (made,) = volcano_pod_groups(a_cluster(labels=labels, annotations=annotations), config("volcano"))
    assert (made["apiVersion"], made["metadata"]["name"]) == ("scheduling.volcano.sh/v1beta1", "ray-demo-pg")
    assert made["metadata"]["annotations"] == {"volcano.sh/x": "y"}
    assert made["metadata"]["ownerReferences"][0]["controller"]
    assert made["spec"] == {
        "minMember": 1,
        "minResources": {"cpu": "1"},
        "queue": "q",
        "priorityClassName": "high",
        "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
    }


@pytest.mark.parametrize(
    ("build", "settings", "labels", "spec"),
    [
        pytest.param(volcano_pod_groups, OperatorConfig(), {}, {}, id="volcano is not chosen"),
        pytest.param(volcano_pod_groups, config("volcano"), RAY_JOB, {}, id="the RayJob has one"),
        pytest.param(volcano_pod_groups, config("volcano"), {}, {"suspend": True}, id="volcano, suspended"),
        pytest.param(plugins_pod_groups, config("volcano"), {GANG: "true"}, {}, id="plugins are not chosen"),
        pytest.param(plugins_pod_groups, config("scheduler-plugins"), {}, {}, id="no gang"),
        pytest.param(plugins_pod_groups, config("scheduler-plugins"), {GANG: ""}, {"suspend": True}, id="suspended"),
    ],
)
def test_there_is_no_pod_group_where_it_would_be_in_vain(build, settings, labels, spec):
    assert build(a_cluster(slices(), labels=labels, **spec), settings) == ()


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tier", "mistakes"), [("2", 0), ("", 0), ("two", 1), ("-1", 1), ("1.5", 1)])
def test_a_network_tier_that_is_no_number_is_a_mistake(tier, mistakes):
    made = a_cluster(labels={"volcano.sh/network-topology-highest-tier-allowed": tier})
    assert len(list(network_tier(made, config("volcano")))) == mistakes
    assert not list(network_tier(made, config("yunikorn")))


def test_a_missing_queue_of_kai_is_told():
    assert [notice.key for notice in kai_queue(a_cluster(), config("kai-scheduler"))] == ["kai-queue"]
    assert not list(kai_queue(a_cluster(labels={"kai.scheduler/queue": "q"}), config("kai-scheduler")))
    assert not list(kai_queue(a_cluster(), OperatorConfig()))


# -- registry ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheduler", "api"),
    [
        ("", None),
        ("volcano", "scheduling.volcano.sh/v1beta1"),
        ("yunikorn", None),
        ("scheduler-plugins", "scheduling.x-k8s.io/v1alpha1"),
        ("kai-scheduler", None),
    ],
)
def test_only_the_chosen_schedulers_api_is_dealt_with(scheduler, api):
    kinds = [kind.api_version for kind in child_kinds(config(scheduler)) if kind.kind == "PodGroup"]
    assert kinds == ([api] if api else [])
    made = a_cluster(slices(), labels={GANG: "true"})
    wanted = {child_key(m) for m in desired_children(made, config(scheduler)) if m["kind"] == "PodGroup"}
    assert len(wanted) == len(kinds)
    assert wanted == {key for key in possible_children(made, config(scheduler)) if key.kind == "PodGroup"}
