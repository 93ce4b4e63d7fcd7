"""The finalizer, and what happens before a cluster with GCS fault tolerance is let go."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from builders import NOW, cluster, creates_head, deleted, group, head, hosts, snapshot, template, terminating
from tpu_operator.api import names
from tpu_operator.config import OperatorConfig
from tpu_operator.planning.memory import Backoff, Memory
from tpu_operator.planning.plan import Apply, Hold, PatchFinalizers
from tpu_operator.planning.planner import plan
from tpu_operator.resources.registry import ChildKey

JOB = ChildKey("Job", "demo-redis-cleanup")
REDIS = {"redisAddress": "redis:6379"}
BEGUN = NOW - timedelta(seconds=60)
OTHER = "foregroundDeletion"


def ft(*, finalizers=(names.REDIS_FINALIZER,), options=REDIS, begun=None, annotations=None, groups=(), **spec):
    metadata = {"finalizers": list(finalizers), "annotations": annotations or {}}
    if begun:
        metadata["deletionTimestamp"] = begun.isoformat()
    return cluster(*groups, metadata=metadata, gcsFaultToleranceOptions=options, **spec)


def dying(**rest):
    return ft(**{"begun": BEGUN, **rest})


def job(*true):
    return {"metadata": {"uid": "j"}, "status": {"conditions": [{"type": t, "status": "True"} for t in true]}}


def decide(of, pods=(), *, job=None, memory=None, config=None):
    sight = snapshot(of, pods, memory=memory, config=config)
    children = {JOB: job} if job else {}
    return plan(replace(sight, observed=replace(sight.observed, children=children)))


def patches(decided):
    return [a.finalizers for a in decided.actions if isinstance(a, PatchFinalizers)]


def applied(decided):
    return [a.key for a in decided.actions if isinstance(a, Apply)]


def told(decided):
    return [n.reason for n in decided.notices]


# -- alive -------------------------------------------------------------------------------------------------------------


def test_no_pod_is_created_before_the_finalizer_is_stored():
    decided = plan(snapshot(ft(finalizers=("x",), groups=(group(),))))
    assert decided.actions == (PatchFinalizers(("x", names.REDIS_FINALIZER)),)
    assert decided.waiting
    assert creates_head(plan(snapshot(ft())))


def test_deletes_do_not_wait_for_the_finalizer():
    of = ft(finalizers=(), groups=(group(replicas=1, hosts=4, delete=["g-s0-h0"]),))
    assert deleted(plan(snapshot(of, (head(), *hosts(0))))) == {f"g-s0-h{n}" for n in range(4)}


@pytest.mark.parametrize(
    ("options", "annotations", "config", "wanted"),
    [
        (REDIS, {}, OperatorConfig(), True),
        (None, {names.FT_ENABLED: "true"}, OperatorConfig(), True),
        (None, {names.FT_ENABLED: "false"}, OperatorConfig(), False),
        (None, {}, OperatorConfig(), False),
        (REDIS, {}, OperatorConfig(redis_cleanup=False), False),
        (
            {"backend": "rocksdb"},
            {},
            OperatorConfig(feature_gates={"GCSFaultToleranceEmbeddedStorage"}),
            False,
        ),
    ],
)
@pytest.mark.parametrize("there", [True, False])
def test_a_cluster_has_the_finalizer_if_and_only_if_there_is_something_to_clean_up(
    options, annotations, config, wanted, there
):
    """Quirk 13: one that has nothing to clean up any more does not keep it until nobody removes it."""
    of = ft(options=options, annotations=annotations, finalizers=["x", *([names.REDIS_FINALIZER] if there else [])])
    expected = {(True, False): [("x", names.REDIS_FINALIZER)], (False, True): [("x",)]}.get((wanted, there), [])
    assert patches(plan(snapshot(of, (head(),), config=config))) == expected


# -- being deleted -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("finalizers", [(), (OTHER,)])
def test_without_our_finalizer_nothing_is_done(finalizers):
    """FN-07, FN-10: nothing is created, whatever is missing."""
    decided = decide(dying(finalizers=finalizers, groups=(group(),)), (head(),))
    assert (decided.hold, decided.actions, decided.waiting) == (Hold.DELETING, (), ())


def test_first_the_pods_go():
    """FN-04."""
    decided = decide(dying(groups=(group(replicas=1, hosts=4),)), (head(), *hosts(0)))
    assert deleted(decided) == {"demo-head-aaaaa", *(f"g-s0-h{n}" for n in range(4))}
    assert (applied(decided), patches(decided)) == ([], [])


def test_the_job_waits_until_the_head_is_gone():
    decided = decide(dying(), (terminating(head()),))
    assert decided.actions == ()
    assert decided.requeue_after == 10


def test_workers_are_not_waited_for_as_they_do_not_write_to_redis():
    decided = decide(dying(groups=(group(replicas=1, hosts=4),)), map(terminating, hosts(0)))
    assert applied(decided) == [JOB]


def test_then_the_job_runs():
    assert applied(decide(dying())) == [JOB]
    running = decide(dying(), job=job())
    assert (running.actions, running.requeue_after) == ((), 10)


@pytest.mark.parametrize(
    "finalizers", [(names.REDIS_FINALIZER,), (OTHER, names.REDIS_FINALIZER), (names.REDIS_FINALIZER, "x")]
)
def test_then_the_finalizer_goes_and_those_of_others_stay(finalizers):
    """KF-14."""
    decided = decide(dying(finalizers=finalizers), job=job("Complete"))
    assert patches(decided) == [tuple(f for f in finalizers if f != names.REDIS_FINALIZER)]
    assert told(decided) == []


@pytest.mark.parametrize("condition", ["Failed", "FailureTarget"])
def test_a_job_that_failed_is_told_of_and_holds_nobody_back(condition):
    """Quirk 18."""
    decided = decide(dying(), job=job(condition))
    assert (patches(decided), told(decided)) == ([()], ["FailedRedisCleanup"])


@pytest.mark.parametrize(
    ("annotation", "seconds"),
    [(None, 300), ("30", 30), (" 30 ", 30), ("0", 300), ("-5", 300), ("soon", 300), ("", 300), ("1.5", 300)],
)
def test_the_time_is_up_after_five_minutes_or_what_the_annotation_says(annotation, seconds):
    """FN-03."""
    annotations = {} if annotation is None else {names.GCS_FT_DELETION_TIMEOUT: annotation}
    for left, expected in ((1, []), (0, [()])):
        begun = NOW - timedelta(seconds=seconds - left)
        decided = decide(dying(begun=begun, annotations=annotations), job=job())
        assert patches(decided) == expected
        assert decided.requeue_after == (1 if left else None)
    assert told(decided) == ["ForceDeletedStuckCluster"]


@pytest.mark.parametrize("pods", [(), (head(),), (terminating(head()),)])
def test_the_time_is_up_also_while_a_head_hangs(pods):
    """Quirk 14."""
    decided = decide(dying(begun=NOW - timedelta(seconds=301)), pods)
    assert (patches(decided), told(decided)) == ([()], ["ForceDeletedStuckCluster"])


def test_a_job_that_is_done_in_the_last_moment_is_done():
    decided = decide(dying(begun=NOW - timedelta(seconds=301)), job=job("Complete"))
    assert (patches(decided), told(decided)) == ([()], [])


def test_in_a_namespace_that_goes_too_the_finalizer_goes_at_once():
    """FN-01."""
    refusal = Backoff(1, NOW + timedelta(seconds=5), "it is being terminated", "NamespaceTerminating")
    decided = decide(dying(), memory=Memory(generation=1, refused_children={JOB: refusal}))
    assert (patches(decided), told(decided)) == ([()], ["RedisCleanupSkipped"])
    assert "it is being terminated" in decided.notices[0].message


def test_a_job_that_is_refused_for_another_cause_is_tried_again_after_a_pause():
    memory = Memory(generation=1, refused_children={JOB: Backoff(1, NOW + timedelta(seconds=5), "quota", "")})
    decided = decide(dying(), memory=memory)
    assert (decided.actions, decided.requeue_after) == ((), 5)
    memory = Memory(generation=1, refused_children={JOB: Backoff(1, NOW, "quota", "")})
    assert applied(decide(dying(), memory=memory)) == [JOB]


@pytest.mark.parametrize(
    ("of", "config"),
    [
        pytest.param(dying(options=None), OperatorConfig(), id="fault tolerance is off now"),
        pytest.param(dying(), OperatorConfig(redis_cleanup=False), id="the administrator does not want it now"),
        pytest.param(dying(options={"backend": "rocksdb"}), OperatorConfig(), id="the backend is another"),
        pytest.param(dying(headGroupSpec={"template": {}}), OperatorConfig(), id="no image to do it with"),
        pytest.param(dying(options="nonsense"), OperatorConfig(), id="unreadable"),
    ],
)
def test_where_nothing_can_be_cleaned_up_the_finalizer_goes_at_once(of, config):
    """Quirk 13."""
    decided = decide(of, (head(),), config=config)
    assert (patches(decided), told(decided)) == ([()], ["RedisCleanupSkipped"])


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"groups": (group(low=3, high=1),)}, id="a mistake"),
        pytest.param({"managedBy": "kueue.x-k8s.io/multikueue"}, id="managed by somebody else now"),
        pytest.param({"suspend": True}, id="suspended"),
    ],
)
def test_a_mistake_does_not_hold_a_deletion_back(spec):
    """Quirk 12."""
    assert applied(decide(dying(**spec))) == [JOB]
    assert patches(decide(dying(**spec), job=job("Complete"))) == [()]


def test_the_uid_of_the_cluster_is_the_storage_namespace_that_is_told():
    decided = decide(dying(begun=NOW - timedelta(days=1)))
    assert "keys in Redis under uid-of-demo" in decided.notices[0].message


def test_a_template_is_enough():
    """The builders' own template has what a Job needs."""
    assert applied(decide(dying(headGroupSpec={"template": template("ray")}))) == [JOB]
