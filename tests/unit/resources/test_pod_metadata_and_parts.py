from __future__ import annotations

import pytest
from some_cluster import CONFIG, cluster, container, env, group, head_of, ray, template, worker_of

from tpu_operator.resources.pods.place import Place


def test_labels_say_what_a_pod_is():
    own = cluster(group())
    assert head_of(own)["metadata"]["labels"] == {
        "ray.io/cluster": "demo",
        "ray.io/node-type": "head",
        "ray.io/group": "headgroup",
        "ray.io/identifier": "demo-head",
        "ray.io/is-ray-node": "yes",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    labels = worker_of(own, place=Place("small-x", 3, 0, 1))["metadata"]["labels"]
    assert labels["ray.io/worker-group-replica-index"] == "3"
    assert "ray.io/worker-group-replica-name" not in labels


def test_a_host_of_a_slice_has_its_place_in_labels_and_the_size_in_an_annotation():
    metadata = worker_of(cluster(group(numOfHosts=4)), place=Place("small-x", 1, 2, 4))["metadata"]
    assert metadata["labels"]["ray.io/worker-group-replica-name"] == "small-x"
    assert metadata["labels"]["ray.io/worker-group-replica-index"] == "1"
    assert metadata["labels"]["ray.io/replica-host-index"] == "2"
    assert metadata["annotations"] == {"tpu-operator.io/num-of-hosts": "4"}


@pytest.mark.parametrize(
    ("key", "in_template", "in_group", "result"),
    [
        ("team", "a", None, "a"),
        ("team", "a", "b", "b"),
        ("ray.io/identifier", "mine", None, "mine"),
        ("app.kubernetes.io/name", "mine", None, "mine"),
        ("ray.io/cluster", "other", "other", "demo"),
        ("ray.io/node-type", "head", None, "worker"),
        ("ray.io/group", "other", "other", "small"),
        ("ray.io/worker-group-replica-index", "7", "7", "0"),
    ],
)
def test_who_wins_a_label(key, in_template, in_group, result):
    spec = {"metadata": {"labels": {key: in_template}}, **template()}
    own = cluster(group(template=spec, labels={key: in_group} if in_group else {}))
    assert worker_of(own)["metadata"]["labels"][key] == result


def test_names_are_explicit_and_generate_name_stands_beside_them():
    own = cluster(group())
    assert head_of(own)["metadata"]["generateName"] == "demo-head-"
    assert worker_of(own)["metadata"]["generateName"] == "demo-small-worker-"
    assert worker_of(own)["metadata"]["name"] == "demo-small-worker-x"
    fixed = CONFIG.model_copy(update={"deterministic_head_pod_name": True})
    assert "generateName" not in head_of(own, fixed)["metadata"]


def test_other_metadata_of_the_template_is_carried_over():
    others = [{"kind": "A", "name": "a", "uid": "1"}, {"kind": "B", "name": "b", "uid": "2", "controller": True}]
    metadata = {"name": "x", "namespace": "y", "uid": "z", "finalizers": ["f"], "ownerReferences": others}
    found = worker_of(cluster(group(template={"metadata": metadata, **template()})))["metadata"]
    assert found["finalizers"] == ["f"]
    assert found["namespace"] == "ns"
    assert "uid" not in found
    assert [(o["kind"], o.get("controller")) for o in found["ownerReferences"]] == [("A", None), ("RayCluster", True)]


def test_the_head_is_stamped():
    annotations = head_of(cluster())["metadata"]["annotations"]
    assert annotations["ray.io/upgrade-strategy-recreate-hash"] == "hash"
    assert annotations["ray.io/kuberay-version"].startswith("tpu-operator/")
    assert "annotations" not in worker_of(cluster(group()))["metadata"]


@pytest.mark.parametrize(
    ("resources", "limit"),
    [
        ({}, None),
        ({"limits": {"memory": "8Gi"}, "requests": {"memory": "4Gi"}}, "8Gi"),
        ({"requests": {"memory": "4Gi"}}, "4Gi"),
        ({"limits": {"memory": 1024}}, "1024"),
    ],
)
def test_shared_memory_is_as_large_as_the_containers_memory(resources, limit):
    (volume,) = worker_of(cluster(group({"resources": resources})))["spec"]["volumes"]
    assert volume["emptyDir"].get("sizeLimit") == limit


@pytest.mark.parametrize(
    ("container", "params"),
    [
        ({"volumeMounts": [{"name": "mine", "mountPath": "/dev/shm"}]}, {}),
        ({}, {"plasma-directory": "/mnt"}),
    ],
)
def test_no_shared_memory_where_the_user_has_another(container, params):
    assert "volumes" not in worker_of(cluster(group(container, rayStartParams=params)))["spec"]


def test_a_volume_of_the_same_name_is_used():
    spec = template(volumes=[{"name": "shared-mem", "hostPath": {"path": "/x"}}])
    pod = worker_of(cluster(group(template=spec)))
    assert pod["spec"]["volumes"] == spec["spec"]["volumes"]
    assert ray(pod)["volumeMounts"] == [{"name": "shared-mem", "mountPath": "/dev/shm"}]


V2_ENV = "RAY_enable_autoscaler_v2"


@pytest.mark.parametrize(
    ("version", "ray_version", "own_env", "policy", "told"),
    [
        ("v2", None, None, "Never", "true"),
        ("v1", "2.55.0", None, None, "false"),
        (None, "2.46.0", None, None, None),
        (None, None, None, None, None),
        (None, "2.47.0", None, "Never", None),
        (None, "2.55.0", "0", None, "0"),
        (None, "2.41.0", "1", "Never", "1"),
    ],
)
def test_the_restart_policy_follows_from_the_autoscaler(version, ray_version, own_env, policy, told):
    head = {"template": template({"env": [{"name": V2_ENV, "value": own_env}]} if own_env else {})}
    options = {"version": version} if version else {}
    own = cluster(group(), head=head, enableInTreeAutoscaling=True, autoscalerOptions=options, rayVersion=ray_version)
    assert head_of(own)["spec"].get("restartPolicy") == worker_of(own)["spec"].get("restartPolicy") == policy
    assert env(ray(head_of(own))).get(V2_ENV) == told


@pytest.mark.parametrize(("version", "policy"), [("v2", "Never"), (None, "OnFailure")])
def test_a_restart_policy_of_the_user_yields_to_an_explicit_version_only(version, policy):
    own = cluster(
        group(template=template(restartPolicy="OnFailure")),
        enableInTreeAutoscaling=True,
        autoscalerOptions={"version": version} if version else {},
        rayVersion="2.55.0",
    )
    assert worker_of(own)["spec"]["restartPolicy"] == policy


def test_the_autoscaler_stands_beside_the_head_only_if_it_is_on():
    own = cluster(group(), enableInTreeAutoscaling=True)
    head = head_of(own)
    sidecar = container(head, "autoscaler")
    assert head["spec"]["serviceAccountName"] == "demo"
    assert sidecar["image"] == "ray:2"
    assert list(env(sidecar)) == [
        "RAY_CLUSTER_NAME",
        "RAY_CLUSTER_NAMESPACE",
        "RAY_HEAD_POD_NAME",
        "KUBERAY_CRD_VER",
        "KUBERAY_GEN_AUTOSCALER_START_CMD",
    ]
    assert " --no-monitor " in ray(head)["args"][0]
    for c in (ray(head), sidecar):
        assert {"name": "ray-logs", "mountPath": "/tmp/ray"} in c["volumeMounts"]
    assert len(worker_of(own)["spec"]["containers"]) == 1
    assert len(head_of(cluster())["spec"]["containers"]) == 1


def test_the_users_variables_win_in_the_autoscaler():
    options = {"env": [{"name": "KUBERAY_CRD_VER", "value": "v1alpha1"}, {"name": "MORE", "value": "1"}]}
    own = cluster(enableInTreeAutoscaling=True, autoscalerOptions=options)
    found = env(container(head_of(own), "autoscaler"))
    assert (found["KUBERAY_CRD_VER"], found["MORE"]) == ("v1alpha1", "1")


@pytest.mark.parametrize(
    ("ports", "params", "expected"),
    [
        ([], {}, [{"name": "metrics", "containerPort": 8080}]),
        ([], {"metrics-export-port": "9"}, [{"name": "metrics", "containerPort": 9}]),
        ([{"name": "metrics", "containerPort": 1}], {}, [{"name": "metrics", "containerPort": 1}]),
        ([{"containerPort": 1}], {}, [{"containerPort": 1}, {"name": "metrics", "containerPort": 8080}]),
    ],
)
def test_the_metrics_port_is_there_once(ports, params, expected):
    assert ray(worker_of(cluster(group({"ports": ports}, rayStartParams=params))))["ports"] == expected


def test_nulls_in_a_template_mean_nothing():
    empty = {"env": None, "ports": None, "volumeMounts": None, "resources": None, "command": None, "args": None}
    spec = template(empty, initContainers=None, volumes=None)
    spec["metadata"] = None
    own = cluster(group(template=spec), head={"template": spec, "rayStartParams": None})
    plain = cluster(group())
    assert ray(head_of(own))["args"] == ray(head_of(plain))["args"]
    assert env(ray(worker_of(own))) == env(ray(worker_of(plain)))
