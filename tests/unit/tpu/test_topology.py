from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_operator.errors import InvalidInput
from tpu_operator.tpu.topology import Topology, parse_topology


@pytest.mark.parametrize(
    ("text", "dims", "axes", "chips"),
    [
        ("4x4", (4, 4), (4, 4, 1), 16),
        ("2x2x1", (2, 2, 1), (2, 2, 1), 4),
        ("16x20x28", (16, 20, 28), (16, 20, 28), 8960),
    ],
)
def test_a_topology_is_read_and_written_alike(text, dims, axes, chips):
    topology = parse_topology(text)

    assert (topology.dims, topology.axes, topology.chips, str(topology)) == (dims, axes, chips, text)


@pytest.mark.parametrize(
    "text",
    [
        "4",
        "x4",
        "4x",
        "2xa",
        "0x4",
        "-2x2",
        "2x2x2x2",
        " 2x2",
        "2x2 ",
        "2x2\n",
        "2X2",
        "02x2",
        "2,2",
        "4x٤",
        "9" * 999 + "x1",
    ],
)
def test_what_is_no_topology_is_refused_with_a_line_that_says_what_is(text):
    with pytest.raises(InvalidInput, match="2 or 3 positive whole numbers") as refused:
        parse_topology(text)

    assert "\n" not in str(refused.value)


def test_a_missing_topology_names_the_node_selector():
    with pytest.raises(InvalidInput, match=r"cloud\.google\.com/gke-tpu-topology"):
        parse_topology("")


@pytest.mark.parametrize("dims", [(), (4,), (2, 0), (2, -2), (1, 1, 1, 1)])
def test_no_topology_can_be_made_of_other_sides(dims):
    with pytest.raises(InvalidInput, match="2 or 3 positive"):
        Topology(dims)


@given(st.lists(st.integers(1, 9999), min_size=2, max_size=3))
def test_writing_and_reading_leads_back(dims):
    topology = Topology(tuple(dims))

    assert parse_topology(str(topology)) == topology


@given(st.text())
def test_any_text_is_a_topology_or_refused(text):
    with suppress(InvalidInput):
        assert str(parse_topology(text)) == text
