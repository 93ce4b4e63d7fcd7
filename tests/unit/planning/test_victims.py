"""The order in which surplus slices go."""

from __future__ import annotations

import random

import pytest

from builders import aged, hosts, pending, singles, unready
from tpu_operator.planning.slices import ObservedSlice, SliceState
from tpu_operator.planning.victims import by_worth

OLD, YOUNG = 7200, 60
W = SliceState.WHOLE


def piece(index, *pods, size=1):
    return ObservedSlice("g", f"s{index}", index, pods, size)


def one(index, change=lambda pod: pod, age=OLD):
    return piece(index, aged(change(singles(1, start=index or 0)[0]), age))


def unscheduled(pod):
    return pending(pod, node=None)


@pytest.mark.parametrize(
    ("slices", "want"),
    [
        pytest.param(
            [(one(0), W), (one(1, unready), W), (one(2, pending), W), (one(3, unscheduled), W)],
            [3, 2, 1, 0],
            id="unscheduled, pending, not ready, ready (OC-06)",
        ),
        pytest.param(
            [(one(0, unscheduled, OLD), W), (one(1, age=YOUNG), W)], [0, 1], id="progress counts more than age"
        ),
        pytest.param([(one(0, age=YOUNG), W), (one(1, age=OLD), W)], [0, 1], id="of equals the youngest goes"),
        pytest.param([(one(0), W), (one(1), W), (one(2), W)], [2, 1, 0], id="of the same age the highest index"),
        pytest.param(
            [(one(0), W), (one(1), SliceState.FORMING), (one(2), SliceState.RESIZED)],
            [2, 1, 0],
            id="of another size, then forming, then whole",
        ),
        pytest.param(
            [(piece(0, *hosts(0, 4)), W), (piece(1, *hosts(1, 4)[:3], unready(hosts(1, 4)[3])), W)],
            [1, 0],
            id="a slice is worth what its last host is",
        ),
        pytest.param([(one(None), W), (one(0, age=YOUNG), W)], [0, None], id="pods without an index are compared too"),
    ],
)
def test_the_least_useful_slice_goes_first(slices, want):
    assert [s.index for s in by_worth(slices)] == want
    mixed = random.Random(7).sample(slices, len(slices))
    assert [s.index for s in by_worth(mixed)] == want
