"""Replica indices: the lowest free one, and nobody's twice."""

from __future__ import annotations

import pytest

from tpu_operator.planning.indices import allocate


@pytest.mark.parametrize(
    ("given", "start", "waits"),
    [
        pytest.param((0, {0}, {}, {}), (), {}, id="nothing wanted, nothing given"),
        pytest.param((3, set(), {}, {}), (0, 1, 2), {}, id="an empty group counts from zero"),
        pytest.param((2, {0, 2}, {}, {}), (1, 3), {}, id="gaps are filled first"),
        pytest.param((1, {0}, {1: 30.0}, {}), (), {1: 30.0}, id="an index waits for the pods before it"),
        pytest.param((1, {0}, {1: 0.0}, {}), (2,), {}, id="pods that hang are passed over"),
        pytest.param((1, {0}, {1: -5.0}, {}), (2,), {}, id="however long they hang"),
        pytest.param((2, {0}, {1: 30.0}, {}), (2,), {1: 30.0}, id="one waits, its neighbour starts"),
        pytest.param((1, {0, 2}, {5: 30.0}, {}), (), {1: 30.0}, id="a leaving slice holds a host, whatever its index"),
        pytest.param((2, {0}, {5: 9.0, 6: 30.0}, {}), (), {1: 9.0, 2: 9.0}, id="the first to leave makes room"),
        pytest.param((2, {0}, {5: 9.0, 6: -1.0}, {}), (1,), {2: 9.0}, id="hanging ones hold no room"),
        pytest.param((1, {0}, {}, {1: 20.0}), (), {1: 20.0}, id="a slice that keeps failing pauses"),
        pytest.param((1, {0}, {1: 30.0}, {1: 60.0}), (), {1: 60.0}, id="the longer wait counts"),
        pytest.param((2, {0}, {}, {1: 20.0}), (2,), {1: 20.0}, id="its neighbours do not pause"),
        pytest.param((1, {0}, {}, {1: 0.0}), (1,), {}, id="a pause that is over holds nothing"),
    ],
)
def test_each_new_slice_gets_the_lowest_index_that_it_may_have(given, start, waits):
    """Given are the number of new slices, and the indices that are used, leaving and resting."""
    allocation = allocate(*given)
    assert (allocation.start, dict(allocation.waits)) == (start, waits)
