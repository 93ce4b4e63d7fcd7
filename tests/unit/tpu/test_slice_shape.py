from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_operator.errors import InvalidInput
from tpu_operator.tpu.generations import GENERATIONS
from tpu_operator.tpu.shape import IllegalSlice, slice_shape

# accelerator, topology, chips, chips per host, hosts, TPU_ACCELERATOR_TYPE, host bounds, wrap, Ray's head resource as its
# autoscaler expects it (and as the node announces it, where that differs).
VECTORS = """
tpu-v4-podslice       2x2x1         4 4     1 v4-8           1,1,1    fff TPU-v4-8-head
tpu-v4-podslice       2x2x2         8 4     2 v4-16          1,1,2    fff TPU-v4-16-head
tpu-v4-podslice       2x2x4        16 4     4 v4-32          1,1,4    fff TPU-v4-32-head
tpu-v4-podslice       2x4x4        32 4     8 v4-64          1,2,4    fff TPU-v4-64-head
tpu-v4-podslice       4x4x4        64 4    16 v4-128         2,2,4    ttt TPU-v4-128-head
tpu-v4-podslice       4x4x8       128 4    32 v4-256         2,2,8    ttt TPU-v4-256-head
tpu-v4-podslice       4x8x8       256 4    64 v4-512         2,4,8    ttt TPU-v4-512-head
tpu-v4-podslice       8x8x8       512 4   128 v4-1024        4,4,8    ttt TPU-v4-1024-head
tpu-v4-podslice       8x8x16     1024 4   256 v4-2048        4,4,16   ttt TPU-v4-2048-head
tpu-v4-podslice       8x16x16    2048 4   512 v4-4096        4,8,16   ttt TPU-v4-4096-head
tpu-v4-podslice       12x16x16   3072 4   768 v4-6144        6,8,16   ttt TPU-v4-6144-head
tpu-v5-lite-device    1x1           1 1     1 v5lite-1       1,1,1    fff TPU-v5litepod-1-head TPU-v5lite-1-head
tpu-v5-lite-device    2x2           4 4     1 v5lite-4       1,1,1    fff TPU-v5litepod-4-head TPU-v5lite-4-head
tpu-v5-lite-device    2x4           8 8     1 v5lite-8       1,1,1    fff TPU-v5litepod-8-head TPU-v5lite-8-head
tpu-v5-lite-podslice  1x1           1 1     1 v5litepod-1    1,1,1    fff TPU-v5litepod-1-head
tpu-v5-lite-podslice  2x2           4 4     1 v5litepod-4    1,1,1    fff TPU-v5litepod-4-head
tpu-v5-lite-podslice  2x4           8 8     1 v5litepod-8    1,1,1    fff TPU-v5litepod-8-head
tpu-v5-lite-podslice  2x4           8 4     2 v5litepod-8    1,2,1    fff TPU-v5litepod-8-head
tpu-v5-lite-podslice  4x4          16 4     4 v5litepod-16   2,2,1    fff TPU-v5litepod-16-head
tpu-v5-lite-podslice  4x8          32 4     8 v5litepod-32   2,4,1    fff TPU-v5litepod-32-head
tpu-v5-lite-podslice  8x8          64 4    16 v5litepod-64   4,4,1    fff TPU-v5litepod-64-head
tpu-v5-lite-podslice  8x16        128 4    32 v5litepod-128  4,8,1    ftf TPU-v5litepod-128-head
tpu-v5-lite-podslice  16x16       256 4    64 v5litepod-256  8,8,1    ttf TPU-v5litepod-256-head
tpu-v5p-slice         2x2x1         4 4     1 v5p-8          1,1,1    fff TPU-v5p-8-head
tpu-v5p-slice         2x2x2         8 4     2 v5p-16         1,1,2    fff TPU-v5p-16-head
tpu-v5p-slice         2x2x4        16 4     4 v5p-32         1,1,4    fff TPU-v5p-32-head
tpu-v5p-slice         2x4x4        32 4     8 v5p-64         1,2,4    fff TPU-v5p-64-head
tpu-v5p-slice         4x4x4        64 4    16 v5p-128        2,2,4    ttt TPU-v5p-128-head
tpu-v5p-slice         4x4x8       128 4    32 v5p-256        2,2,8    ttt TPU-v5p-256-head
tpu-v5p-slice         8x8x8       512 4   128 v5p-1024       4,4,8    ttt TPU-v5p-1024-head
tpu-v5p-slice         8x8x16     1024 4   256 v5p-2048       4,4,16   ttt TPU-v5p-2048-head
tpu-v5p-slice         16x16x16   4096 4  1024 v5p-8192       8,8,16   ttt TPU-v5p-8192-head
tpu-v5p-slice         16x16x24   6144 4  1536 v5p-12288      8,8,24   ttt TPU-v5p-12288-head
tpu-v6e-slice         1x1           1 1     1 v6e-1          1,1,1    fff TPU-v6e-1-head
tpu-v6e-slice         2x2           4 4     1 v6e-4          1,1,1    fff TPU-v6e-4-head
tpu-v6e-slice         2x4           8 8     1 v6e-8          1,1,1    fff TPU-v6e-8-head
tpu-v6e-slice         2x4           8 4     2 v6e-8          1,2,1    fff TPU-v6e-8-head
tpu-v6e-slice         4x4          16 4     4 v6e-16         2,2,1    fff TPU-v6e-16-head
tpu-v6e-slice         4x8          32 4     8 v6e-32         2,4,1    fff TPU-v6e-32-head
tpu-v6e-slice         8x8          64 4    16 v6e-64         4,4,1    fff TPU-v6e-64-head
tpu-v6e-slice         8x16        128 4    32 v6e-128        4,8,1    ftf TPU-v6e-128-head
tpu-v6e-slice         16x16       256 4    64 v6e-256        8,8,1    ttf TPU-v6e-256-head
tpu7x                 1x1x1         1 1     1 tpu7x-2        1,1,1    fff TPU-v7x-2-head
tpu7x                 2x2x1         4 4     1 tpu7x-8        1,1,1    fff TPU-v7x-8-head
tpu7x                 2x2x2         8 4     2 tpu7x-16       1,1,2    fff TPU-v7x-16-head
tpu7x                 2x2x4        16 4     4 tpu7x-32       1,1,4    fff TPU-v7x-32-head
tpu7x                 2x4x4        32 4     8 tpu7x-64       1,2,4    fff TPU-v7x-64-head
tpu7x                 4x4x4        64 4    16 tpu7x-128      2,2,4    ttt TPU-v7x-128-head
tpu7x                 4x4x8       128 4    32 tpu7x-256      2,2,8    ttt TPU-v7x-256-head
tpu7x                 4x8x8       256 4    64 tpu7x-512      2,4,8    ttt TPU-v7x-512-head
tpu7x                 8x8x8       512 4   128 tpu7x-1024     4,4,8    ttt TPU-v7x-1024-head
tpu7x                 8x16x16    2048 4   512 tpu7x-4096     4,8,16   ttt TPU-v7x-4096-head
tpu7x                 16x24x24   9216 4  2304 tpu7x-18432    8,12,24  ttt TPU-v7x-18432-head
"""
ROWS = [line.split() for line in VECTORS.strip().splitlines()]
IDS = [f"{row[0]}-{row[1]}-{row[3]}" for row in ROWS]


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_legal_slice_has_the_published_shape(row):
    accelerator, topology, chips, per_host, hosts, accelerator_type, bounds, wrap, head, *node_head = row
    shape = slice_shape(accelerator, topology, int(per_host))

    assert (shape.chips, shape.chips_per_host, shape.hosts) == (int(chips), int(per_host), int(hosts))
    assert shape.accelerator_type == accelerator_type
    assert ",".join(str(size) for size in shape.host_bounds) == bounds
    assert "".join(str(ring)[0].lower() for ring in shape.wrap) == wrap
    assert shape.ray_head_resource == head
    assert shape.ray_node_head_resource == (node_head or [head])[0]
    assert shape.multi_host == (int(hosts) > 1)
    assert shape.generation.strict


def test_there_are_53_vectors():
    assert len(ROWS) == 53


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_host_coordinates_are_row_major_and_lead_back(row):
    shape = slice_shape(row[0], row[1], int(row[3]))
    places = [shape.coordinates(host) for host in range(shape.hosts)]

    assert places == sorted(set(places))
    assert [shape.host_at(place) for place in places] == list(range(shape.hosts))
    assert math.prod(shape.host_bounds) == shape.hosts


@pytest.mark.parametrize(
    ("accelerator", "topology", "chips_per_host"),
    [
        ("tpu-v6e-slice", "1x1", 1),
        ("tpu-v6e-slice", "2x4", 4),
        ("tpu-v5-lite-podslice", "2x4", 4),
        ("tpu-v5-lite-device", "2x4", 8),
        ("tpu7x", "1x1x1", 1),
        ("tpu-v5p-slice", "4x4x4", 4),
        ("tpu-v3-slice", "4x8", 4),
    ],
)
def test_without_a_request_the_host_has_the_likeliest_size(accelerator, topology, chips_per_host):
    assert slice_shape(accelerator, topology).chips_per_host == chips_per_host


@pytest.mark.parametrize(
    ("accelerator", "topology", "chips", "words"),
    [
        ("tpu-v6e-slice", "2x2x2", 4, "are 2D; use one of 1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16"),
        ("tpu-v5-lite-podslice", "2x2x2", 4, "are 2D"),
        ("tpu-v4-podslice", "4x4", 4, "are 3D"),
        ("tpu-v5p-slice", "4x4", 4, "are 3D"),
        ("tpu7x", "4x4", 4, "are 3D; use one of 1x1x1, 2x2x1, 2x2x2, 2x2x4, 2x4x4"),
        ("tpu-v6e-slice", "2x4", 3, "have 4 or 8 chips, not 3"),
        ("tpu-v6e-slice", "2x4", 5, "have 4 or 8 chips, not 5"),
        ("tpu-v6e-slice", "2x4", 16, "have 4 or 8 chips, not 16"),
        ("tpu-v6e-slice", "2x4", 0, "have 4 or 8 chips, not 0"),
        ("tpu-v5p-slice", "2x2x2", 8, "have 4 chips, not 8"),
        ("tpu-v6e-slice", "4x4", 8, "have 4 chips, not 8; request 4 of google.com/tpu"),
        ("tpu-v6e-slice", "4x4", 1, "have 4 chips, not 1"),
        ("tpu-v5-lite-device", "4x4", 4, "single-host only; use one of 1x1, 2x2, 2x4"),
        ("tpu-v6e-slice", "4x2", 4, "write 2x4"),
        ("tpu-v6e-slice", "32x32", 4, "GKE offers no such slice"),
        ("tpu7x", "4x8x4", 4, "write 4x4x8"),
        ("tpu-v5p-slice", "8x4x4", 4, "write 4x4x8"),
        ("tpu-v5p-slice", "4x4x6", 4, "each side is a multiple of 4"),
        ("tpu7x", "2x4x8", 4, "each side is a multiple of 4"),
        ("tpu7x", "16x24x28", 4, "10752 chips are more than 9216"),
        ("tpu-v5p-slice", "16x20x32", 4, "10240 chips are more than 8960"),
        ("tpu-v4-podslice", "16x16x20", 4, "5120 chips are more than 4096"),
        ("tpu-v4-podslice", "1x2x2", 4, "write 2x2x1"),
        ("tpu-v3-slice", "2x2x1", 4, "are 2D"),
    ],
)
def test_an_illegal_slice_is_refused_in_one_line_that_names_what_is_legal(accelerator, topology, chips, words):
    with pytest.raises(IllegalSlice) as refused:
        slice_shape(accelerator, topology, chips)

    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.finding.expected
    assert GENERATIONS[accelerator].name in str(refused.value)


@pytest.mark.parametrize("topology", ["4x8x4", "8x4x4", "4x2x2", "2x4x2", "4x4x2", "16x16x16"])
def test_v4_takes_its_sides_in_any_order(topology):
    assert slice_shape("tpu-v4-podslice", topology).hosts == slice_shape("tpu-v4-podslice", topology).chips // 4


@pytest.mark.parametrize(
    ("topology", "chips", "hosts"), [("4x4", None, 4), ("2x2x8", 4, 8), ("4x4", 8, 2), ("1x2", None, 1), ("3x3", 1, 9)]
)
@pytest.mark.parametrize("accelerator", ["tpu-v99-slice", ""])
def test_an_unknown_accelerator_is_computed_by_the_general_rule(accelerator, topology, chips, hosts):
    shape = slice_shape(accelerator, topology, chips)

    assert shape.hosts == hosts
    assert not shape.generation.known
    assert (shape.cores, shape.accelerator_type, shape.ray_head_resource) == (0, "", "")


def test_even_the_general_rule_wants_hosts_that_fill_the_slice():
    with pytest.raises(IllegalSlice, match="have 1 chips, not 4"):
        slice_shape("tpu-v99-slice", "3x3", 4)


def test_a_generation_resting_on_inference_refuses_no_topology_it_does_not_list():
    assert slice_shape("tpu-v3-slice", "16x32").hosts == 128


def test_two_containers_of_a_host_halve_its_bounds():
    shape = slice_shape("tpu7x", "2x2x2", 4)

    assert shape.chips_per_process_bounds(2) == (1, 2, 1)
    assert shape.process_bounds(2) == (2, 1, 2)
    assert shape.process_bounds() == shape.host_bounds == (1, 1, 2)


@pytest.mark.parametrize("containers", [0, -1, 3, 8])
def test_containers_that_cannot_share_a_host_evenly_are_refused(containers):
    with pytest.raises(IllegalSlice, match="use 1, 2, 4 TPU containers"):
        slice_shape("tpu7x", "2x2x2", 4).process_bounds(containers)


@pytest.mark.parametrize("host", [-1, 4])
def test_a_host_outside_the_slice_has_no_coordinates(host):
    with pytest.raises(InvalidInput, match=r"not one of 0\.\.3"):
        slice_shape("tpu-v6e-slice", "4x4").coordinates(host)


@pytest.mark.parametrize("place", [(2, 0, 0), (0, 0, 1), (-1, 0, 0)])
def test_a_place_outside_the_bounds_has_no_host(place):
    with pytest.raises(InvalidInput, match="no host at"):
        slice_shape("tpu-v6e-slice", "4x4").host_at(place)


@given(
    accelerator=st.sampled_from([*GENERATIONS, "tpu-v99-slice"]),
    sides=st.lists(st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16]), min_size=2, max_size=3),
    chips=st.none() | st.integers(-1, 17),
)
def test_whatever_is_accepted_is_filled_exactly(accelerator, sides, chips):
    try:
        shape = slice_shape(accelerator, "x".join(str(side) for side in sides), chips)
    except IllegalSlice:
        return
    assert shape.hosts * shape.chips_per_host == shape.chips
    assert math.prod(shape.host_bounds) == shape.hosts
    assert math.prod(shape.chips_per_host_bounds) == shape.chips_per_host
    assert shape.chips_per_host in {1, 2, 4, 8}
    assert shape.chips_per_host <= shape.generation.max_chips_per_host
