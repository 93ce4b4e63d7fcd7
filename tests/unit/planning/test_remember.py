"""What is kept from pass to pass."""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders import NOW, head, hosts, singles
from tpu_operator.planning.heads import HEAD_KEY
from tpu_operator.planning.memory import Backoff, HostKey, Memory, SliceKey, next_backoff
from tpu_operator.planning.outcome import Outcome, Outcomes, Result
from tpu_operator.planning.plan import (
    Apply,
    Blocker,
    CreateHead,
    CreateSlice,
    DeleteHead,
    DeleteSlice,
    HostName,
    Notice,
    Plan,
    Reason,
)
from tpu_operator.planning.remember import remember
from tpu_operator.resources.registry import ChildKey


def create(group="g", index=0, hosts=4, reason=Reason.SCALE_UP):
    places = tuple(HostName(n, f"{group}-{index}-{n}") for n in range(hosts))
    return CreateSlice(group, index, f"{group}-s{index}", 4, places, reason)


def delete(index=0, reason=Reason.POD_FAILED):
    return DeleteSlice("g", index, f"g-s{index}", hosts(index), reason)


def after(*outcomes, memory=None, plan=None, now=NOW):
    return remember(memory or Memory(), plan or Plan(), Outcomes(outcomes), now)


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_refusals_wait_longer_and_longer_up_to_a_minute():
    memory, waits = Memory(), []
    for _ in range(6):
        memory = after(Outcome(create(), Result.REFUSED, "quota"), memory=memory)
        waits.append(memory.refusals["g"].waits(NOW))
    assert waits == [5, 10, 20, 40, 60, 60]
    assert memory.refusals["g"].message == "quota"


def test_a_create_that_went_through_ends_the_refusal():
    memory = Memory(refusals={"g": Backoff(3, NOW), "other": Backoff(1, NOW)})
    assert set(after(Outcome(create(), Result.DONE), memory=memory).refusals) == {"other"}


def test_progress_starts_the_pauses_anew():
    memory = Memory(refusals={"g": Backoff(5, NOW, "quota")})
    outcomes = Outcome(create(index=0), Result.DONE), Outcome(create(index=1), Result.REFUSED, "quota")
    assert after(*outcomes, memory=memory).refusals["g"].count == 1


@pytest.mark.parametrize("result", [Result.FAILED, Result.UNSETTLED, Result.SKIPPED])
def test_other_results_leave_a_refusal_as_it_is(result):
    memory = Memory(refusals={"g": Backoff(3, NOW, "quota")})
    assert after(Outcome(create(), result), memory=memory).refusals == memory.refusals


def test_the_head_is_refused_under_its_own_name():
    assert set(after(Outcome(CreateHead("h"), Result.REFUSED, "quota")).refusals) == {"headgroup"}


def test_a_new_generation_forgets_refusals_and_nothing_else():
    memory = Memory(1, {"g": Backoff(1, NOW)}, {SliceKey("g", 0): Backoff(1, NOW)}, frozenset({HostKey("s", 0)}))
    assert memory.of_generation(1) is memory
    assert memory.of_generation(2) == Memory(2, {}, memory.repairs, memory.uncreated)


# -- repairs -----------------------------------------------------------------------------------------------------------


def test_two_repairs_are_free_then_the_pauses_grow_to_five_minutes():
    last, waits = None, []
    for _ in range(11):
        last = next_backoff(last, NOW, first=5, cap=300, free=2)
        waits.append(last.waits(NOW))
    assert waits == [0, 0, 5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_a_slice_that_fails_at_once_is_made_at_most_ten_times_in_ten_minutes_hp_10():
    memory, now, made = Memory(), NOW, 0
    while now < NOW + timedelta(minutes=10):
        made += 1
        action = delete()
        outcome = Outcome(action, Result.DONE, deleted=action.pods)
        memory = after(outcome, memory=memory, plan=Plan(repairs=(SliceKey("g", 0),)), now=now)
        now += timedelta(seconds=max(1.0, memory.repairs[SliceKey("g", 0)].waits(now)))
    assert made <= 10


def test_a_repair_counts_only_once_its_pods_were_deleted():
    plan = Plan(repairs=(SliceKey("g", 0),))
    assert after(Outcome(delete(), Result.FAILED), plan=plan).repairs == {}
    assert after(plan=plan).repairs == {}
    counted = after(Outcome(delete(), Result.FAILED, deleted=hosts(0)[:2]), plan=plan)
    assert set(counted.repairs) == {SliceKey("g", 0)}


def test_a_repaired_head_counts_too():
    outcome = Outcome(DeleteHead(head(), Reason.POD_FAILED), Result.DONE, deleted=(head(),))
    assert after(outcome, plan=Plan(repairs=(HEAD_KEY,))).repairs[HEAD_KEY].count == 1


def test_a_slice_without_an_index_is_counted_apart():
    action = DeleteSlice("g", None, "old0", singles(1), Reason.POD_FAILED)
    outcome = Outcome(action, Result.DONE, deleted=singles(1))
    assert set(after(outcome, plan=Plan(repairs=(SliceKey("g", -1),))).repairs) == {SliceKey("g", -1)}


def test_ten_calm_minutes_forget_a_repair():
    memory = Memory(repairs={SliceKey("g", 0): Backoff(7, NOW)})
    assert after(memory=memory, now=NOW + timedelta(minutes=9)).repairs
    assert not after(memory=memory, now=NOW + timedelta(minutes=10)).repairs


# -- hosts that never were ---------------------------------------------------------------------------------------------

MISSING = HostKey("g-s0", 3)
TOP_UP = CreateSlice("g", 0, "g-s0", 4, (HostName(3, "g-0-3"),), Reason.TOP_UP)


@pytest.mark.parametrize(
    ("before", "outcome", "want"),
    [
        pytest.param(
            set(), Outcome(create(), Result.FAILED, created=hosts(0)[:3], uncreated=(3,)), {MISSING}, id="one failed"
        ),
        pytest.param(set(), Outcome(create(), Result.FAILED, uncreated=(0, 1, 2, 3)), set(), id="all failed: no slice"),
        pytest.param({MISSING}, Outcome(TOP_UP, Result.FAILED, uncreated=(3,)), {MISSING}, id="a top-up failed again"),
        pytest.param({MISSING}, Outcome(TOP_UP, Result.SKIPPED), {MISSING}, id="a top-up was not even tried"),
        pytest.param({MISSING}, Outcome(TOP_UP, Result.UNSETTLED), set(), id="a top-up may have worked"),
        pytest.param({MISSING}, Outcome(TOP_UP, Result.DONE, created=hosts(0)[3:]), set(), id="a top-up worked"),
        pytest.param({MISSING}, Outcome(TOP_UP, Result.REFUSED), set(), id="a refused top-up dooms the slice"),
        pytest.param({MISSING}, Outcome(delete(), Result.DONE, deleted=hosts(0)[:3]), set(), id="the slice has gone"),
        pytest.param({MISSING}, Outcome(delete(), Result.FAILED), {MISSING}, id="the slice could not be deleted"),
        pytest.param(
            {MISSING}, Outcome(delete(1), Result.DONE, deleted=hosts(1)), {MISSING}, id="another slice has gone"
        ),
    ],
)
def test_hosts_that_certainly_never_existed_are_remembered(before, outcome, want):
    assert after(outcome, memory=Memory(uncreated=frozenset(before))).uncreated == want


# -- what was told -----------------------------------------------------------------------------------------------------


def test_what_holds_has_been_told_and_what_is_over_may_be_told_again():
    notice, blocker = Notice("key", "Reason", "text"), Blocker("Reason", "spec", "wrong")
    told = after(plan=Plan(notices=(notice,), blockers=(blocker,)))
    assert told.announced == {"key", "spec: wrong"}
    assert after(memory=told).announced == frozenset()


def test_a_refusal_that_comes_every_pass_has_been_told():
    outcome = Outcome(Apply(ChildKey("Service", "s"), {}, Reason.CHILD_CHANGED), Result.REFUSED, "forbidden")
    assert after(outcome).announced == {"FailedToUpdateService/forbidden"}


# -- slices that were complete -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "want"),
    [
        pytest.param(Outcome(create(), Result.DONE, created=hosts(0)), {"g-s0", "g-s9"}, id="created as a whole"),
        pytest.param(
            Outcome(create(hosts=1, reason=Reason.TOP_UP), Result.DONE, created=hosts(0)[:1]),
            {"g-s0", "g-s9"},
            id="or completed",
        ),
        pytest.param(Outcome(create(), Result.FAILED, created=hosts(0)[:3], uncreated=(3,)), {"g-s9"}, id="in part"),
        pytest.param(Outcome(create(), Result.UNSETTLED), {"g-s9"}, id="who knows"),
        pytest.param(Outcome(delete(9), Result.DONE, deleted=hosts(9)), set(), id="deleted"),
        pytest.param(Outcome(delete(9), Result.REFUSED), {"g-s9"}, id="not deleted"),
    ],
)
def test_complete_slices_are_known_until_they_are_deleted(outcome, want):
    assert after(outcome, memory=Memory(complete=frozenset({"g-s9"}))).complete == want
