"""The claim of the rocksdb backend."""

from __future__ import annotations

import copy

import pytest
from some_cluster import CONFIG, cluster

from tpu_operator.resources.gcs_storage import as_it_is, claims, drift, may_be_used, needs_claim, users_claim
from tpu_operator.resources.owned import owner_uid
from tpu_operator.resources.registry import ChildKey, looked_up


def ft(**storage):
    options = {"backend": "rocksdb", **({"storage": storage} if storage else {})}
    return cluster(gcsFaultToleranceOptions=options)


def claim(**storage):
    (made,) = claims(ft(**storage), CONFIG)
    return made


def test_redis_needs_no_claim():
    of = cluster(gcsFaultToleranceOptions={"redisAddress": "redis:6379"})
    assert not needs_claim(of)
    assert claims(of, CONFIG) == ()
    assert claims(cluster(), CONFIG) == ()


def test_a_claim_of_the_users_is_used_and_none_is_made():
    of = ft(claimName="mine")
    assert users_claim(of) == "mine"
    assert claims(of, CONFIG) == ()
    assert looked_up(of, CONFIG) == {ChildKey("PersistentVolumeClaim", "mine")}
    assert looked_up(ft(), CONFIG) == set()


@pytest.mark.parametrize(
    ("storage", "spec"),
    [
        ({}, {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
        (
            {"size": "5Gi", "storageClassName": "fast", "accessModes": ["ReadWriteMany"]},
            {
                "accessModes": ["ReadWriteMany"],
                "resources": {"requests": {"storage": "5Gi"}},
                "storageClassName": "fast",
            },
        ),
    ],
)
def test_what_is_asked_for_is_what_the_spec_says(storage, spec):
    assert claim(**storage)["spec"] == spec
    assert claim(**storage)["metadata"]["name"] == "demo-gcs-pvc"


@pytest.mark.parametrize(("policy", "owners"), [("DeleteWithCluster", 1), (None, 1), ("Retain", 0)])
def test_a_claim_that_is_to_be_retained_has_no_owner_but_is_known_as_ours(policy, owners):
    made = claim(deletionPolicy=policy)
    assert len(made["metadata"].get("ownerReferences", [])) == owners
    assert owner_uid(made["metadata"]) == "uid-1"


@pytest.mark.parametrize(
    ("metadata", "usable"),
    [
        pytest.param({"labels": {"ray.io/cluster": "demo"}}, True, id="left by a cluster of this name"),
        pytest.param({"labels": {"ray.io/cluster": "other"}}, False, id="of another cluster"),
        pytest.param({}, False, id="of anybody"),
        pytest.param(
            {"labels": {"ray.io/cluster": "demo"}, "ownerReferences": [{"uid": "x"}]}, False, id="owned by somebody"
        ),
        pytest.param({"labels": {"ray.io/cluster": "demo"}, "deletionTimestamp": "t"}, False, id="on its way out"),
    ],
)
def test_only_a_claim_that_was_left_for_it_is_used(metadata, usable):
    assert may_be_used({"metadata": metadata}, ft()) is usable


def live(**spec):
    made = claim()
    return {**made, "spec": {**copy.deepcopy(made["spec"]), "volumeName": "pv", **spec}}


@pytest.mark.parametrize(
    ("spec", "storage", "expected"),
    [
        ({}, {}, ()),
        ({"resources": {"requests": {"storage": "1024Mi"}}}, {}, ()),
        ({"storageClassName": "standard"}, {}, ()),
        ({}, {"size": "2Gi"}, ("size is 1Gi, not 2Gi",)),
        ({}, {"accessModes": ["ReadWriteMany"]}, ("accessModes are ['ReadWriteOnce'], not ['ReadWriteMany']",)),
        ({"storageClassName": "a"}, {"storageClassName": "b"}, ("storageClassName is a, not b",)),
    ],
)
def test_a_claim_that_is_not_as_the_spec_says_is_told_apart(spec, storage, expected):
    assert drift(live(**spec), claim(**storage)) == expected


def test_its_spec_is_left_as_it_is():
    wanted = as_it_is(claim(size="9Gi", storageClassName="x"), live())
    assert wanted["spec"] == claim()["spec"]
