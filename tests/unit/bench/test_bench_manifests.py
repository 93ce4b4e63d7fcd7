import json

import pytest

from bench.manifests import Bodies, as_created, floor_copy, ray_cluster, scale_down

STORED = {
    "metadata": {
        "name": "c-tpu-worker-abcde",
        "generateName": "c-tpu-worker-",
        "uid": "1",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{}],
        "labels": {"ray.io/cluster": "c", "app.kubernetes.io/created-by": "kuberay-operator"},
    },
    "spec": {
        "nodeName": "n",
        "priority": 0,
        "dnsPolicy": "ClusterFirst",
        "containers": [{"name": "ray-worker", "terminationMessagePath": "/dev/termination-log", "image": "i"}],
        "tolerations": [{"key": "node.kubernetes.io/not-ready"}, {"key": "google.com/tpu"}],
    },
    "status": {"phase": "Running"},
}


def test_what_the_server_added_is_taken_off_again():
    assert as_created(STORED) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {key: STORED["metadata"][key] for key in ("name", "generateName", "labels")},
        "spec": {"containers": [{"name": "ray-worker", "image": "i"}], "tolerations": [{"key": "google.com/tpu"}]},
    }


def test_the_stored_pod_is_left_as_it_was():
    before = json.dumps(STORED)
    as_created(STORED)
    assert json.dumps(STORED) == before


def test_no_label_of_a_bare_pod_is_one_that_an_operator_selects():
    labels = floor_copy(as_created(STORED), "before", 3)["metadata"]["labels"]
    assert labels == {"bar.io/cluster": "before", "app.kubernetes.io/created-by": "bench-barefloor"}


def test_bare_pods_have_names_of_their_own_and_one_is_like_the_head():
    bodies = Bodies(as_created(STORED), as_created(STORED))
    pods = bodies.floor("before", 4)
    assert len({pod["metadata"]["name"] for pod in pods}) == 5
    assert len(bodies.floor("before", 4, head=False)) == 4


@pytest.mark.parametrize(("hosts", "selects"), [(4, True), (1, False)])
def test_slices_of_four_hosts_are_tpu_slices(hosts, selects):
    group = ray_cluster("c", 2, hosts=hosts)["spec"]["workerGroupSpecs"][0]
    assert ("nodeSelector" in group["template"]["spec"]) is selects
    assert (group["replicas"], group["numOfHosts"]) == (2, hosts)


def test_a_pod_template_has_about_six_kilobytes():
    group = ray_cluster("c", 2)["spec"]["workerGroupSpecs"][0]
    assert 5_500 < len(json.dumps(group["template"])) < 6_500


def test_the_autoscalers_patch_holds_the_new_number_and_the_victims():
    patch = scale_down(3, ["a", "b"])
    assert [(op["path"].rsplit("/", 1)[1], op["value"]) for op in patch] == [
        ("replicas", 3),
        ("scaleStrategy", {"workersToDelete": ["a", "b"]}),
    ]
