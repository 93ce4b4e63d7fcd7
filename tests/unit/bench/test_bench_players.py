"""The kubelet player and the webhook: what they would send."""

import json

import pytest

from bench.__main__ import chosen, own_operator
from bench.kubelet import Kubelet, running_status
from bench.ledger import Metadata, PartialObject, PodEvent
from bench.webhook import answer


def event(kind, uid, *, deleting=False):
    return PodEvent(kind, PartialObject(Metadata(uid=uid, name=uid, deletionTimestamp="now" if deleting else None)))


async def test_a_pod_is_started_once():
    kubelet = Kubelet(api=None, termination=5)
    for kind in ("ADDED", "MODIFIED", "MODIFIED"):
        kubelet.see(event(kind, "a"))
    assert [meta.uid for meta in kubelet.todo] == ["a"]


async def test_a_terminating_pod_is_not_started_and_waits_for_its_end():
    kubelet = Kubelet(api=None, termination=500)
    kubelet.see(event("ADDED", "a", deleting=True))
    kubelet.see(event("DELETED", "b", deleting=True))
    assert (list(kubelet.todo), kubelet.ending) == ([], {"a"})


def test_running_pods_are_ready_and_have_addresses_of_their_own():
    first, second = running_status("now", 1), running_status("now", 70_000)
    assert first["phase"] == "Running"
    assert {"Ready", "PodScheduled"} <= {condition["type"] for condition in first["conditions"]}
    assert first["podIP"] != second["podIP"]


def test_the_webhook_allows_the_request_it_was_asked_about():
    review = answer(json.dumps({"request": {"uid": "u", "object": {"kind": "Pod"}}}).encode())
    assert review["response"] == {"uid": "u", "allowed": True}


@pytest.mark.parametrize(
    ("rows", "full", "want"),
    [
        (["idle-cpu"], False, ["ready_idle_restart"]),
        (["restart-10000"], False, ["restart_huge"]),
        (["create-writes", "create"], True, ["create"]),
    ],
)
def test_a_row_chooses_the_scenario_that_measures_it(rows, full, want):
    assert [scenario.play.__name__ for scenario in chosen(rows, full=full)] == want


def test_what_takes_minutes_runs_only_when_asked_for():
    assert "restart_huge" not in {scenario.play.__name__ for scenario in chosen(None, full=False)}
    assert "restart_huge" in {scenario.play.__name__ for scenario in chosen(None, full=True)}


def test_our_own_operator_is_the_default():
    assert own_operator()[0].endswith("tpu-operator")
