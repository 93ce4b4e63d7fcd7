"""What pods wait for, and children that are not simply applied."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from builders import NOW, cluster, creates_head, group, head, snapshot, template
from tpu_operator.api import names
from tpu_operator.config import Gate, OperatorConfig
from tpu_operator.planning.children import child_key, plan_children
from tpu_operator.planning.memory import Backoff, Memory
from tpu_operator.planning.plan import Apply, DeleteChild, Reason
from tpu_operator.planning.planner import plan
from tpu_operator.resources.registry import ChildKey, desired_children

CLAIM = ChildKey("PersistentVolumeClaim", "demo-gcs-pvc")
SECRET = ChildKey("Secret", "demo")
ACCOUNT = ChildKey("ServiceAccount", "mine")
INGRESS = ChildKey("Ingress", "demo-head-ingress")
CONFIG = OperatorConfig(feature_gates={Gate.EMBEDDED_STORAGE, Gate.NETWORK_POLICY, Gate.HISTORY_SERVER, Gate.MTLS})

ROCKS = cluster(rayVersion="2.56.0", gcsFaultToleranceOptions={"backend": "rocksdb"})
TOKEN = cluster(authOptions={"mode": "token"})
AUTOSCALED = cluster(group(), autoscaling=True, headGroupSpec={"template": template("ray", serviceAccountName="mine")})
WEB = cluster(headGroupSpec={"enableIngress": True, "template": template("ray")})


def sight(of, *, own=None, foreign=None, absent=(), memory=None, pods=(), without=()):
    """What is there as it should be, but for `without`, `own`, `foreign` and `absent`."""
    made = snapshot(of, pods, config=CONFIG, memory=memory)
    gone = {*without, *(foreign or {}), *absent}
    children = {k: v for k, v in made.observed.children.items() if k not in gone} | (own or {})
    observed = replace(made.observed, children=children, foreign_children=foreign or {}, absent=frozenset(absent))
    return replace(made, observed=observed)


def actions(of, **rest):
    return [(type(a), a.key, a.reason) for a in plan_children(sight(of, **rest)).actions]


def told(decided):
    return [(n.reason, n.action) for n in decided.notices]


def metadata(**given):
    return {"metadata": {"uid": "u", **given}}


# -- the user's service account ----------------------------------------------------------------------------------------


def test_pods_wait_for_the_account_that_the_user_names_and_nothing_is_made_in_the_users_name():
    """AD-07."""
    decided = plan(sight(AUTOSCALED, absent=[ACCOUNT]))
    assert not creates_head(decided)
    assert told(decided) == [("AutoscalerServiceAccountNotFound", "Validate")]
    assert "mine" in decided.notices[0].message
    assert decided.requeue_after == 5
    assert not any(isinstance(a, Apply) and a.key.kind == "ServiceAccount" for a in decided.actions)


@pytest.mark.parametrize("rest", [{}, {"foreign": {ACCOUNT: metadata()}}])
def test_pods_do_not_wait_for_an_account_that_is_there_or_of_which_nothing_is_known(rest):
    decided = plan(sight(AUTOSCALED, **rest))
    assert creates_head(decided)
    assert told(decided) == []


# -- the claim ---------------------------------------------------------------------------------------------------------


def claim(**meta):
    (made,) = [m for m in desired_children(ROCKS, CONFIG) if child_key(m) == CLAIM]
    return {**made, "metadata": {**made["metadata"], "uid": "u", **meta}}


RETAINED = {"metadata": {"uid": "u", "labels": {names.CLUSTER: "demo"}}, "spec": {}}
PREDECESSORS = {
    "metadata": {"uid": "u", "labels": {names.CLUSTER: "demo"}, "ownerReferences": [{"uid": "old", "controller": True}]}
}


def test_pods_wait_for_their_claim():
    decided = plan(sight(ROCKS, without=[CLAIM]))
    assert not creates_head(decided)
    assert [a.key for a in decided.actions] == [CLAIM]
    assert creates_head(plan(sight(ROCKS)))


def test_a_claim_that_was_left_for_the_cluster_is_used_and_never_taken_over():
    """Quirk 6."""
    decided = plan(sight(ROCKS, foreign={CLAIM: RETAINED}))
    assert creates_head(decided)
    assert not [a for a in decided.actions if isinstance(a, Apply)]
    assert told(decided) == []


@pytest.mark.parametrize("foreign", [PREDECESSORS, metadata()])
def test_a_claim_of_somebody_else_is_neither_used_nor_taken_over(foreign):
    decided = plan(sight(ROCKS, foreign={CLAIM: foreign}))
    assert decided.actions == ()
    assert told(decided) == [("NameTaken", "Create")]


def test_a_claim_that_is_not_as_the_spec_says_is_kept_and_told_of():
    grown = cluster(rayVersion="2.56.0", gcsFaultToleranceOptions={"backend": "rocksdb", "storage": {"size": "9Gi"}})
    decided = plan(sight(grown, own={CLAIM: claim()}, pods=(head(),)))
    assert decided.actions == ()
    assert told(decided) == [("FailedToCreatePVC", "Update")]


def test_who_owns_a_claim_follows_the_deletion_policy():
    storage = {"size": "1Gi", "deletionPolicy": "Retain"}
    retained = cluster(rayVersion="2.56.0", gcsFaultToleranceOptions={"backend": "rocksdb", "storage": storage})
    fields = {"f:metadata": {"f:ownerReferences": {'k:{"uid":"uid-of-demo"}': {}}}}
    owned = claim(managedFields=[{"manager": "tpu-operator", "operation": "Apply", "fieldsV1": fields}])
    (change,) = plan_children(sight(retained, own={CLAIM: owned})).actions
    assert "ownerReferences" not in change.manifest["metadata"]
    free = claim()
    free["metadata"].pop("ownerReferences")
    (change,) = plan_children(sight(ROCKS, own={CLAIM: free})).actions
    assert change.manifest["metadata"]["ownerReferences"]


def test_a_claim_is_not_deleted_when_fault_tolerance_is_switched_off():
    assert actions(cluster(), own={CLAIM: claim()}) == []


def test_a_claim_of_the_users_that_is_missing_is_told_of():
    mine = ChildKey("PersistentVolumeClaim", "mine")
    of = cluster(rayVersion="2.56.0", gcsFaultToleranceOptions={"backend": "rocksdb", "storage": {"claimName": "mine"}})
    decided = plan(sight(of, absent=[mine]))
    assert told(decided) == [("FailedToCreatePVC", "Validate")]
    assert creates_head(decided)
    assert told(plan(sight(of, foreign={mine: metadata()}))) == []


# -- the token ---------------------------------------------------------------------------------------------------------


def secret(*keys, **meta):
    return {**metadata(**meta), "data": dict.fromkeys(keys, "")}


def test_a_secret_is_created_once_it_is_known_not_to_be_there():
    assert actions(TOKEN, absent=[SECRET]) == [(Apply, SECRET, Reason.CHILD_WANTED)]


def test_nothing_is_done_about_a_secret_of_which_nothing_is_known():
    part = plan_children(sight(TOKEN, without=[SECRET]))
    assert part.actions == ()
    assert [w.seconds for w in part.waiting] == [5]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [(("auth_token",), []), (("auth_token", "more"), []), ((), [(Apply, SECRET, Reason.CHILD_CHANGED)])],
)
def test_a_secret_of_ours_is_kept_and_gets_what_it_lacks(keys, expected):
    assert actions(TOKEN, own={SECRET: secret(*keys)}) == expected


@pytest.mark.parametrize(
    ("foreign", "used"),
    [
        pytest.param(secret("auth_token"), True, id="the user's"),
        pytest.param(secret("other"), False, id="without a token"),
        pytest.param(
            secret("auth_token", ownerReferences=[{"uid": "old", "controller": True}]), False, id="a predecessor's"
        ),
    ],
)
def test_a_secret_of_somebody_else_is_left_alone_and_used_only_if_it_is_free(foreign, used):
    """Quirk 7; a new cluster of an old name must not begin with the old token."""
    decided = plan(sight(TOKEN, foreign={SECRET: foreign}))
    assert creates_head(decided) is used
    assert [a for a in decided.actions if isinstance(a, Apply)] == []
    assert told(decided) == [("NameTaken", "Create")]


def test_the_secret_stays_when_tokens_are_switched_off_for_running_pods_refer_to_it():
    assert actions(cluster(), own={SECRET: secret("auth_token")}) == []


# -- what is switched off, or left behind ------------------------------------------------------------------------------


def ours(key, **labels):
    return {key: metadata(labels={names.CLUSTER: "demo", **labels})}


MADE = {names.CREATED_BY: names.CREATED_BY_VALUE}


@pytest.mark.parametrize(
    ("key", "labels", "goes"),
    [
        pytest.param(INGRESS, {}, True, id="ingress switched off (quirk 64)"),
        pytest.param(ChildKey("Service", "old"), {**MADE, names.NODE_TYPE: "head"}, True, id="renamed head service"),
        pytest.param(ChildKey("Service", "extra"), {}, False, id="a service that something else made for the cluster"),
        pytest.param(ChildKey("Ingress", "extra"), MADE, False, id="another ingress"),
        pytest.param(ChildKey("NetworkPolicy", "demo-head"), {}, True, id="policies switched off"),
        pytest.param(
            ChildKey("NetworkPolicy", "demo-workers-old"), {**MADE, names.NODE_GROUP: "old"}, True, id="group removed"
        ),
        pytest.param(ChildKey("NetworkPolicy", "extra"), {}, False, id="a policy that something else made"),
        pytest.param(ChildKey("Job", "demo-redis-cleanup"), {}, False, id="no Job is ever deleted"),
    ],
)
def test_what_is_unwanted_goes_if_it_is_certain_that_it_is_ours(key, labels, goes):
    expected = [(DeleteChild, key, Reason.CHILD_UNWANTED)] if goes else []
    assert actions(cluster(), own=ours(key, **labels)) == expected


def test_a_child_that_was_refused_waits():
    memory = Memory(generation=1, refused_children={INGRESS: Backoff(1, NOW + timedelta(seconds=7))})
    part = plan_children(sight(WEB, without=[INGRESS], memory=memory))
    assert (part.actions, [w.seconds for w in part.waiting]) == ((), [7])
    memory = Memory(generation=1, refused_children={INGRESS: Backoff(1, NOW)})
    assert actions(WEB, without=[INGRESS], memory=memory) == [(Apply, INGRESS, Reason.CHILD_WANTED)]


def test_a_new_spec_gives_a_refused_child_a_fresh_chance():
    memory = Memory(generation=1, refused_children={INGRESS: Backoff(1, NOW)})
    assert memory.of_generation(2).refused_children == {}


# -- what this version does not do -------------------------------------------------------------------------------------


def test_mutual_tls_is_refused_in_plain_words():
    (blocker,) = plan(sight(cluster(tlsOptions={"enabled": True}))).blockers
    assert (blocker.field, "not implemented" in blocker.message) == ("spec.tlsOptions.enabled", True)
    assert plan(sight(cluster(tlsOptions={"enabled": False}))).blockers == ()


def test_the_history_server_is_accepted_and_its_absence_told():
    env = [{"name": "STORAGE_BACKEND", "value": "local"}]
    of = cluster(historyServerOptions={"collectorOptions": {"image": "x", "env": env}})
    decided = plan(sight(of))
    assert creates_head(decided)
    assert "no effect" in decided.notices[0].message
