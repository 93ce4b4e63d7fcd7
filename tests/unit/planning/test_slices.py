"""From pods to slices, and how a slice stands."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from builders import (
    NOW,
    cluster,
    ended,
    failed,
    group,
    host,
    hosts,
    old_pods,
    pending,
    relabelled,
    singles,
    terminating,
    unready,
)
from tpu_operator.api import names
from tpu_operator.planning.memory import HostKey, Memory
from tpu_operator.planning.plan import Reason
from tpu_operator.planning.pod import PodAnnotations
from tpu_operator.planning.slices import SliceState, diagnose, gone_by, partition

FORMING, WHOLE, BROKEN = SliceState.FORMING, SliceState.WHOLE, SliceState.BROKEN


def worker_group(count=1, **fields):
    return cluster(group(hosts=count, **fields)).spec.worker_group_specs[0]


def shape(slices):
    return [(s.index, [p.name for p in s.pods]) for s in slices]


def without_labels(pod, *labels):
    return relabelled(pod, labels={k: v for k, v in pod.labels.items() if k not in labels})


# -- which pods belong together ----------------------------------------------------------------------------------------


def test_pods_of_one_replica_name_are_one_slice():
    slices = partition(worker_group(2), [*hosts(1, 2), *hosts(0, 2)])
    assert shape(slices) == [(0, ["g-s0-h0", "g-s0-h1"]), (1, ["g-s1-h0", "g-s1-h1"])]


def test_two_incarnations_of_an_index_are_two_slices():
    slices = partition(worker_group(2), [*hosts(0, 2, name="new"), *map(terminating, hosts(0, 2, name="old"))])
    assert [(s.index, s.name) for s in slices] == [(0, "new"), (0, "old")]


def test_each_pod_of_a_single_host_group_is_a_slice():
    assert shape(partition(worker_group(1), singles(3))) == [(0, ["w0"]), (1, ["w1"]), (2, ["w2"])]


def test_single_host_pods_without_labels_are_slices_without_an_index():
    assert shape(partition(worker_group(1), old_pods(2))) == [(None, ["old0"]), (None, ["old1"])]


def test_unlabelled_pods_count_as_slices_of_the_groups_size_mh_09():
    slices = partition(worker_group(4), old_pods(8))
    assert [len(s.pods) for s in slices] == [4, 4]
    assert [diagnose(s, "ray-worker").state for s in slices] == [WHOLE, WHOLE]


def test_pods_with_the_webhooks_label_keep_its_index():
    pods = [*old_pods(2, prefix="b", replicaIndex="g-1"), *old_pods(2, prefix="a", replicaIndex="g-0")]
    assert shape(partition(worker_group(2), pods)) == [(0, ["a0", "a1"]), (1, ["b0", "b1"])]


def test_unlabelled_pods_that_leave_do_not_deal_the_others_out_anew():
    pods = old_pods(8)
    leaving = [terminating(p) for p in pods[:4]]
    for gone in range(5):
        slices = partition(worker_group(4), [*leaving[gone:], *pods[4:]])
        states = [diagnose(s, "ray-worker").state for s in slices if s.live]
        assert states == [WHOLE]


def test_the_order_of_the_list_does_not_matter():
    pods = [*hosts(0, 4), *hosts(1, 4), *old_pods(6), *singles(2)]
    want = partition(worker_group(4), pods)
    for seed in range(5):
        assert partition(worker_group(4), random.Random(seed).sample(pods, len(pods))) == want


# -- how a slice stands ------------------------------------------------------------------------------------------------


def alter(pods, number, change):
    return tuple(change(p) if n == number else p for n, p in enumerate(pods))


def crashed(pod):
    return ended(pod, "ray-worker")


def without_size(pod):
    return relabelled(pod, annotations=None)


FULL = hosts(0, 4)
UNSTARTED = tuple(pending(p) for p in FULL)


@pytest.mark.parametrize(
    ("pods", "state", "reason"),
    [
        pytest.param(FULL, WHOLE, None, id="all hosts there"),
        pytest.param(UNSTARTED, WHOLE, None, id="all hosts there, none started (OC-19)"),
        pytest.param(alter(FULL, 2, unready), WHOLE, None, id="a host that is not ready is not lost"),
        pytest.param(alter(FULL, 2, failed), BROKEN, Reason.POD_FAILED, id="a failed host (MH-04)"),
        pytest.param(
            alter(FULL, 2, lambda p: failed(p, phase="Succeeded")),
            BROKEN,
            Reason.POD_FAILED,
            id="a host that has ended",
        ),
        pytest.param(
            alter(FULL, 2, terminating), BROKEN, Reason.HOST_TERMINATING, id="a terminating host is lost at once"
        ),
        pytest.param(alter(FULL, 2, crashed), BROKEN, Reason.RAY_CONTAINER_ENDED, id="Ray ended under Never (HP-04)"),
        pytest.param(FULL[:2] + FULL[3:], BROKEN, Reason.HOST_MISSING, id="a running slice that lost a host (MH-03)"),
        pytest.param(UNSTARTED[:2], FORMING, None, id="never complete, nothing started: topped up"),
        pytest.param((*UNSTARTED[:2], FULL[2]), BROKEN, Reason.HOST_MISSING, id="partly started: not sure, made anew"),
        pytest.param((*FULL, host("g-s0", 0, 2, size=4, name="x")), BROKEN, Reason.HOST_DUPLICATE, id="a host twice"),
        pytest.param(hosts(0, 2), SliceState.RESIZED, Reason.NUM_OF_HOSTS_CHANGED, id="built for fewer (MH-06)"),
        pytest.param(hosts(0, 8), SliceState.RESIZED, Reason.NUM_OF_HOSTS_CHANGED, id="built for more (MH-07)"),
        pytest.param(singles(1), SliceState.RESIZED, Reason.NUM_OF_HOSTS_CHANGED, id="built for one"),
        pytest.param(
            tuple(map(without_size, hosts(0, 8))),
            SliceState.RESIZED,
            Reason.NUM_OF_HOSTS_CHANGED,
            id="by KubeRay for more",
        ),
        pytest.param(tuple(map(without_size, FULL)), WHOLE, None, id="KubeRay's slices are slices"),
        pytest.param(
            tuple(without_labels(without_size(p), names.HOST_INDEX) for p in FULL),
            WHOLE,
            None,
            id="also without host numbers",
        ),
        pytest.param(tuple(map(terminating, FULL)), SliceState.LEAVING, None, id="all on their way out"),
    ],
)
def test_a_slice_is_as_good_as_its_worst_host(pods, state, reason):
    (piece,) = partition(worker_group(4), pods)
    diagnosis = diagnose(piece, "ray-worker")
    assert (diagnosis.state, diagnosis.loss.reason if diagnosis.loss else None) == (state, reason)


@pytest.mark.parametrize(
    ("uncreated", "state"),
    [
        pytest.param({HostKey("g-s0", 3)}, FORMING, id="known never to have been there"),
        pytest.param({HostKey("g-s0", 2)}, BROKEN, id="of another host"),
        pytest.param({HostKey("g-s1", 3)}, BROKEN, id="of another slice"),
    ],
)
def test_a_started_slice_is_topped_up_only_if_its_missing_host_never_was(uncreated, state):
    (piece,) = partition(worker_group(4), FULL[:3])
    assert diagnose(piece, "ray-worker", Memory(uncreated=frozenset(uncreated))).state is state


@pytest.mark.parametrize(
    ("complete", "state"),
    [
        pytest.param({"g-s0"}, BROKEN, id="created as a whole: a host was lost"),
        pytest.param({"g-s1"}, FORMING, id="another slice was"),
    ],
)
def test_a_slice_that_was_complete_is_not_topped_up_though_nothing_has_started(complete, state):
    (piece,) = partition(worker_group(4), UNSTARTED[:3])
    assert diagnose(piece, "ray-worker", Memory(complete=frozenset(complete))).state is state


def test_no_top_up_is_hoped_for_while_creates_are_refused():
    (piece,) = partition(worker_group(4), UNSTARTED[:3])
    found = diagnose(piece, "ray-worker", refused=True)
    assert (found.state, found.loss.reason) == (BROKEN, Reason.CREATE_REFUSED)


@pytest.mark.parametrize("size", ["²", "-1", "four", "9" * 5000, ""])
def test_an_annotation_that_is_no_number_says_nothing(size):
    pods = [relabelled(p, annotations=PodAnnotations(num_of_hosts=size)) for p in FULL]
    (piece,) = partition(worker_group(4), pods)
    assert diagnose(piece, "ray-worker").state is WHOLE


@pytest.mark.parametrize("index", ["²", "-1", "x", "9" * 63])
def test_an_index_label_that_is_no_number_says_nothing(index):
    pods = [relabelled(p, labels={**p.labels, names.REPLICA_INDEX: index}) for p in FULL]
    (piece,) = partition(worker_group(4), pods)
    assert piece.index is None


# -- when it is gone ---------------------------------------------------------------------------------------------------


def test_a_leaving_slice_is_gone_when_the_last_host_that_may_run_is():
    pods = [terminating(FULL[0], 5), terminating(FULL[1], 60), failed(terminating(FULL[2], 600))]
    (piece,) = partition(worker_group(4), pods)
    assert gone_by(piece, NOW) == NOW + timedelta(seconds=60)


def test_hosts_that_do_not_run_hold_nothing():
    (piece,) = partition(worker_group(4), [failed(terminating(p, 600)) for p in FULL])
    assert gone_by(piece, NOW) == NOW
