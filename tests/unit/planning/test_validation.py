"""Every rule of validation: a row with the mistake, where it is told and how, and twins that are fine."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import pytest

from tpu_operator.api.raycluster import RayCluster
from tpu_operator.config import OperatorConfig
from tpu_operator.planning.validation import CHECKS, validate, warnings

ALL_GATES = {
    "RayClusterNetworkPolicy": True,
    "GCSFaultToleranceEmbeddedStorage": True,
    "RayClusterMTLS": True,
    "RayClusterHistoryServer": True,
}
HEAD = "spec.headGroupSpec"
HEAD_CONTAINER = f"{HEAD}.template.spec.containers[0]"
GROUP = "spec.workerGroupSpecs[0]"
GROUP_CONTAINER = f"{GROUP}.template.spec.containers[0]"
FT = "spec.gcsFaultToleranceOptions"
COLLECTOR = "spec.historyServerOptions.collectorOptions"


def template(name: str) -> dict:
    return {"spec": {"containers": [{"name": name, "image": "ray"}]}}


def manifest() -> dict:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "demo", "namespace": "team", "uid": "u1", "generation": 1},
        "spec": {
            "rayVersion": "2.46.0",
            "headGroupSpec": {"rayStartParams": {}, "template": template("ray-head")},
            "workerGroupSpecs": [
                {
                    "groupName": "g",
                    "replicas": 1,
                    "minReplicas": 0,
                    "maxReplicas": 4,
                    "numOfHosts": 1,
                    "rayStartParams": {},
                    "template": template("ray-worker"),
                }
            ],
        },
    }


def put(document: dict, path: str, value: object) -> None:
    """Set `a.b[0].c` in a document."""
    *parents, last = path.replace("[", ".[").split(".")
    node = document
    for part in parents:
        node = node[int(part[1:-1])] if part.startswith("[") else node.setdefault(part, {})
    if last.startswith("["):
        index = int(last[1:-1])
        node[index:index] = [value]
    else:
        node[last] = value


def cluster(changes: dict[str, object]) -> RayCluster:
    document = manifest()
    for path, value in changes.items():
        put(document, path, copy.deepcopy(value))
    return RayCluster.parse(document)


def env(name: str, value: str = "x") -> list[dict]:
    return [{"name": name, "value": value}]


@dataclass(frozen=True)
class Bad:
    """`changes` to the manifest; the mistake must be told at `field` with `text` in its message."""

    name: str
    changes: dict[str, object]
    field: str
    text: str
    gates: dict[str, bool] = field(default_factory=lambda: ALL_GATES)
    reason: str = "InvalidRayClusterSpec"
    group: str | None = None


def group(**values: object) -> dict:
    return {**manifest()["spec"]["workerGroupSpecs"][0], **values}


HISTORY = {"image": "collector", "env": [{"name": "STORAGE_BACKEND", "value": "Local"}]}


def history(*variables: tuple[str, str], image: str = "collector") -> dict[str, object]:
    return {COLLECTOR: {"image": image, "env": [{"name": n, "value": v} for n, v in variables]}}


AUTOSCALING = {"spec.enableInTreeAutoscaling": True}
V2 = {**AUTOSCALING, "spec.autoscalerOptions.version": "v2"}
TOKEN = {"spec.authOptions.mode": "token"}
ROCKS = {f"{FT}.backend": "rocksdb"}
TLS = {"spec.tlsOptions.enabled": True}
RULE = [{"from": []}]

BAD = [
    Bad(
        "1 name too long",
        {"metadata.name": "a" * 54},
        "metadata.name",
        "54 characters",
        reason="InvalidRayClusterMetadata",
    ),
    Bad(
        "2 name starts with a digit",
        {"metadata.name": "9f1c-demo"},
        "metadata.name",
        "Service",
        reason="InvalidRayClusterMetadata",
    ),
    Bad(
        "2 name with a dot",
        {"metadata.name": "demo.v2"},
        "metadata.name",
        "Service",
        reason="InvalidRayClusterMetadata",
    ),
    Bad(
        "1 head without containers",
        {f"{HEAD}.template.spec.containers": []},
        f"{HEAD}.template.spec.containers",
        "no container",
    ),
    Bad(
        "2 head resources twice",
        {f"{HEAD}.rayStartParams.num-cpus": "1", f"{HEAD}.resources": {"CPU": "1"}},
        f"{HEAD}.resources",
        "num-cpus",
    ),
    Bad(
        "3 head labels as a parameter",
        {f"{HEAD}.rayStartParams.labels": "a=b"},
        f"{HEAD}.rayStartParams.labels",
        "not allowed",
    ),
    Bad("3 head label key", {f"{HEAD}.labels": {"not a key": "v"}}, f"{HEAD}.labels[not a key]", "no valid label"),
    Bad("3 head label value", {f"{HEAD}.labels": {"k": "not a value!"}}, f"{HEAD}.labels[k]", "no valid label"),
    Bad(
        "4a group without containers",
        {f"{GROUP}.template.spec.containers": []},
        f"{GROUP}.template.spec.containers",
        "no container",
    ),
    Bad("4c negative minReplicas", {f"{GROUP}.minReplicas": -1}, f"{GROUP}.minReplicas", "is -1"),
    Bad("4d negative maxReplicas", {f"{GROUP}.maxReplicas": -2}, f"{GROUP}.maxReplicas", "is -2"),
    Bad(
        "4e min above max",
        {f"{GROUP}.minReplicas": 5},
        f"{GROUP}.minReplicas",
        "minReplicas 5 is greater than maxReplicas 4",
    ),
    Bad(
        "4f group resources twice",
        {f"{GROUP}.rayStartParams.resources": "'{}'", f"{GROUP}.resources": {"TPU": "4"}},
        f"{GROUP}.resources",
        "resources",
    ),
    Bad(
        "4g group labels as a parameter",
        {f"{GROUP}.rayStartParams.labels": ""},
        f"{GROUP}.rayStartParams.labels",
        "not allowed",
    ),
    Bad("4g group label value", {f"{GROUP}.labels": {"k": "-"}}, f"{GROUP}.labels[k]", "no valid label"),
    Bad(
        "4h negative group idle timeout",
        {**V2, f"{GROUP}.idleTimeoutSeconds": -1},
        f"{GROUP}.idleTimeoutSeconds",
        "is -1",
    ),
    Bad(
        "4h group idle timeout without v2",
        {**AUTOSCALING, f"{GROUP}.idleTimeoutSeconds": 5},
        f"{GROUP}.idleTimeoutSeconds",
        "v2",
    ),
    Bad("4i priority without v2", {"spec.rayVersion": "2.56.0", f"{GROUP}.priority": 1}, f"{GROUP}.priority", "v2"),
    Bad(
        "4i priority without a version",
        {**V2, "spec.rayVersion": "", f"{GROUP}.priority": 1},
        f"{GROUP}.priority",
        "not set",
    ),
    Bad(
        "4i priority with a strange version",
        {**V2, "spec.rayVersion": "new", f"{GROUP}.priority": 1},
        f"{GROUP}.priority",
        "'new'",
    ),
    Bad(
        "4i priority with old Ray",
        {**V2, "spec.rayVersion": "2.55.9", f"{GROUP}.priority": 1},
        f"{GROUP}.priority",
        "2.56.0",
    ),
    Bad(
        "5 annotation and options",
        {"metadata.annotations": {"ray.io/ft-enabled": "false"}, FT: {"redisAddress": "r:6379"}},
        "metadata.annotations[ray.io/ft-enabled]",
        FT,
    ),
    Bad(
        "6 redis address without fault tolerance",
        {f"{HEAD_CONTAINER}.env": env("RAY_REDIS_ADDRESS")},
        f"{HEAD_CONTAINER}.env[name=RAY_REDIS_ADDRESS]",
        "fault tolerance is off",
    ),
    Bad(
        "7 redis password as a parameter",
        {FT: {"redisAddress": "r"}, f"{HEAD}.rayStartParams.redis-password": "p"},
        f"{HEAD}.rayStartParams.redis-password",
        FT,
    ),
    Bad(
        "7 redis password in the environment",
        {FT: {"redisAddress": "r"}, f"{HEAD_CONTAINER}.env": env("REDIS_PASSWORD")},
        f"{HEAD_CONTAINER}.env[name=REDIS_PASSWORD]",
        FT,
    ),
    Bad(
        "7 redis address in the environment",
        {FT: {"redisAddress": "r"}, f"{HEAD_CONTAINER}.env": env("RAY_REDIS_ADDRESS")},
        f"{HEAD_CONTAINER}.env[name=RAY_REDIS_ADDRESS]",
        FT,
    ),
    Bad(
        "7 storage namespace as an annotation",
        {FT: {"redisAddress": "r"}, "metadata.annotations": {"ray.io/external-storage-namespace": "n"}},
        "metadata.annotations[ray.io/external-storage-namespace]",
        FT,
    ),
    Bad("8 rocksdb without its gate", ROCKS, f"{FT}.backend", "GCSFaultToleranceEmbeddedStorage", gates={}),
    Bad("8 rocksdb with a redis address", {**ROCKS, f"{FT}.redisAddress": "r"}, f"{FT}.redisAddress", "redis only"),
    Bad(
        "8 rocksdb with a redis user",
        {**ROCKS, f"{FT}.redisUsername": {"value": "u"}},
        f"{FT}.redisUsername",
        "redis only",
    ),
    Bad(
        "8 rocksdb with a redis password",
        {**ROCKS, f"{FT}.redisPassword": {"value": "u"}},
        f"{FT}.redisPassword",
        "redis only",
    ),
    Bad(
        "8 rocksdb with a storage namespace",
        {**ROCKS, f"{FT}.externalStorageNamespace": "n"},
        f"{FT}.externalStorageNamespace",
        "redis only",
    ),
    *(
        Bad(
            f"8 own claim with {name}",
            {**ROCKS, f"{FT}.storage": {"claimName": "c", name: value}},
            f"{FT}.storage.{name}",
            "claimName",
        )
        for name, value in {"size": "1Gi", "storageClassName": "s", "accessModes": ["ReadWriteOnce"]}.items()
    ),
    *(
        Bad(
            f"8 rocksdb with {name}",
            {**ROCKS, f"{HEAD_CONTAINER}.env": env(name)},
            f"{HEAD_CONTAINER}.env[name={name}]",
            "operator",
        )
        for name in ("RAY_gcs_storage", "RAY_gcs_storage_path")
    ),
    Bad(
        "8 rocksdb with a mount at its path",
        {**ROCKS, f"{HEAD_CONTAINER}.volumeMounts": [{"name": "x", "mountPath": "/data/gcs/"}]},
        f"{HEAD_CONTAINER}.volumeMounts[0]",
        "/data/gcs",
    ),
    Bad(
        "8 rocksdb with a mount of its name",
        {**ROCKS, f"{HEAD_CONTAINER}.volumeMounts": [{"name": "gcs-storage", "mountPath": "/x"}]},
        f"{HEAD_CONTAINER}.volumeMounts[0]",
        "gcs-storage",
    ),
    Bad(
        "8 rocksdb with a volume of its name",
        {**ROCKS, f"{HEAD}.template.spec.volumes": [{"name": "gcs-storage", "emptyDir": {}}]},
        f"{HEAD}.template.spec.volumes[0].name",
        "gcs-storage",
    ),
    Bad(
        "8 redis with storage", {FT: {"redisAddress": "r", "storage": {"size": "1Gi"}}}, f"{FT}.storage", "rocksdb only"
    ),
    Bad(
        "9 redis user as a parameter",
        {f"{HEAD}.rayStartParams.redis-username": "u"},
        f"{HEAD}.rayStartParams.redis-username",
        "not",
    ),
    Bad(
        "9 redis user in the environment",
        {f"{HEAD_CONTAINER}.env": env("REDIS_USERNAME")},
        f"{HEAD_CONTAINER}.env[name=REDIS_USERNAME]",
        "not allowed",
    ),
    Bad(
        "10 suspended group, gate off",
        {f"{GROUP}.suspend": True},
        f"{GROUP}.suspend",
        "gate",
        gates={"RayJobDeletionPolicy": False},
    ),
    Bad(
        "11 v2 by environment without autoscaling",
        {f"{HEAD_CONTAINER}.env": env("RAY_enable_autoscaler_v2", "1")},
        f"{HEAD_CONTAINER}.env[name=RAY_enable_autoscaler_v2]",
        "enableInTreeAutoscaling",
    ),
    Bad(
        "12a suspended group with autoscaling",
        {**AUTOSCALING, f"{GROUP}.suspend": True},
        f"{GROUP}.suspend",
        "Autoscaling",
    ),
    Bad(
        "12b version told twice",
        {**V2, f"{HEAD_CONTAINER}.env": env("RAY_enable_autoscaler_v2", "0")},
        f"{HEAD_CONTAINER}.env[name=RAY_enable_autoscaler_v2]",
        "together",
    ),
    Bad(
        "12c head restarts under v2",
        {**V2, f"{HEAD}.template.spec.restartPolicy": "Always"},
        f"{HEAD}.template.spec.restartPolicy",
        "Always",
    ),
    Bad(
        "12d group restarts under v2",
        {**V2, f"{GROUP}.template.spec.restartPolicy": "OnFailure"},
        f"{GROUP}.template.spec.restartPolicy",
        "OnFailure",
    ),
    Bad(
        "13 negative idle timeout",
        {"spec.autoscalerOptions.idleTimeoutSeconds": -1},
        "spec.autoscalerOptions.idleTimeoutSeconds",
        "is -1",
    ),
    Bad(
        "14 the operator's variable",
        {"spec.autoscalerOptions.env": env("KUBERAY_GEN_AUTOSCALER_START_CMD")},
        "spec.autoscalerOptions.env[name=KUBERAY_GEN_AUTOSCALER_START_CMD]",
        "operator",
    ),
    Bad("15 history server, gate off", {COLLECTOR: HISTORY}, "spec.historyServerOptions", "gate", gates={}),
    Bad("15 no collector", {"spec.historyServerOptions": {}}, COLLECTOR, "missing"),
    Bad("15 no image", history(("STORAGE_BACKEND", "Local"), image=""), f"{COLLECTOR}.image", "missing"),
    *(
        Bad(
            f"15 own variable {name}",
            history(("STORAGE_BACKEND", "x"), (name, "y")),
            f"{COLLECTOR}.env[name={name}]",
            "operator",
        )
        for name in (
            "POD_IP",
            "FQ_RAY_IP",
            "RAY_CLUSTER_NAME",
            "RAY_CLUSTER_NAMESPACE",
            "RAY_ROLE",
            "OWNER_KIND",
            "OWNER_NAME",
            "EVENTS_PORT",
        )
    ),
    Bad("15 no backend", history(), f"{COLLECTOR}.env[name=STORAGE_BACKEND]", "missing"),
    *(
        Bad(
            f"15 {backend} without {name}",
            history(("STORAGE_BACKEND", backend)),
            f"{COLLECTOR}.env[name={name}]",
            "needed",
        )
        for backend, name in (
            ("gcs", "GCS_BUCKET"),
            ("S3", "S3_REGION"),
            ("AliyunOSS", "OSS_BUCKET"),
            ("AliyunOSS", "OSS_ENDPOINT"),
            ("AliyunOSS", "OSS_REGION"),
            ("AzureBlob", "AZURE_STORAGE_CONNECTION_STRING"),
        )
    ),
    *(
        Bad(
            f"15 Azure {mode}",
            history(("STORAGE_BACKEND", "AzureBlob"), ("AZURE_STORAGE_AUTH_MODE", mode), (given, "x")),
            f"{COLLECTOR}.env[name={needed}]",
            mode,
        )
        for mode, given, needed in (
            ("connection_string", "AZURE_STORAGE_ACCOUNT_URL", "AZURE_STORAGE_CONNECTION_STRING"),
            ("workload_identity", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT_URL"),
            ("default", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT_URL"),
        )
    ),
    Bad(
        "15 a container named like the collector",
        {COLLECTOR: HISTORY, f"{GROUP}.template.spec.containers[1]": {"name": "ray-history-collector"}},
        f"{GROUP}.template.spec.containers[1].name",
        "operator",
    ),
    Bad("16 token without a version", {**TOKEN, "spec.rayVersion": ""}, "spec.authOptions.mode", "not set"),
    Bad("16 token with a strange version", {**TOKEN, "spec.rayVersion": "latest"}, "spec.authOptions.mode", "'latest'"),
    Bad("16 token with old Ray", {**TOKEN, "spec.rayVersion": "2.51.9"}, "spec.authOptions.mode", "2.52.0"),
    Bad(
        "16 Kubernetes token with old Ray",
        {**TOKEN, "spec.rayVersion": "2.54.0", "spec.authOptions.enableK8sTokenAuth": True},
        "spec.authOptions.enableK8sTokenAuth",
        "2.55.0",
    ),
    Bad(
        "16 Kubernetes token with a secret",
        {
            **TOKEN,
            "spec.rayVersion": "2.55.0",
            "spec.authOptions.enableK8sTokenAuth": True,
            "spec.authOptions.secretName": "s",
        },
        "spec.authOptions.secretName",
        "not used",
    ),
    Bad(
        "17 Kubernetes token without token",
        {"spec.authOptions.enableK8sTokenAuth": True},
        "spec.authOptions.enableK8sTokenAuth",
        "mode",
    ),
    Bad("18 network policy, gate off", {"spec.networkPolicy.mode": "DenyAll"}, "spec.networkPolicy", "gate", gates={}),
    *(
        Bad(
            f"19 {mode} with {rules} of {side}",
            {"spec.networkPolicy": {"mode": mode, side: {rules: RULE}}},
            f"spec.networkPolicy.{side}.{rules}",
            mode,
        )
        for mode, rules in (("DenyAllEgress", "ingressRules"), ("DenyAllIngress", "egressRules"))
        for side in ("head", "worker")
    ),
    Bad(
        "19 rules of a group against the mode",
        {"spec.networkPolicy": {"mode": "DenyAllEgress", "workerGroups": [{"groupName": "g", "ingressRules": RULE}]}},
        "spec.networkPolicy.workerGroups[0].ingressRules",
        "DenyAllEgress",
    ),
    Bad(
        "19 rules of an unknown group",
        {"spec.networkPolicy": {"mode": "DenyAll", "workerGroups": [{"groupName": "other"}]}},
        "spec.networkPolicy.workerGroups[0].groupName",
        "no worker group",
    ),
    Bad(
        "19 group name with upper case",
        {"spec.networkPolicy.mode": "DenyAll", f"{GROUP}.groupName": "rayCPUWorkerType"},
        f"{GROUP}.groupName",
        "NetworkPolicy",
    ),
    Bad("20 TLS options, gate off", {"spec.tlsOptions.enabled": False}, "spec.tlsOptions", "gate", gates={}),
    *(
        Bad(f"21 {name} at {where}", {**TLS, f"{where}.env": env(name)}, f"{where}.env[name={name}]", "TLS")
        for name in ("RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")
        for where in (HEAD_CONTAINER, GROUP_CONTAINER, "spec.autoscalerOptions")
    ),
    *(
        Bad(
            f"21 mount {mount} at {where}",
            {**TLS, f"{where}.volumeMounts": [mount]},
            f"{where}.volumeMounts[0]",
            "ray-tls",
        )
        for mount in ({"name": "ray-tls", "mountPath": "/x"}, {"name": "x", "mountPath": "/etc/ray/tls"})
        for where in (HEAD_CONTAINER, GROUP_CONTAINER, "spec.autoscalerOptions")
    ),
    Bad("9.3 unknown upgrade type", {"spec.upgradeStrategy.type": "Rolling"}, "spec.upgradeStrategy.type", "Rolling"),
    *(
        Bad(
            f"9.3 upgrade of a cluster of a {kind}",
            {"spec.upgradeStrategy.type": "None", "metadata.labels": {"ray.io/originated-from-crd": kind}},
            "spec.upgradeStrategy.type",
            kind,
        )
        for kind in ("RayJob", "RayService")
    ),
    Bad(
        "two groups of one name",
        {"spec.workerGroupSpecs[1]": group()},
        "spec.workerGroupSpecs[1].groupName",
        "2 worker groups",
    ),
    Bad("the head's group name", {f"{GROUP}.groupName": "headgroup"}, f"{GROUP}.groupName", "headgroup"),
    *(
        Bad(f"group name {name!r}", {f"{GROUP}.groupName": name}, f"{GROUP}.groupName", text, group=name)
        for name, text in (
            ("gpu group", "cannot name pods"),
            ("a/b", "cannot name pods"),
            ("a_b", "pod name"),
            ("-a", "cannot name pods"),
            ("", "empty"),
            ("g" * 64, "64 characters"),
        )
    ),
    Bad(
        "group name too long for slices",
        {f"{GROUP}.groupName": "g" * 58, f"{GROUP}.numOfHosts": 4},
        f"{GROUP}.groupName",
        "at most 57",
        group="g" * 58,
    ),
    Bad("replicas as text", {f"{GROUP}.replicas": "$N"}, f"{GROUP}.replicas", "expected"),
]

GOOD = {
    "the plain manifest": {},
    "name of 53 characters": {"metadata.name": "a" * 53},
    "resources in one place": {f"{HEAD}.resources": {"CPU": "1"}, f"{GROUP}.rayStartParams.num-cpus": "1"},
    "empty resource parameter": {f"{HEAD}.resources": {"CPU": "1"}, f"{HEAD}.rayStartParams.num-cpus": ""},
    "labels": {f"{HEAD}.labels": {"ray.io/zone": "a"}, f"{GROUP}.labels": {"k": ""}},
    "numbers as parameters": {f"{HEAD}.rayStartParams.num-cpus": 0},
    "min equal to max": {f"{GROUP}.minReplicas": 4},
    "replicas above max are clamped": {f"{GROUP}.replicas": 9},
    "negative replicas are clamped": {f"{GROUP}.replicas": -3},
    "numOfHosts 0 counts as 1": {f"{GROUP}.numOfHosts": 0},
    "absent bounds": {"spec.workerGroupSpecs": [{"groupName": "g", "template": template("w")}]},
    "no worker groups": {"spec.workerGroupSpecs": []},
    "group idle timeout under v2": {**V2, f"{GROUP}.idleTimeoutSeconds": 0},
    "group idle timeout under v2 by environment": {
        **AUTOSCALING,
        f"{HEAD_CONTAINER}.env": env("RAY_enable_autoscaler_v2", "true"),
        f"{GROUP}.idleTimeoutSeconds": 60,
    },
    "priority 0": {f"{GROUP}.priority": 0},
    "priority under v2": {**V2, "spec.rayVersion": "2.56.0", f"{GROUP}.priority": 10},
    "fault tolerance by annotation": {
        "metadata.annotations": {"ray.io/ft-enabled": "True"},
        f"{HEAD_CONTAINER}.env": env("RAY_REDIS_ADDRESS"),
        f"{HEAD}.rayStartParams.redis-password": "p",
    },
    "fault tolerance by options": {
        FT: {"redisAddress": "r", "redisPassword": {"value": "p"}, "redisUsername": {"value": "u"}}
    },
    "rocksdb with its own claim": {**ROCKS, f"{FT}.storage": {"size": "2Gi", "storageClassName": "s"}},
    "rocksdb with a claim of the user": {**ROCKS, f"{FT}.storage": {"claimName": "c", "subPath": "p"}},
    "suspended group": {f"{GROUP}.suspend": True},
    "v2 off by environment": {f"{HEAD_CONTAINER}.env": env("RAY_enable_autoscaler_v2", "0")},
    "restart policy Never under v2": {**V2, f"{HEAD}.template.spec.restartPolicy": "Never"},
    "restart policy without autoscaling": {f"{GROUP}.template.spec.restartPolicy": "Always"},
    "idle timeout": {"spec.autoscalerOptions.idleTimeoutSeconds": 0, "spec.autoscalerOptions.env": env("A")},
    "history in a bucket": history(("STORAGE_BACKEND", "GCS"), ("GCS_BUCKET", "b")),
    "history on S3": history(("STORAGE_BACKEND", "s3"), ("S3_REGION", "r")),
    "history on Azure": history(("STORAGE_BACKEND", "AzureBlob"), ("AZURE_STORAGE_ACCOUNT_URL", "u")),
    "history on an unknown backend": history(("STORAGE_BACKEND", "tape")),
    "token": {**TOKEN, "spec.rayVersion": "2.52.0"},
    "token disabled": {"spec.authOptions.mode": "disabled", "spec.rayVersion": ""},
    "Kubernetes token": {**TOKEN, "spec.rayVersion": "2.55", "spec.authOptions.enableK8sTokenAuth": True},
    "nightly Ray": {**TOKEN, "spec.rayVersion": "3.0.0.dev0"},
    "network policy": {
        "spec.networkPolicy": {
            "mode": "DenyAll",
            "workerGroups": [{"groupName": "g", "ingressRules": RULE, "egressRules": RULE}],
        }
    },
    "network policy of one direction": {
        "spec.networkPolicy": {"mode": "DenyAllIngress", "head": {"ingressRules": RULE}}
    },
    "TLS": TLS,
    "TLS disabled with own variables": {"spec.tlsOptions.enabled": False, f"{HEAD_CONTAINER}.env": env("RAY_USE_TLS")},
    "upgrade strategy": {"spec.upgradeStrategy.type": "Recreate"},
    "cluster of a RayJob without strategy": {"metadata.labels": {"ray.io/originated-from-crd": "RayJob"}},
    "upper case group name": {f"{GROUP}.groupName": "rayCPUWorkerType"},
    "group name of 63 characters": {f"{GROUP}.groupName": "g" * 63},
    "group name of 57 characters with slices": {f"{GROUP}.groupName": "g" * 57, f"{GROUP}.numOfHosts": 4},
    "managed by somebody else": {"spec.managedBy": "kueue.x-k8s.io/multikueue"},
}


@pytest.mark.parametrize("row", BAD, ids=lambda row: row.name)
def test_a_mistake_is_told_with_its_field_and_a_fix(row):
    blockers = validate(cluster(row.changes), OperatorConfig(feature_gates=row.gates))
    found = [b for b in blockers if b.field == row.field]
    assert found, blockers
    assert any(row.text.lower() in b.message.lower() for b in found)
    assert all(b.fix for b in blockers)
    assert {b.reason for b in found} == {row.reason}
    assert {b.group for b in found} == {row.group}


@pytest.mark.parametrize("row", BAD, ids=lambda row: row.name)
def test_a_mistake_causes_no_other_complaints(row):
    blockers = validate(cluster(row.changes), OperatorConfig(feature_gates=row.gates))
    others = {b.field for b in blockers} - {row.field}
    assert len(others) <= (2 if "Aliyun" in row.name else 0), blockers


@pytest.mark.parametrize("changes", GOOD.values(), ids=GOOD.keys())
def test_what_can_work_is_accepted(changes):
    assert validate(cluster(changes), OperatorConfig(feature_gates=ALL_GATES)) == ()


def test_all_mistakes_are_told_at_once():
    changes = {"metadata.name": "9", f"{GROUP}.minReplicas": -1, f"{HEAD}.template.spec.containers": []}
    fields = {b.field for b in validate(cluster(changes), OperatorConfig())}
    assert fields == {"metadata.name", f"{GROUP}.minReplicas", f"{HEAD}.template.spec.containers"}


def test_an_unreadable_value_is_judged_once():
    blockers = validate(cluster({f"{GROUP}.maxReplicas": [], f"{GROUP}.minReplicas": 3}), OperatorConfig())
    assert [b.field for b in blockers] == [f"{GROUP}.maxReplicas"]


@pytest.mark.parametrize("spec", [None, {}, [], "x", {"headGroupSpec": None}, {"workerGroupSpecs": [None, 3, {}]}])
def test_no_object_is_too_broken_to_be_judged(spec):
    document = {**manifest(), "spec": spec}
    assert all(b.fix for b in validate(RayCluster.parse(document), OperatorConfig()))


def test_every_check_has_a_reason_in_its_docstring():
    assert all(check.__doc__ for check in CHECKS)
    assert len(set(CHECKS)) == len(CHECKS)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {**AUTOSCALING, "spec.autoscalerOptions.version": "v1", f"{GROUP}.template.spec.restartPolicy": "Always"},
            True,
        ),
        (
            {**AUTOSCALING, "spec.autoscalerOptions.version": "v1", f"{GROUP}.template.spec.restartPolicy": "Never"},
            False,
        ),
        ({**AUTOSCALING, "spec.autoscalerOptions.version": "v1"}, False),
        ({**AUTOSCALING, f"{GROUP}.template.spec.restartPolicy": "Always"}, False),
        ({"spec.autoscalerOptions.version": "v1", f"{GROUP}.template.spec.restartPolicy": "Always"}, False),
    ],
)
def test_a_restarting_worker_under_autoscaler_v1_is_a_warning_only(changes, told):
    notices = warnings(cluster(changes), OperatorConfig())
    assert [n.reason for n in notices] == ["InvalidRayClusterSpec"] * told
    assert validate(cluster(changes), OperatorConfig()) == ()
