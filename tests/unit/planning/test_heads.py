"""The head: exactly one, and a new one only after the old one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders import (
    NOW,
    aged,
    cluster,
    conditions,
    creates_head,
    deleted,
    ended,
    failed,
    group,
    head,
    pending,
    reasons,
    relabelled,
    singles,
    snapshot,
    terminating,
    unready,
)
from tpu_operator.api import names
from tpu_operator.config import OperatorConfig
from tpu_operator.planning.heads import HEAD_KEY, heads_of
from tpu_operator.planning.memory import Backoff, Memory
from tpu_operator.planning.plan import CreateHead, Reason
from tpu_operator.planning.planner import plan

LATER = NOW + timedelta(seconds=20)


def plan_of(*heads, of=None, **rest):
    return plan(snapshot(of or cluster(), heads, **rest))


def name_of(decided):
    (action,) = [a for a in decided.actions if isinstance(a, CreateHead)]
    return action.name


@pytest.mark.parametrize(
    ("heads", "gone", "made"),
    [
        pytest.param((), set(), True, id="none: one is created"),
        pytest.param((head("a"),), set(), False, id="a good one stays"),
        pytest.param((pending(head("a")),), set(), False, id="a pending one stays (HP-14)"),
        pytest.param((unready(head("a")),), set(), False, id="an unready one stays (HP-02)"),
        pytest.param((failed(head("a"), "Evicted"),), {"a"}, False, id="an evicted one goes (HP-01)"),
        pytest.param((failed(head("a"), "NodeAffinity"),), {"a"}, False, id="whatever the reason (HP-11)"),
        pytest.param((failed(head("a"), phase="Succeeded"),), {"a"}, False, id="a finished one goes"),
        pytest.param((ended(head("a"), "ray-head"),), {"a"}, False, id="Ray has ended under Never"),
        pytest.param((ended(head("a"), "ray-head", "Always"),), set(), False, id="the kubelet restarts it (HP-02)"),
        pytest.param((ended(head("a"), "sidecar-2"),), set(), False, id="only a sidecar has ended (HP-05)"),
        pytest.param((terminating(head("a")),), set(), False, id="the new one waits for the old one (HP-07)"),
        pytest.param((terminating(head("a"), -11),), set(), True, id="one that hangs does not block (OC-15)"),
        pytest.param((head("a"), pending(head("b"))), {"b"}, False, id="of two the unready one goes (HP-08)"),
        pytest.param(
            (aged(pending(head("a")), 60), aged(pending(head("b")), 5)), {"b"}, False, id="or the younger one"
        ),
        pytest.param((head("a"), head("b")), set(), False, id="two ready ones are for a person to judge"),
        pytest.param((failed(head("a")), head("b")), {"a"}, False, id="a failed one beside a good one goes"),
        pytest.param((terminating(head("a")), head("b")), set(), False, id="a new one is there already"),
        pytest.param((relabelled(pending(head("a")), uid=""),), set(), False, id="a create without answer counts"),
    ],
)
def test_there_is_one_head(heads, gone, made):
    decided = plan_of(*heads)
    assert (deleted(decided), creates_head(decided)) == (gone, made)


def test_two_ready_heads_are_told_of_and_workers_go_on():
    decided = plan_of(head("a"), head("b"), of=cluster(group(replicas=1)))
    assert [n.reason for n in decided.notices] == ["MultipleHeadPods"]
    assert len(decided.actions) == 1


def test_the_best_head_comes_first_whatever_the_order():
    heads = [terminating(head("d")), unready(head("c")), aged(head("b"), 5), aged(head("a"), 50)]
    want = ["a", "b", "c", "d"]
    assert [h.name for h in heads_of(snapshot(cluster(), heads))] == want
    assert [h.name for h in heads_of(snapshot(cluster(), heads[::-1]))] == want


def test_a_head_that_fails_is_counted_and_pauses_when_it_keeps_failing():
    assert plan_of(failed(head("a"))).repairs == (HEAD_KEY,)
    decided = plan_of(memory=Memory(1, repairs={HEAD_KEY: Backoff(4, LATER)}))
    assert (creates_head(decided), decided.requeue_after) == (False, 20)


def test_a_refused_head_pauses():
    decided = plan_of(memory=Memory(1, refusals={names.HEAD_GROUP: Backoff(1, LATER, "quota")}))
    assert (creates_head(decided), decided.requeue_after) == (False, 20)


def test_a_waiting_head_is_looked_at_when_the_old_one_should_be_gone():
    assert plan_of(terminating(head("a"), 30)).requeue_after == 40


@pytest.mark.parametrize(
    ("stored", "made"),
    [
        pytest.param((), True, id="before it was provisioned"),
        pytest.param(("RayClusterProvisioned",), False, id="once it was"),
    ],
)
def test_a_user_may_forbid_a_second_head(stored, made):
    of = cluster(metadata={"annotations": {names.DISABLE_HEAD_RESTART: "true"}}, status=conditions(*stored))
    assert creates_head(plan_of(of=of)) is made


def test_a_new_head_has_a_new_name():
    first, second = (name_of(plan_of(nonce=nonce)) for nonce in ("one", "two"))
    assert first != second
    assert first.startswith("demo-head-")


def test_an_administrator_may_fix_the_name():
    assert name_of(plan_of(config=OperatorConfig(deterministic_head_pod_name=True))) == "demo-head"


def test_the_name_in_the_template_wins():
    template = {"metadata": {"name": "mine"}, "spec": {"containers": [{"name": "ray-head", "image": "ray"}]}}
    assert name_of(plan_of(of=cluster(headGroupSpec={"template": template}))) == "mine"


def test_the_head_is_no_worker():
    decided = plan_of(head("a"), *singles(1), of=cluster(group(replicas=0, delete=["a"])))
    assert (deleted(decided), reasons(decided)) == ({"w0"}, {Reason.SCALE_DOWN})
