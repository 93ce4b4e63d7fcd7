"""A child that the API server would refuse to change is deleted, and made anew once it is gone."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from builders import cluster, snapshot, template
from tpu_operator.planning.children import child_key, plan_children
from tpu_operator.planning.plan import Apply, DeleteChild, Reason
from tpu_operator.resources.registry import ChildKey, desired_children

SERVICE = ChildKey("Service", "demo-head-svc")


def of_type(kind):
    return cluster(headGroupSpec={"serviceType": kind, "rayStartParams": {}, "template": template("ray-head")})


def live_children(owner, **metadata):
    """What the API server made of the owner's children."""
    children = {}
    for manifest in desired_children(owner, snapshot(owner).config):
        live = copy.deepcopy(manifest)
        live["metadata"] |= {"uid": "uid-of-child", **metadata}
        live["spec"] = {"clusterIP": "10.0.0.1", **live["spec"]}
        children[child_key(live)] = live
    return children


def seeing(owner, children):
    sight = snapshot(owner)
    return replace(sight, observed=replace(sight.observed, children=children))


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        ("NodePort", "NodePort", ()),
        ("NodePort", "LoadBalancer", (Apply, Reason.CHILD_CHANGED)),
        ("NodePort", "ClusterIP", (DeleteChild, Reason.CHILD_CHANGED)),
        ("ClusterIP", "NodePort", (DeleteChild, Reason.CHILD_CHANGED)),
    ],
)
def test_a_service_becomes_headless_or_not_by_being_made_anew(before, after, want):
    sight = seeing(of_type(after), live_children(of_type(before)))
    found = [(type(a), a.reason) for a in plan_children(sight).actions if a.key == SERVICE]
    assert found == ([want] if want else [])


def test_one_on_its_way_out_is_waited_for():
    children = live_children(of_type("NodePort"), deletionTimestamp="2026-03-01T12:00:00Z")
    assert plan_children(seeing(of_type("ClusterIP"), children)).actions == ()
