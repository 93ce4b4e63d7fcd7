"""Reading RayClusters: what users write, what older CRDs let through, what nobody should write."""

from __future__ import annotations

import copy
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tpu_operator.api.raycluster import FieldProblem, RayCluster, RayClusterSpec

TEMPLATE = {"spec": {"containers": [{"name": "ray"}, {"name": "sidecar"}], "nodeSelector": {"count": 8}}}


def group(**fields):
    return {"groupName": "g", "template": TEMPLATE, **fields}


def cluster(*groups, head=None, metadata=None, **spec):
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "c", **(metadata or {})},
        "spec": {"headGroupSpec": {"template": TEMPLATE, **(head or {})}, "workerGroupSpecs": list(groups), **spec},
    }


def parsed_group(**fields):
    read = RayCluster.parse(cluster(group(**fields)))
    assert read.problems == ()
    return read.spec.worker_group_specs[0]


def problems(raw):
    return {p.field: (p.got, p.expected) for p in RayCluster.parse(raw).problems}


FULL = cluster(
    group(
        replicas=2,
        minReplicas=1,
        maxReplicas=3,
        numOfHosts=4,
        idleTimeoutSeconds=60,
        priority=5,
        suspend=False,
        rayStartParams={"block": "true"},
        resources={"TPU": "4"},
        labels={"zone": "a"},
        scaleStrategy={"workersToDelete": ["a", "b"]},
    ),
    head={
        "rayStartParams": {"num-cpus": "0"},
        "serviceType": "NodePort",
        "headService": {"metadata": {"name": "own"}},
        "enableIngress": True,
        "ingressOptions": {
            "host": "h",
            "path": "/p",
            "pathType": "Exact",
            "tls": [{"hosts": ["h"], "secretName": "s"}],
        },
        "resources": {"CPU": "0"},
        "labels": {"a": "b"},
    },
    rayVersion="2.55.0",
    enableInTreeAutoscaling=True,
    autoscalerOptions={
        "version": "v2",
        "image": "i",
        "imagePullPolicy": "Always",
        "resources": {"limits": {"cpu": "1"}},
        "securityContext": {"runAsUser": 1},
        "env": [{"name": "A", "value": "1"}],
        "envFrom": [{"secretRef": {"name": "s"}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "command": ["c"],
        "args": ["a"],
        "idleTimeoutSeconds": 30,
        "upscalingMode": "Conservative",
    },
    headServiceAnnotations={"a": "b"},
    suspend=True,
    managedBy="ray.io/kuberay-operator",
    upgradeStrategy={"type": "Recreate"},
    authOptions={"mode": "token", "secretName": "s", "enableK8sTokenAuth": True},
    gcsFaultToleranceOptions={
        "backend": "redis",
        "redisAddress": "r:6379",
        "redisUsername": {"value": "u"},
        "redisPassword": {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        "externalStorageNamespace": "n",
        "storage": {
            "claimName": "c",
            "size": "2Gi",
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"],
            "subPath": "p",
            "deletionPolicy": "Retain",
        },
    },
    historyServerOptions={
        "collectorOptions": {"image": "i", "imagePullPolicy": "Never", "resources": {}, "env": [{"name": "B"}]}
    },
    networkPolicy={
        "mode": "DenyAllIngress",
        "head": {"ingressRules": [{"ports": []}]},
        "worker": {"egressRules": [{}]},
        "workerGroups": [{"groupName": "g", "ingressRules": [{}]}],
    },
    tlsOptions={"enabled": True},
)


def test_every_field_has_an_attribute():
    read = RayCluster.parse(FULL)
    spec = read.spec
    head, worker = spec.head_group_spec, spec.worker_group_specs[0]
    options, storage = spec.autoscaler_options, spec.gcs_fault_tolerance_options.storage
    assert read.problems == ()
    assert (worker.replicas, worker.min_replicas, worker.max_replicas, worker.num_of_hosts) == (2, 1, 3, 4)
    assert (worker.idle_timeout_seconds, worker.priority, worker.suspend) == (60, 5, False)
    assert (worker.group_name, worker.workers_to_delete, worker.labels) == ("g", ("a", "b"), {"zone": "a"})
    assert (worker.resources, worker.ray_start_params) == ({"TPU": "4"}, {"block": "true"})
    assert (head.service_type, head.enable_ingress, head.labels) == ("NodePort", True, {"a": "b"})
    assert head.ingress_options.path_type == "Exact"
    assert head.ingress_options.tls[0].secret_name == "s"
    assert (spec.autoscaling, spec.suspend, spec.ray_version) == (True, True, "2.55.0")
    assert (options.version, options.env[0]["name"], options.command, options.args) == ("v2", "A", ("c",), ("a",))
    assert (options.idle_timeout_seconds, options.upscaling_mode) == (30, "Conservative")
    assert spec.auth_options.enable_k8s_token_auth is True
    assert spec.upgrade_strategy.type == "Recreate"
    assert spec.gcs_fault_tolerance_options.redis_username.value == "u"
    assert "secretKeyRef" in spec.gcs_fault_tolerance_options.redis_password.value_from
    assert (storage.claim_name, storage.size, storage.sub_path) == ("c", "2Gi", "p")
    assert (storage.access_modes, storage.deletion_policy) == (("ReadWriteOnce",), "Retain")
    assert spec.history_server_options.collector_options.env == ({"name": "B"},)
    assert spec.network_policy.worker_groups[0].group_name == "g"
    assert spec.network_policy.head.ingress_rules == ({"ports": []},)
    assert spec.tls_options.enabled is True
    assert spec.managed_by == "ray.io/kuberay-operator"


def unknown(model):
    """Fields that no attribute stands for, anywhere in a model."""
    found = list(model.model_extra or ())
    for value in vars(model).values():
        for item in value if isinstance(value, tuple) else (value,):
            found += unknown(item) if hasattr(item, "model_extra") else []
    return found


def test_no_field_of_a_full_object_is_unknown():
    assert unknown(RayCluster.parse(FULL).spec) == []


def test_unknown_fields_are_kept():
    read = RayCluster.parse(cluster(group(newField={"a": 1}), other=[1]))
    assert read.problems == ()
    assert read.spec.model_extra == {"other": [1]}
    assert read.spec.worker_group_specs[0].model_extra == {"newField": {"a": 1}}


def test_the_document_is_kept_and_not_changed():
    raw = copy.deepcopy(FULL)
    read = RayCluster.parse(raw)
    assert read.raw is raw
    assert raw == FULL


def test_templates_are_the_users_own_objects():
    raw = cluster(group())
    assert RayCluster.parse(raw).spec.worker_group_specs[0].template is raw["spec"]["workerGroupSpecs"][0]["template"]


def test_the_view_cannot_be_changed():
    read = RayCluster.parse(cluster(group()))
    with pytest.raises(ValidationError):
        read.spec.suspend = True
    with pytest.raises(AttributeError):
        read.problems = ()


@pytest.mark.parametrize(
    ("value", "want"), [(None, None), (-1, -1), (0, 0), (3, 3), (3.0, 3), (2**31 - 1, 2**31 - 1), (-(2**31), -(2**31))]
)
def test_numbers_are_as_written_and_null_is_none(value, want):
    assert parsed_group(replicas=value).replicas == want


@pytest.mark.parametrize("field", ["replicas", "min_replicas", "max_replicas", "num_of_hosts", "priority", "suspend"])
def test_absent_is_none_since_defaults_are_the_api_servers_business(field):
    assert getattr(parsed_group(), field) is None


@pytest.mark.parametrize(
    ("written", "hosts"),
    [({}, 1), ({"numOfHosts": None}, 1), ({"numOfHosts": 0}, 1), ({"numOfHosts": -3}, 1), ({"numOfHosts": 4}, 4)],
)
def test_a_slice_has_at_least_one_host(written, hosts):
    read = parsed_group(**written)
    assert read.hosts == hosts
    assert read.num_of_hosts == written.get("numOfHosts")


@pytest.mark.parametrize(
    ("written", "want"),
    [
        ({}, {}),
        ({"rayStartParams": None}, {}),
        ({"rayStartParams": {}}, {}),
        ({"rayStartParams": {"num-cpus": 0}}, {"num-cpus": "0"}),
        ({"rayStartParams": {"num-gpus": 0.5}}, {"num-gpus": "0.5"}),
        ({"rayStartParams": {"block": True, "no-monitor": False}}, {"block": "true", "no-monitor": "false"}),
        ({"rayStartParams": {"a": None, "b": "x"}}, {"b": "x"}),
    ],
)
def test_start_parameters_are_texts(written, want):
    assert parsed_group(**written).ray_start_params == want
    assert RayCluster.parse(cluster(head=written)).spec.head_group_spec.ray_start_params == want


@pytest.mark.parametrize(
    "field",
    [
        "workerGroupSpecs",
        "rayVersion",
        "enableInTreeAutoscaling",
        "autoscalerOptions",
        "headServiceAnnotations",
        "suspend",
        "managedBy",
        "upgradeStrategy",
        "authOptions",
        "gcsFaultToleranceOptions",
        "historyServerOptions",
        "networkPolicy",
        "tlsOptions",
    ],
)
def test_null_means_not_set(field):
    without = cluster()
    del without["spec"]["workerGroupSpecs"]
    read = RayCluster.parse({**without, "spec": {**without["spec"], field: None}})
    assert read.problems == ()
    assert read.spec == RayCluster.parse(without).spec


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"scaleStrategy": None}, ()),
        ({"scaleStrategy": {}}, ()),
        ({"scaleStrategy": {"workersToDelete": None}}, ()),
        ({"scaleStrategy": {"workersToDelete": []}}, ()),
    ],
)
def test_no_orders_to_delete(fields, want):
    assert parsed_group(**fields).workers_to_delete == want


def test_a_version_that_yaml_took_for_a_number_is_text():
    assert RayCluster.parse(cluster(rayVersion=2.55)).spec.ray_version == "2.55"


@pytest.mark.parametrize(
    ("template", "names"),
    [
        (TEMPLATE, ["ray", "sidecar"]),
        ({}, []),
        ({"spec": None}, []),
        ({"spec": {"containers": None}}, []),
        ({"spec": {"containers": "x"}}, []),
        ({"spec": {"containers": [None, {"name": "a"}]}}, ["a"]),
    ],
)
def test_the_first_container_is_the_ray_container(template, names):
    read = parsed_group(template=template)
    assert [c["name"] for c in read.containers] == names
    assert (read.ray_container or {}).get("name") == (names[0] if names else None)


# -- mistakes ----------------------------------------------------------------------------------------------------------

WHOLE = "a whole number"
RANGE = "a whole number from -2147483648 to 2147483647"


@pytest.mark.parametrize(
    ("raw", "field", "got", "expected"),
    [
        (cluster(group(replicas="ten")), "spec.workerGroupSpecs[0].replicas", '"ten"', WHOLE),
        (cluster(group(replicas="3")), "spec.workerGroupSpecs[0].replicas", '"3"', WHOLE),
        (cluster(group(replicas=1.5)), "spec.workerGroupSpecs[0].replicas", "1.5", WHOLE),
        (cluster(group(replicas=True)), "spec.workerGroupSpecs[0].replicas", "true", WHOLE),
        (cluster(group(replicas=float("inf"))), "spec.workerGroupSpecs[0].replicas", "Infinity", WHOLE),
        (cluster(group(), group(maxReplicas=2**31)), "spec.workerGroupSpecs[1].maxReplicas", "2147483648", RANGE),
        (cluster(group(groupName=None)), "spec.workerGroupSpecs[0].groupName", "missing", "a value"),
        (cluster(group(groupName=["a"])), "spec.workerGroupSpecs[0].groupName", "a list", "text"),
        (cluster(group(template=[])), "spec.workerGroupSpecs[0].template", "a list", "an object"),
        (cluster("x"), "spec.workerGroupSpecs[0]", '"x"', "an object"),
        (cluster(workerGroupSpecs={}), "spec.workerGroupSpecs", "an object", "a list"),
        (cluster(suspend="true"), "spec.suspend", '"true"', "true or false"),
        (cluster(tlsOptions=True), "spec.tlsOptions", "true", "an object"),
        (
            cluster(upgradeStrategy={"type": "Rolling"}),
            "spec.upgradeStrategy.type",
            '"Rolling"',
            "'Recreate' or 'None'",
        ),
        (cluster(head={"rayStartParams": []}), "spec.headGroupSpec.rayStartParams", "a list", "an object"),
        (cluster(head={"rayStartParams": {"a": {}}}), "spec.headGroupSpec.rayStartParams.a", "an object", "text"),
        (cluster(autoscalerOptions={"env": ["x"]}), "spec.autoscalerOptions.env[0]", '"x"', "an object"),
        (cluster(headGroupSpec=None), "spec.headGroupSpec", "missing", "a value"),
        ({"metadata": {"name": "c"}, "spec": []}, "spec", "a list", "an object"),
        ({"metadata": {"name": "c"}}, "spec", "missing", "an object"),
        (cluster(rayVersion={"x" * 99: 1}), "spec.rayVersion", "an object", "text"),
    ],
)
def test_a_mistake_is_named_with_its_path(raw, field, got, expected):
    assert problems(raw) == {field: (got, expected)}


def test_all_mistakes_are_named_at_once_and_the_rest_can_be_read():
    read = RayCluster.parse(
        cluster(group(replicas="ten", numOfHosts=4), "x", group(groupName={}), suspend="no", rayVersion="2.9")
    )
    assert [p.field for p in read.problems] == [
        "spec.workerGroupSpecs[0].replicas",
        "spec.workerGroupSpecs[1]",
        "spec.workerGroupSpecs[2].groupName",
        "spec.suspend",
    ]
    first, second, third = read.spec.worker_group_specs
    assert (first.replicas, first.hosts, first.containers[0]["name"]) == (None, 4, "ray")
    assert (second.group_name, second.template) == ("", {})
    assert (third.group_name, third.template) == ("", TEMPLATE)
    assert (read.spec.suspend, read.spec.ray_version) == (None, "2.9")


def test_an_unreadable_spec_is_an_empty_one():
    assert RayCluster.parse({"metadata": {"name": "c"}, "spec": 7}).spec == RayClusterSpec.empty()


def test_a_problem_is_a_sentence_and_says_what_to_do():
    wrong, missing = FieldProblem("spec.suspend", '"no"', "true or false"), FieldProblem("spec.x", "missing", "a value")
    assert wrong.message == 'spec.suspend is "no", expected true or false.'
    assert wrong.fix == "set it to true or false"
    assert missing.message == "spec.x is missing, expected a value."
    assert missing.fix == "add it"


def test_long_values_are_cut():
    (problem,) = RayCluster.parse(cluster(group(replicas="9" * 500))).problems
    assert len(problem.got) < 80


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*sorted(FULL["spec"]), "a"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def damaged(draw):
    """FULL with one value anywhere replaced by anything."""
    raw = copy.deepcopy(FULL)
    place, key = raw, draw(st.sampled_from(["spec", "status", "metadata"]))
    while isinstance(place.get(key) if isinstance(place, dict) else place[key], dict | list) and draw(st.booleans()):
        place = place[key]
        if not place:
            return raw
        key = draw(st.sampled_from(sorted(place))) if isinstance(place, dict) else draw(st.integers(0, len(place) - 1))
    place[key] = draw(JSON)
    return raw


@given(damaged())
def test_no_object_makes_it_raise(raw):
    before = copy.deepcopy(raw)
    read = RayCluster.parse(raw)
    assert raw == before
    for problem in read.problems:
        assert problem.field.startswith("spec")
        assert problem.message
    for item in read.spec.worker_group_specs:
        assert item.hosts >= 1
        assert isinstance(item.containers, list)
        assert all(isinstance(name, str) for name in item.workers_to_delete)


# -- metadata ----------------------------------------------------------------------------------------------------------


def test_metadata_is_read():
    owner = {"kind": "RayService", "name": "s"}
    meta = RayCluster.parse(
        cluster(
            metadata={
                "namespace": "n",
                "uid": "u",
                "generation": 7,
                "resourceVersion": "12",
                "labels": {"a": "b"},
                "annotations": {"c": "d"},
                "finalizers": ["f"],
                "creationTimestamp": "2026-01-02T03:04:05Z",
                "deletionTimestamp": "2026-01-02T03:04:06Z",
                "ownerReferences": [owner],
            }
        )
    )
    assert (meta.name, meta.namespace, meta.uid, meta.generation) == ("c", "n", "u", 7)
    assert (meta.labels, meta.annotations, meta.metadata.finalizers) == ({"a": "b"}, {"c": "d"}, ("f",))
    assert meta.metadata.creation_timestamp == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert meta.metadata.deletion_timestamp == datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC)
    assert (meta.metadata.owner_references, meta.metadata.resource_version) == ((owner,), "12")


@pytest.mark.parametrize(
    "metadata",
    [{}, {"labels": None, "finalizers": None}, {"labels": [], "generation": "x"}, {"deletionTimestamp": "soon"}],
)
def test_odd_metadata_is_empty_metadata(metadata):
    meta = RayCluster.parse(cluster(metadata=metadata)).metadata
    assert (meta.labels, meta.finalizers, meta.generation, meta.deletion_timestamp) == ({}, (), 0, None)
