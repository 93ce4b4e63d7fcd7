"""Our CRD in a real API server: accepted, explained, defaulted, checked, pruned, printed and merged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from devcluster.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable

    from devcluster.plane import ControlPlane

pytestmark = pytest.mark.apiserver

Json = dict[str, Any]
TEMPLATE: Json = {"spec": {"containers": [{"name": "ray", "image": "ray"}]}}


def ray_cluster(
    version: str = "v1", *, head: Json | None = None, group: Json | None = None, status: Json | None = None, **spec: Any
) -> Json:
    """A small RayCluster; what is given is merged in."""
    return {
        "apiVersion": f"ray.io/{version}",
        "kind": "RayCluster",
        "metadata": {"name": "c"},
        "spec": {
            "headGroupSpec": {"template": TEMPLATE, **(head or {})},
            "workerGroupSpecs": [{"groupName": "g", "template": TEMPLATE, **(group or {})}],
            **spec,
        },
        **({"status": status} if status else {}),
    }


class Clusters:
    """RayClusters of one namespace, by kubectl."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace

    def kubectl(self, *args: str, body: Json | None = None) -> str:
        return self.plane.kubectl("-n", self.namespace, *args, stdin=None if body is None else json.dumps(body))

    def create(self, body: Json, *flags: str) -> Json:
        return json.loads(self.kubectl("create", "-f", "-", "-o", "json", *flags, body=body))

    def apply(self, body: Json, manager: str) -> Json:
        command = ("apply", "--server-side", f"--field-manager={manager}", "-f", "-", "-o", "json")
        return json.loads(self.kubectl(*command, body=body))

    def patch(self, body: Json, *flags: str) -> Json:
        return json.loads(
            self.kubectl("patch", "raycluster", "c", "--type=merge", "-p", json.dumps(body), "-o", "json", *flags)
        )

    def get(self, resource: str = "rayclusters.v1.ray.io") -> Json:
        return json.loads(self.kubectl("get", resource, "c", "-o", "json"))


@pytest.fixture
def clusters(apiserver: ControlPlane, namespace: Callable[[ControlPlane], str]) -> Clusters:
    return Clusters(apiserver, namespace(apiserver))


def first_group(cluster: Json) -> Json:
    return cluster["spec"]["workerGroupSpecs"][0]


def container(cluster: Json) -> Json:
    return cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]


def test_the_api_server_has_nothing_against_the_schema(apiserver):
    conditions = json.loads(apiserver.kubectl("get", "crd", "rayclusters.ray.io", "-o", "json"))["status"]["conditions"]
    told = {c["type"]: c["status"] for c in conditions}
    assert (told["Established"], told["NamesAccepted"]) == ("True", "True")
    assert told.get("NonStructuralSchema", "False") == "False"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("raycluster", "slices"),
        ("raycluster.spec.workerGroupSpecs", "numOfHosts"),
        ("raycluster.spec.workerGroupSpecs.numOfHosts", "Hosts (pods) of each slice"),
        ("raycluster.spec.workerGroupSpecs.template.spec", "nodeSelector"),
        ("raycluster.spec.headGroupSpec.headService.spec", "loadBalancerClass"),
        ("raycluster.spec.networkPolicy.head.ingressRules.from", "podSelector"),
        ("raycluster.status.workerGroups", "readySlices"),
    ],
)
def test_kubectl_explains(apiserver, path, text):
    assert text in apiserver.kubectl("explain", path)


def test_defaults_are_filled_in(clusters):
    group = first_group(clusters.create(ray_cluster()))
    told = {key: group[key] for key in ("replicas", "minReplicas", "maxReplicas", "numOfHosts", "priority")}
    assert told == {"replicas": 0, "minReplicas": 0, "maxReplicas": 2147483647, "numOfHosts": 1, "priority": 0}


def test_null_counts_as_not_set(clusters):
    group = first_group(clusters.create(ray_cluster(group={"replicas": None, "minReplicas": None, "numOfHosts": None})))
    assert (group["replicas"], group["minReplicas"], group["numOfHosts"]) == (0, 0, 1)


def test_what_was_left_out_elsewhere_stays_out(clusters):
    made = clusters.create(ray_cluster())
    assert made["spec"].keys() == {"headGroupSpec", "workerGroupSpecs"}
    assert "status" not in made


def test_a_network_policy_denies_all_by_default(clusters):
    assert clusters.create(ray_cluster(networkPolicy={}))["spec"]["networkPolicy"] == {"mode": "DenyAll"}


def test_a_port_without_protocol_is_a_tcp_port(clusters):
    ports = {"containers": [{"name": "ray", "ports": [{"containerPort": 1}]}]}
    made = clusters.create(ray_cluster(head={"template": {"spec": ports}}))
    assert container(made)["ports"] == [{"containerPort": 1, "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"upgradeStrategy": {"type": "Rolling"}}, "spec.upgradeStrategy.type: Unsupported value"),
        ({"authOptions": {"mode": "on"}}, "spec.authOptions.mode: Unsupported value"),
        ({"autoscalerOptions": {"upscalingMode": "Fast"}}, "spec.autoscalerOptions.upscalingMode: Unsupported value"),
        ({"autoscalerOptions": {"version": "v3"}}, "spec.autoscalerOptions.version: Unsupported value"),
        ({"gcsFaultToleranceOptions": {"backend": "etcd"}}, "spec.gcsFaultToleranceOptions.backend: Unsupported value"),
        ({"networkPolicy": {"mode": "AllowAll"}}, "spec.networkPolicy.mode: Unsupported value"),
        ({"managedBy": "someone"}, "managedBy must be ray.io/kuberay-operator or kueue.x-k8s.io/multikueue"),
        ({"group": {"replicas": "ten"}}, "spec.workerGroupSpecs[0].replicas"),
        ({"group": {"replicas": 2**31}}, "spec.workerGroupSpecs[0].replicas"),
        ({"group": {"groupName": None}}, "spec.workerGroupSpecs[0].groupName"),
        ({"group": {"template": {"spec": {}}}}, "spec.workerGroupSpecs[0].template.spec.containers"),
        ({"head": {"rayStartParams": {"num-cpus": 0}}}, "spec.headGroupSpec.rayStartParams.num-cpus"),
        ({"gcsFaultToleranceOptions": {"storage": {"size": "big"}}}, "spec.gcsFaultToleranceOptions.storage.size"),
        (
            {"networkPolicy": {"workerGroups": [{"groupName": "g"}, {"groupName": "g"}]}},
            "spec.networkPolicy.workerGroups[1]: Duplicate value",
        ),
    ],
)
def test_mistakes_are_refused(clusters, fields, complaint):
    with pytest.raises(CommandError) as caught:
        clusters.create(ray_cluster(**fields))
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        (
            {"managedBy": "ray.io/kuberay-operator"},
            {"managedBy": "kueue.x-k8s.io/multikueue"},
            "managedBy cannot be changed",
        ),
        (
            {"gcsFaultToleranceOptions": {"backend": "redis"}},
            {"gcsFaultToleranceOptions": {"backend": "rocksdb"}},
            "the backend of a RayCluster cannot be changed",
        ),
    ],
)
def test_fixed_fields_are_fixed(clusters, before, after, complaint):
    clusters.create(ray_cluster(**before))
    with pytest.raises(CommandError) as caught:
        clusters.patch({"spec": after})
    assert complaint in str(caught.value)


def test_the_manager_can_be_added_later_as_with_kuberay(clusters):
    clusters.create(ray_cluster())
    assert clusters.patch({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}})["spec"]["managedBy"]


def test_what_kuberay_accepts_is_accepted(clusters):
    odd = ray_cluster(
        group={"groupName": "No Label!", "replicas": -1, "minReplicas": 5, "maxReplicas": 1, "numOfHosts": 0}
    )
    odd["spec"]["workerGroupSpecs"] *= 2
    odd["spec"]["headGroupSpec"]["template"] = {"spec": {"containers": []}}
    assert len(clusters.create(odd)["spec"]["workerGroupSpecs"]) == 2


def test_unknown_fields_are_pruned(clusters):
    strange = ray_cluster(
        group={"color": "red"}, head={"template": {**TEMPLATE, "metadata": {"name": "n", "uid": "u"}}}
    )
    made = clusters.create(strange, "--validate=false")
    assert "color" not in first_group(made)
    assert made["spec"]["headGroupSpec"]["template"]["metadata"] == {"name": "n"}


def test_kubectl_names_unknown_fields(clusters):
    with pytest.raises(CommandError, match=r'unknown field "spec\.workerGroupSpecs\[0\]\.color"'):
        clusters.create(ray_cluster(group={"color": "red"}))


def test_the_old_version_is_served_with_the_old_fields(clusters):
    group = {"numOfHosts": 4, "idleTimeoutSeconds": 9, "rayStartParams": {}}
    clusters.create(ray_cluster(group=group, head={"rayStartParams": {}}))
    old = clusters.get("rayclusters.v1alpha1.ray.io")
    assert old["apiVersion"] == "ray.io/v1alpha1"
    assert "idleTimeoutSeconds" not in first_group(old)
    assert first_group(old)["numOfHosts"] == 4  # an addition: a client of the old version takes no slice apart (OP-07)
    assert first_group(clusters.get())["numOfHosts"] == 4


def test_the_old_version_needs_start_parameters(clusters):
    with pytest.raises(CommandError) as caught:
        clusters.create(ray_cluster("v1alpha1"))
    assert "rayStartParams: Required value" in str(caught.value)
    clusters.create(ray_cluster("v1alpha1", head={"rayStartParams": {}}, group={"rayStartParams": {}}))
    assert first_group(clusters.get())["numOfHosts"] == 1


STATUS: Json = {
    "state": "ready",
    "desiredWorkerReplicas": 8,
    "availableWorkerReplicas": 7,
    "desiredCPU": "12",
    "desiredMemory": "64Gi",
    "desiredGPU": "0",
    "desiredTPU": "32",
    "head": {"podIP": "10.0.0.1", "serviceIP": "10.1.0.1"},
    "conditions": [
        {"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    ],
    "workerGroups": [{"name": "g", "desiredSlices": 2, "readySlices": 2, "formingSlices": 0, "brokenSlices": 0}],
}


def test_status_is_written_apart_from_the_spec(clusters):
    made = clusters.create(ray_cluster(status=STATUS))
    assert "status" not in made
    told = clusters.patch({"status": STATUS, "spec": {"suspend": True}}, "--subresource=status")
    assert told["status"] == STATUS
    assert "suspend" not in told["spec"]
    assert told["metadata"]["generation"] == made["metadata"]["generation"]


@pytest.mark.parametrize("reason", ["", "no words", "x" * 1025])
def test_a_bad_reason_is_refused(clusters, reason):
    clusters.create(ray_cluster())
    condition = {**STATUS["conditions"][0], "reason": reason}
    with pytest.raises(CommandError, match=r"status\.conditions\[0\]\.reason"):
        clusters.patch({"status": {"conditions": [condition]}}, "--subresource=status")


def test_kubectl_get_shows_the_columns(clusters):
    clusters.create(ray_cluster())
    clusters.patch({"status": STATUS}, "--subresource=status")
    header, row = clusters.kubectl("get", "rayclusters").splitlines()
    assert header.split("  ")[0] == "NAME"
    assert [c.strip() for c in header.split("  ") if c] == [
        "NAME",
        "DESIRED WORKERS",
        "AVAILABLE WORKERS",
        "CPUS",
        "MEMORY",
        "GPUS",
        "STATUS",
        "AGE",
    ]
    assert row.split()[:7] == ["c", "8", "7", "12", "64Gi", "0", "ready"]
    wide = clusters.kubectl("get", "rayclusters", "-o", "wide")
    assert all(word in wide for word in ("TPUS", "HEAD POD IP", "10.0.0.1", "10.1.0.1"))


def test_it_is_listed_with_everything_else(clusters):
    clusters.create(ray_cluster())
    assert "raycluster.ray.io/c" in clusters.kubectl("get", "all", "-o", "name")


def test_two_appliers_share_the_environment_of_a_container(clusters):
    def with_env(name: str) -> Json:
        env = {"containers": [{"name": "ray", "env": [{"name": name, "value": "1"}]}]}
        return {**ray_cluster(), "spec": {"headGroupSpec": {"template": {"spec": env}}}}

    clusters.apply(with_env("A"), "first")
    assert [e["name"] for e in container(clusters.apply(with_env("B"), "second"))["env"]] == ["A", "B"]


def test_worker_groups_are_replaced_as_a_whole(clusters):
    clusters.apply(ray_cluster(), "first")
    with pytest.raises(CommandError, match="conflict"):
        clusters.apply(ray_cluster(group={"replicas": 2}), "second")
