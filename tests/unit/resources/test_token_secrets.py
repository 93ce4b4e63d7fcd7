"""The Secret with the token, of which the value is nobody's business."""

from __future__ import annotations

import base64

import pytest
from some_cluster import CONFIG, cluster

from tpu_operator.controller.secret_values import with_values
from tpu_operator.resources.registry import ChildKey, looked_up
from tpu_operator.resources.token_secret import GENERATED, has_token, token_secrets, without_values

TOKEN = {"mode": "token"}


@pytest.mark.parametrize(
    "options",
    [
        None,
        {},
        {"mode": "disabled"},
        {"mode": "token", "secretName": "mine"},
        {"mode": "token", "enableK8sTokenAuth": True},
    ],
)
def test_none_is_made_that_no_pod_would_use(options):
    """Quirk 72."""
    of = cluster(authOptions=options)
    assert token_secrets(of, CONFIG) == ()
    assert looked_up(of, CONFIG) == set()


def test_the_manifest_holds_a_marker_and_not_the_value():
    (secret,) = token_secrets(cluster(authOptions=TOKEN), CONFIG)
    assert secret["metadata"]["name"] == "demo"
    assert secret["stringData"] == {"auth_token": GENERATED}
    assert looked_up(cluster(authOptions=TOKEN), CONFIG) == {ChildKey("Secret", "demo")}


def test_the_value_is_made_as_it_is_sent():
    (secret,) = token_secrets(cluster(authOptions=TOKEN), CONFIG)
    values = {with_values(secret)["stringData"]["auth_token"] for _ in range(5)}
    assert len(values) == 5
    assert {len(base64.b64decode(value, validate=True)) for value in values} == {32}
    assert secret["stringData"] == {"auth_token": GENERATED}


def test_manifests_of_other_kinds_are_sent_as_they_are():
    assert with_values({"kind": "Job", "spec": {}}) == {"kind": "Job", "spec": {}}


def test_nothing_is_kept_of_a_secret_but_its_keys():
    live = {"metadata": {"name": "demo"}, "data": {"auth_token": "c2VjcmV0"}, "stringData": {"x": "secret"}}
    kept = without_values(live)
    assert (kept["metadata"], kept["data"]) == ({"name": "demo"}, {"auth_token": ""})
    assert "ecret" not in str(kept).replace("Secret", "")
    assert has_token(kept)
    assert not has_token(without_values({"metadata": {}, "data": None}))
