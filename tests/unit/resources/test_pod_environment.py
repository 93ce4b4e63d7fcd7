from __future__ import annotations

import pytest
from some_cluster import CONFIG, cluster, container, env, group, head_of, ray, template, worker_of

COMMON = [
    "RAY_CLUSTER_NAME",
    "RAY_CLUSTER_NAMESPACE",
    "RAY_CLOUD_INSTANCE_ID",
    "RAY_NODE_TYPE_NAME",
    "KUBERAY_GEN_RAY_START_CMD",
    "RAY_PORT",
    "RAY_ADDRESS",
    "RAY_USAGE_STATS_KUBERAY_IN_USE",
]
DISK = "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE"


def given(**variables: str) -> dict:
    return {"env": [{"name": name, "value": value} for name, value in variables.items()]}


def test_order_is_kuberays():
    own = cluster(group())
    assert list(env(ray(head_of(own)))) == [*COMMON, "RAY_USAGE_STATS_EXTRA_TAGS", DISK]
    assert list(env(ray(worker_of(own)))) == ["FQ_RAY_IP", "RAY_IP", *COMMON, DISK]


@pytest.mark.parametrize(
    ("name", "winner"),
    [
        ("FQ_RAY_IP", "operator"),
        ("RAY_IP", "operator"),
        ("RAY_CLUSTER_NAME", "operator"),
        ("RAY_CLUSTER_NAMESPACE", "operator"),
        ("RAY_CLOUD_INSTANCE_ID", "operator"),
        ("RAY_NODE_TYPE_NAME", "operator"),
        ("KUBERAY_GEN_RAY_START_CMD", "operator"),
        ("RAY_PORT", "user"),
        ("RAY_ADDRESS", "user"),
        ("RAY_USAGE_STATS_KUBERAY_IN_USE", "user"),
        (DISK, "user"),
    ],
)
def test_a_variable_that_both_set_is_there_once_where_the_user_put_it(name, winner):
    own = cluster(group(given(**{"BEFORE": "1", name: "mine", "AFTER": "2"})))
    found = env(ray(worker_of(own)))
    assert list(found)[:3] == ["BEFORE", name, "AFTER"]
    assert (found[name] == "mine") is (winner == "user")


def test_tags_of_the_head_are_the_operators():
    own = cluster(head={"template": template(given(RAY_USAGE_STATS_EXTRA_TAGS="team=a"))}, labels={})
    assert env(ray(head_of(own)))["RAY_USAGE_STATS_EXTRA_TAGS"].endswith(";kuberay_crd=RayCluster")


@pytest.mark.parametrize(
    ("label", "creator"), [("RayJob", "RayJob"), ("RayService", "RayService"), ("Other", "RayCluster")]
)
def test_tags_name_the_creator(label, creator):
    own = cluster(labels={"ray.io/originated-from-crd": label})
    assert env(ray(head_of(own)))["RAY_USAGE_STATS_EXTRA_TAGS"].endswith(f";kuberay_crd={creator}")


def test_variables_that_the_user_repeats_end_up_once_if_they_are_ours():
    own = cluster(group({"env": [{"name": "RAY_IP", "value": "a"}, {"name": "RAY_IP", "value": "b"}]}))
    assert env(ray(worker_of(own)))["RAY_IP"] == "demo-head-svc"


def test_init_containers_know_the_head():
    spec = template(initContainers=[{"name": "mine", "image": "x", "env": [{"name": "RAY_IP", "value": "a"}]}])
    own = cluster(group(template=spec), head={"template": spec})
    for pod in (head_of(own), worker_of(own)):
        assert env(container(pod, "mine")) == {
            "RAY_IP": "demo-head-svc",
            "FQ_RAY_IP": "demo-head-svc.ns.svc.cluster.local",
        }


def test_the_waiting_container_is_like_ray_and_the_last():
    like = {
        "imagePullPolicy": "Never",
        "securityContext": {"runAsUser": 1},
        "envFrom": [{"secretRef": {"name": "tls"}}],
        "volumeMounts": [{"name": "code", "mountPath": "/code"}],
        **given(MODE="train"),
    }
    spec = template(like, initContainers=[{"name": "mine", "image": "x"}])
    pod = worker_of(cluster(group(template=spec)))
    assert [c["name"] for c in pod["spec"]["initContainers"]] == ["mine", "wait-gcs-ready"]
    waits = container(pod, "wait-gcs-ready")
    for field in ("imagePullPolicy", "securityContext", "envFrom", "volumeMounts"):
        assert waits[field] == like[field]
    assert waits["image"] == "ray:2"
    assert list(env(waits)) == ["MODE", "FQ_RAY_IP", "RAY_IP"]
    size = {"cpu": "200m", "memory": "256Mi"}
    assert waits["resources"] == {"limits": size, "requests": size}
    assert "ray health-check --address demo-head-svc.ns.svc.cluster.local:6379" in waits["args"][0]


def test_nobody_waits_if_the_administrator_wants_it_so():
    config = CONFIG.model_copy(update={"init_container_injection": False})
    assert "initContainers" not in worker_of(cluster(group()), config)["spec"]


def test_the_head_waits_for_nothing():
    assert "initContainers" not in head_of(cluster())["spec"]


def redis(**options: object) -> dict:
    return {"gcsFaultToleranceOptions": options}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {}),
        (redis(redisAddress="r:1"), {"RAY_external_storage_namespace": "uid-1", "RAY_REDIS_ADDRESS": "r:1"}),
        (redis(), {"RAY_external_storage_namespace": "uid-1"}),
        (
            redis(redisAddress="r:1", externalStorageNamespace="p", redisUsername={"value": "u"}),
            {"RAY_external_storage_namespace": "p", "RAY_REDIS_ADDRESS": "r:1", "REDIS_USERNAME": "u"},
        ),
        (redis(backend="rocksdb"), {"RAY_gcs_storage": "rocksdb", "RAY_gcs_storage_path": "/data/gcs"}),
    ],
)
def test_fault_tolerance_of_the_head(spec, expected):
    found = env(ray(head_of(cluster(**spec))))
    ours = {n: v for n, v in found.items() if "REDIS" in n or "storage" in n}
    assert ours == expected


def test_a_password_for_redis_is_only_ever_a_reference():
    reference = {"secretKeyRef": {"name": "redis", "key": "password"}}
    pod = head_of(cluster(**redis(redisAddress="r:1", redisPassword={"valueFrom": reference})))
    assert env(ray(pod))["REDIS_PASSWORD"] == reference
    assert " --redis-password=$REDIS_PASSWORD " in ray(pod)["args"][0]


@pytest.mark.parametrize(
    ("annotation", "told"), [("true", "true"), ("TRUE", "true"), ("false", "false"), (None, "false")]
)
def test_the_head_tells_whether_it_is_fault_tolerant(annotation, told):
    own = cluster(group(), annotations={"ray.io/ft-enabled": annotation} if annotation else {})
    assert head_of(own)["metadata"]["annotations"]["ray.io/ft-enabled"] == told
    assert ("RAY_gcs_rpc_server_reconnect_timeout_s" in env(ray(worker_of(own)))) is (told == "true")


@pytest.mark.parametrize(("claim", "name"), [({}, "demo-gcs-pvc"), ({"claimName": "mine", "subPath": "gcs"}, "mine")])
def test_rocksdb_lives_on_a_claim(claim, name):
    pod = head_of(cluster(**redis(backend="rocksdb", storage=claim)))
    volumes = {v["name"]: v for v in pod["spec"]["volumes"]}
    mounts = {m["name"]: m for m in ray(pod)["volumeMounts"]}
    assert volumes["gcs-storage"]["persistentVolumeClaim"]["claimName"] == name
    assert mounts["gcs-storage"].get("subPath") == claim.get("subPath")


TOKEN = {"secretKeyRef": {"name": "demo", "key": "auth_token"}}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"mode": "token"}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}),
        (
            {"mode": "token", "secretName": "mine"},
            {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": {"secretKeyRef": {"name": "mine", "key": "auth_token"}}},
        ),
        (
            {"mode": "token", "enableK8sTokenAuth": True},
            {"RAY_AUTH_MODE": "token", "RAY_ENABLE_K8S_TOKEN_AUTH": "true"},
        ),
        ({"mode": "disabled"}, {}),
        ({}, {}),
    ],
)
def test_every_container_that_talks_to_ray_has_the_token(options, expected):
    own = cluster(group(), authOptions=options, enableInTreeAutoscaling=True)
    head, worker = head_of(own), worker_of(own)
    for c in (ray(head), container(head, "autoscaler"), ray(worker), container(worker, "wait-gcs-ready")):
        assert {n: v for n, v in env(c).items() if "AUTH" in n} == expected
        mounts = {m["mountPath"] for m in c.get("volumeMounts", [])}
        assert ("/var/run/secrets/ray.io/serviceaccount" in mounts) is ("RAY_ENABLE_K8S_TOKEN_AUTH" in expected)
