"""A worker group: what goes, what comes, what waits."""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders import (
    NOW,
    aged,
    cluster,
    created,
    decide,
    deleted,
    failed,
    group,
    head,
    host,
    hosts,
    pending,
    pod,
    reasons,
    relabelled,
    singles,
    snapshot,
    terminating,
    unready,
)
from tpu_operator.api import names
from tpu_operator.planning.memory import Backoff, HostKey, Memory, SliceKey
from tpu_operator.planning.plan import CreateSlice, Reason
from tpu_operator.planning.planner import plan

ALL = (0, 1, 2, 3)


def slices(count, size=4):
    return tuple(p for index in range(count) for p in hosts(index, size))


def names_of(pods):
    return {p.name for p in pods}


# -- scale -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "pods", "gone", "made"),
    [
        pytest.param(group(replicas=2, hosts=4), (), (), [0, 1], id="slices are created whole"),
        pytest.param(group(replicas=2, hosts=4), slices(2), (), [], id="what is right stays"),
        pytest.param(group(replicas=1, hosts=4), slices(2), hosts(1), [], id="a slice goes whole (MH-12)"),
        pytest.param(group(replicas=0, hosts=4), slices(2), slices(2), [], id="down to zero"),
        pytest.param(group(replicas=9, hosts=4, high=2), slices(1), (), [1], id="never above maxReplicas (OC-10)"),
        pytest.param(group(replicas=0, hosts=4, low=2), slices(1), (), [1], id="never below minReplicas"),
        pytest.param(group(replicas=None, hosts=4, low=2), (), (), [0, 1], id="no replicas means minReplicas (OC-12)"),
        pytest.param(
            group(replicas=3, hosts=4, suspend=True), slices(2), slices(2), [], id="a suspended group has no pods"
        ),
        pytest.param(group(replicas=2, hosts=4), hosts(1), (), [0], id="the lowest free index is taken (MH-10)"),
    ],
)
def test_slices_follow_the_spec(spec, pods, gone, made):
    plan = decide(cluster(spec), pods)
    assert deleted(plan) == names_of(gone)
    assert created(plan) == [("g", index, ALL) for index in made]


def test_hosts_of_a_new_slice_have_one_slice_name_and_names_of_their_own():
    plan = decide(cluster(group(replicas=3, hosts=4)))
    made = [a for a in plan.actions if isinstance(a, CreateSlice)]
    assert len({a.slice_name for a in made}) == 3
    assert len({h.pod for a in made for h in a.hosts}) == 12
    assert all(a.slice_name.startswith("g-") and a.size == 4 for a in made)


def test_a_slice_of_one_host_is_named_after_its_pod():
    (action,) = decide(cluster(group(replicas=1))).actions[-1:]
    assert action.slice_name == action.hosts[0].pod


# -- repair ------------------------------------------------------------------------------------------------------------


def test_all_broken_slices_are_repaired_in_one_pass():
    pods = [failed(p) if p.name.endswith("h2") else p for p in slices(3)]
    plan = decide(cluster(group(replicas=3, hosts=4)), pods)
    assert deleted(plan) == names_of(pods)
    assert set(plan.repairs) == {SliceKey("g", 0), SliceKey("g", 1), SliceKey("g", 2)}


def test_the_new_incarnation_waits_until_the_old_one_is_gone():
    spec = cluster(group(replicas=2, hosts=4))
    old = [terminating(p, 30) for p in hosts(1)]
    plan = decide(spec, [*hosts(0), *old])
    assert plan.empty
    assert plan.requeue_after == 40
    assert created(decide(spec, hosts(0))) == [("g", 1, ALL)]


def test_pods_that_hang_do_not_block_and_their_index_is_passed_over():
    old = [terminating(p, -11) for p in hosts(1)]
    assert created(decide(cluster(group(replicas=2, hosts=4)), [*hosts(0), *old])) == [("g", 2, ALL)]


def test_a_failed_single_host_is_replaced_at_once_for_nothing_of_it_runs():
    plan = decide(cluster(group(replicas=2)), [singles(1)[0], failed(singles(2)[1])])
    assert deleted(plan) == {"w1"}
    assert created(plan) == [("g", 1, (0,))]


def test_a_slice_that_never_was_complete_is_topped_up():
    plan = decide(cluster(group(replicas=1, hosts=4)), [pending(p) for p in hosts(0)[:2]])
    (action,) = [a for a in plan.actions if isinstance(a, CreateSlice)]
    assert (action.slice_name, action.reason) == ("g-s0", Reason.TOP_UP)
    assert [h.host for h in action.hosts] == [2, 3]


def test_a_slice_is_topped_up_though_others_run_if_its_missing_host_never_was():
    memory = Memory(1, uncreated=frozenset({HostKey("g-s0", 3)}))
    plan = decide(cluster(group(replicas=1, hosts=4)), hosts(0)[:3], memory=memory)
    assert (deleted(plan), created(plan)) == (set(), [("g", 0, (3,))])


def test_a_create_that_is_not_settled_counts_as_a_pod():
    unsettled = relabelled(pending(hosts(0)[3], node=None), uid="")
    plan = decide(cluster(group(replicas=1, hosts=4)), [*hosts(0)[:3], unsettled])
    assert plan.empty


def test_an_unsettled_pod_is_not_deleted_without_a_uid():
    unsettled = relabelled(pending(hosts(0)[3], node=None), uid="")
    plan = decide(cluster(group(replicas=0, hosts=4)), [*hosts(0)[:3], unsettled])
    assert deleted(plan) == names_of(hosts(0)[:3])


def test_of_two_slices_with_one_index_the_more_useful_stays():
    spec = cluster(group(replicas=2, hosts=4), autoscaling=True)
    twin = [pending(p) for p in hosts(0, name="twin")]
    plan = decide(spec, [*hosts(0), *twin])
    assert deleted(plan) == names_of(twin)
    assert reasons(plan) == {Reason.INDEX_DUPLICATE}


# -- pauses ------------------------------------------------------------------------------------------------------------


def test_refused_creates_pause_and_the_pause_is_told():
    memory = Memory(1, refusals={"g": Backoff(1, NOW + timedelta(seconds=20), "quota")})
    plan = decide(cluster(group(replicas=2, hosts=4), group("b", 1)), memory=memory)
    assert created(plan) == [("b", 0, (0,))]
    assert plan.requeue_after == 20


def test_a_half_slice_of_a_refused_group_goes():
    memory = Memory(1, refusals={"g": Backoff(1, NOW + timedelta(seconds=20), "quota")})
    plan = decide(cluster(group(replicas=1, hosts=4)), [pending(p) for p in hosts(0)[:2]], memory=memory)
    assert (deleted(plan), created(plan)) == ({"g-s0-h0", "g-s0-h1"}, [])


def test_deletes_do_not_pause():
    memory = Memory(1, refusals={"g": Backoff(1, NOW + timedelta(seconds=20), "quota")})
    assert deleted(decide(cluster(group(replicas=1)), singles(2), memory=memory)) == {"w1"}


def test_a_slice_that_keeps_failing_pauses_alone():
    memory = Memory(1, repairs={SliceKey("g", 0): Backoff(4, NOW + timedelta(seconds=10))})
    plan = decide(cluster(group(replicas=2)), memory=memory)
    assert created(plan) == [("g", 1, (0,))]
    assert [(w.what, w.seconds) for w in plan.waiting] == [("slice g-0", 10)]


# -- autoscaler --------------------------------------------------------------------------------------------------------


def test_with_the_autoscaler_on_a_surplus_stays():
    assert decide(cluster(group(replicas=1, hosts=4), autoscaling=True), slices(3)).empty


def test_with_the_autoscaler_on_a_surplus_slice_that_never_was_complete_goes():
    half = [pending(p) for p in hosts(1)[:2]]
    plan = decide(cluster(group(replicas=1, hosts=4), autoscaling=True), [*hosts(0), *half])
    assert (deleted(plan), created(plan)) == (names_of(half), [])


def test_with_the_autoscaler_on_broken_slices_are_repaired():
    pods = [*hosts(0), *hosts(1)[:3], failed(hosts(1)[3])]
    assert deleted(decide(cluster(group(replicas=1, hosts=4), autoscaling=True), pods)) == names_of(hosts(1))


def test_a_new_pod_never_gets_a_name_that_is_to_be_deleted():
    first = decide(cluster(group(replicas=2))).actions
    listed = [h.pod for a in first if isinstance(a, CreateSlice) for h in a.hosts]
    again = decide(cluster(group(replicas=2, delete=listed))).actions
    assert not {h.pod for a in again if isinstance(a, CreateSlice) for h in a.hosts} & set(listed)


def test_long_names_with_a_common_start_never_meet():
    long = "c" * 53
    groups = [group(f"g{n}", 40, high=40) for n in range(20)]
    plan_of_all = plan(snapshot(cluster(*groups, name=long), [head()]))
    made = [h.pod for a in plan_of_all.actions if isinstance(a, CreateSlice) for h in a.hosts]
    assert len(set(made)) == 800


# -- a changed numOfHosts ----------------------------------------------------------------------------------------------


def test_slices_of_another_size_are_replaced_one_at_a_time():
    pods = [aged(p, 100 + index) for index in range(3) for p in hosts(index, 2)]
    plan = decide(cluster(group(replicas=3, hosts=4)), pods)
    assert (deleted(plan), reasons(plan)) == ({"g-s0-h0", "g-s0-h1"}, {Reason.NUM_OF_HOSTS_CHANGED})


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(tuple(map(pending, hosts(0, 4))), id="the new one has not started"),
        pytest.param((*hosts(0, 4)[:3], unready(hosts(0, 4)[3])), id="one of its hosts is not ready"),
        pytest.param(tuple(map(terminating, hosts(0, 2))), id="the old one has not left"),
        pytest.param((), id="there is none yet"),
    ],
)
def test_the_next_one_waits_while(first):
    plan = decide(cluster(group(replicas=2, hosts=4)), [*first, *hosts(1, 2)])
    assert deleted(plan) == set()


def test_the_next_one_goes_when_the_new_one_is_ready():
    plan = decide(cluster(group(replicas=2, hosts=4)), [*hosts(0, 4), *hosts(1, 2)])
    assert deleted(plan) == names_of(hosts(1, 2))


def test_a_pod_that_hangs_does_not_keep_the_others_at_the_old_size():
    hung = [terminating(p, -60) for p in hosts(0, 2)]
    plan = decide(cluster(group(replicas=2, hosts=4)), [*hung, *hosts(1, 2), *hosts(2, 4)])
    assert deleted(plan) == names_of(hosts(1, 2))


def test_slices_of_another_size_that_do_no_work_are_replaced_at_once():
    pods = [pending(p) for index in range(3) for p in hosts(index, 2)]
    assert deleted(decide(cluster(group(replicas=3, hosts=4)), pods)) == names_of(pods)


def test_single_hosts_become_slices_and_back():
    assert deleted(decide(cluster(group(replicas=1, hosts=4)), singles(1))) == {"w0"}
    assert deleted(decide(cluster(group(replicas=1)), hosts(0, 4))) == names_of(hosts(0, 4))


# -- groups ------------------------------------------------------------------------------------------------------------


def test_pods_of_a_group_that_is_not_in_the_spec_any_more_go():
    plan = decide(cluster(group("a", 1)), [*singles(1, of="a"), *singles(2, of="b")])
    assert (deleted(plan), reasons(plan)) == ({"b-w0", "b-w1"}, {Reason.GROUP_REMOVED})


def test_groups_share_no_indices():
    plan = decide(cluster(group("a", 1, hosts=2), group("b", 1, hosts=4)))
    assert created(plan) == [("a", 0, (0, 1)), ("b", 0, ALL)]


def test_own_pods_of_other_kinds_are_nobodys_business():
    other = pod("other", {names.NODE_TYPE: "redis-cleanup"}, "job")
    assert decide(cluster(group(replicas=1)), [*singles(1), other]).empty


def test_a_pod_whose_labels_were_changed_is_replaced_and_not_doubled():
    odd = host("w1", 0, of="g")
    plan = decide(cluster(group(replicas=2)), [*singles(1), odd])
    assert len(deleted(plan)) == 1
    assert created(plan) == []


def test_ended_pods_with_a_foreign_finalizer_do_not_keep_the_others_at_the_old_size():
    ended = [failed(terminating(p, 600)) for p in hosts(0, 2)]
    plan = decide(cluster(group(replicas=2, hosts=4)), [*ended, *hosts(1, 2), *hosts(2, 4)])
    assert (deleted(plan), plan.requeue_after) == (names_of(hosts(1, 2)), 40)


def test_slices_of_another_size_are_looked_at_again_when_those_that_leave_should_be_gone():
    plan = decide(cluster(group(replicas=1, hosts=4)), [*map(terminating, hosts(0, 2)), *hosts(1, 2)])
    assert (plan.actions, plan.requeue_after) == ((), 40)
