"""Any pods, however odd: the planner answers, always the same, and within its rights."""

from __future__ import annotations

import random
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from builders import BORN, NOW, OWNER, cluster, group, head, snapshot
from tpu_operator.api import names
from tpu_operator.planning.memory import Backoff, HostKey, Memory, SliceKey
from tpu_operator.planning.outcome import Outcome, Outcomes, Result
from tpu_operator.planning.plan import CreateSlice, DeleteHead, DeleteSlice, Plan
from tpu_operator.planning.planner import plan
from tpu_operator.planning.pod import (
    ContainerName,
    ContainerState,
    ContainerStates,
    ContainerStatus,
    Pod,
    PodAnnotations,
    PodCondition,
    PodMeta,
    PodSpec,
    PodStatus,
)
from tpu_operator.planning.remember import remember

NUMBERS = st.sampled_from(["0", "1", "2", "3", "7", "", "x", "²", "99999999999999999999", "-1"])
GROUPS = st.sampled_from(["a", "b", "removed", ""])
SECONDS = st.integers(-100, 100)
NODE_TYPES = st.sampled_from([names.WORKER] * 6 + [names.HEAD, "redis-cleanup"])
PHASES = st.sampled_from(["Pending", "Running", "Running", "Running", "Failed", "Succeeded", "Unknown", ""])


@st.composite
def labels(draw):
    chosen = {names.CLUSTER: "demo", names.NODE_TYPE: draw(NODE_TYPES), names.NODE_GROUP: draw(GROUPS)}
    for key, values in (
        (names.REPLICA_NAME, st.sampled_from(["s0", "s1", "s2", ""])),
        (names.REPLICA_INDEX, NUMBERS),
        (names.HOST_INDEX, NUMBERS),
        (names.LEGACY_REPLICA_INDEX, st.sampled_from(["a-0", "a-1", "b-0", "a-", "-0", "nonsense"])),
    ):
        if (value := draw(st.none() | values)) is not None:
            chosen[key] = value
    return chosen


@st.composite
def statuses(draw):
    ready = draw(st.sampled_from([(), (PodCondition("Ready", "True"),), (PodCondition("Ready", "False"),)]))
    ended = ContainerStatus("ray-worker", state=ContainerStates(terminated=ContainerState(exit_code=1)))
    return PodStatus(
        draw(PHASES),
        reason=draw(st.sampled_from([None, "Evicted"])),
        conditions=ready,
        container_statuses=draw(st.sampled_from([(), (), (ended,)])),
    )


@st.composite
def pods(draw, number):
    ends = draw(st.none() | st.none() | SECONDS)
    meta = PodMeta(
        name=f"p{number}",
        namespace="team-a",
        uid=draw(st.sampled_from([f"uid-{number}"] * 5 + [""])),
        labels=draw(labels()),
        annotations=draw(st.none() | st.builds(PodAnnotations, num_of_hosts=st.none() | NUMBERS)),
        creation_timestamp=draw(st.none() | st.just(BORN) | st.just(NOW)),
        deletion_timestamp=None if ends is None else NOW + timedelta(seconds=ends),
        owner_references=(OWNER,),
    )
    spec = PodSpec(
        containers=(ContainerName("ray-worker"),),
        node_name=draw(st.sampled_from([None, "node"])),
        restart_policy=draw(st.sampled_from(["Always", "Never"])),
        termination_grace_period_seconds=draw(st.sampled_from([None, 0, 30, 600])),
    )
    return Pod(meta, spec, draw(statuses()))


BACKOFFS = st.builds(Backoff, st.integers(1, 9), SECONDS.map(lambda s: NOW + timedelta(seconds=s)))
MEMORIES = st.builds(
    Memory,
    st.just(1),
    st.dictionaries(st.sampled_from(["a", "b", names.HEAD_GROUP]), BACKOFFS, max_size=1),
    st.dictionaries(st.builds(SliceKey, st.sampled_from(["a", "b", names.HEAD_GROUP]), st.integers(-1, 2)), BACKOFFS),
    st.frozensets(st.builds(HostKey, st.sampled_from(["s0", "s1"]), st.integers(0, 3))),
)
SPECS = st.builds(
    lambda replicas, hosts, other, listed, autoscaling: cluster(
        group("a", replicas, hosts=hosts, delete=listed), group("b", other), autoscaling=autoscaling
    ),
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(0, 3),
    st.lists(st.sampled_from(["p0", "p1", "p5", "nobody"]), max_size=2),
    st.booleans(),
)
SIGHTS = st.integers(0, 10).flatmap(lambda count: st.tuples(*(pods(number) for number in range(count))))


def deletes(of: Plan) -> list[Pod]:
    found: list[Pod] = []
    for action in of.actions:
        found.extend((action.pod,) if isinstance(action, DeleteHead) else ())
        found.extend(action.pods if isinstance(action, DeleteSlice) else ())
    return found


@given(of=SPECS, seen=SIGHTS, memory=MEMORIES, seed=st.integers(0, 9))
def test_the_planner_always_answers_and_always_the_same(of, seen, memory, seed):
    decided = plan(snapshot(of, [head(), *seen], memory=memory))
    mixed = random.Random(seed).sample([head(), *seen], len(seen) + 1)
    assert plan(snapshot(of, mixed, memory=memory)) == decided
    gone = deletes(decided)
    assert len({p.name for p in gone}) == len(gone)
    assert not any(p.terminating or not p.uid for p in gone)
    made = [(a.group, a.index, h.host) for a in decided.actions if isinstance(a, CreateSlice) for h in a.hosts]
    assert len(set(made)) == len(made)
    assert all(a.hosts for a in decided.actions if isinstance(a, CreateSlice))
    assert all(w.seconds > 0 for w in decided.waiting)


@given(of=SPECS, seen=SIGHTS, memory=MEMORIES, results=st.lists(st.sampled_from(list(Result)), min_size=9))
def test_whatever_became_of_it_can_be_remembered(of, seen, memory, results):
    decided = plan(snapshot(of, seen, memory=memory))
    pairs = zip(decided.actions, results * (1 + len(decided.actions)), strict=False)
    outcomes = Outcomes(tuple(Outcome(action, result, "text") for action, result in pairs))
    remembered = remember(memory, decided, outcomes, NOW)
    plan(snapshot(of, seen, memory=remembered))
    assert remember(memory, decided, outcomes, NOW) == remembered
