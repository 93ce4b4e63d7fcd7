from __future__ import annotations

import pytest

from tpu_operator.errors import InvalidInput
from tpu_operator.tpu.configured import generation_from_mapping
from tpu_operator.tpu.generations import GENERATIONS, HOST_SIZES, find_generation, is_filled, with_generations
from tpu_operator.tpu.shape import IllegalSlice, check_slice, slice_shape

FAKE = {
    "accelerator": "tpu-v99-slice",
    "name": "v99",
    "dims": 3,
    "coresPerChip": 4,
    "typePrefix": "v99x",
    "rayPrefix": "v99",
    "machines": {"ct99-4t": 4, "ct99-8t": 8},
    "singleHost": ["2x4x1"],
    "multiHost": ["2x4x2"],
    "multiHostChips": 8,
    "cubes": {"maxChips": 128},
    "strict": True,
}


@pytest.mark.parametrize("row", GENERATIONS.values(), ids=str)
def test_each_row_agrees_with_itself(row):
    sizes = {machine.chips for machine in row.machines}

    assert sizes <= set(HOST_SIZES)
    assert all(topology.chips in sizes for topology in row.single_host)
    assert row.multi_host_chips in sizes
    assert all(len(topology.dims) == row.dims for topology in (*row.single_host, *row.multi_host))
    assert all(is_filled(topology, row.multi_host_chips) for topology in row.multi_host)
    assert all(row.host_sizes(topology) for topology in (*row.single_host, *row.multi_host))
    assert row.single_host or row.multi_host


def test_the_table_cannot_be_changed():
    with pytest.raises(TypeError):
        GENERATIONS["tpu-v99-slice"] = GENERATIONS["tpu7x"]


def test_configuration_adds_a_generation_without_code():
    table = with_generations([generation_from_mapping(FAKE)])
    shape = slice_shape("tpu-v99-slice", "2x4x2", table=table)

    assert (shape.hosts, shape.host_bounds, shape.cores) == (2, (1, 1, 2), 64)
    assert (shape.accelerator_type, shape.ray_head_resource) == ("v99x-64", "TPU-v99-64-head")
    assert slice_shape("tpu-v99-slice", "4x4x8", table=table).wrap == (True, True, True)
    assert check_slice("tpu-v99-slice", "2x4x2", 8, 2, table) == []
    assert "tpu-v99-slice" not in GENERATIONS
    assert set(table) == {*GENERATIONS, "tpu-v99-slice"}


@pytest.mark.parametrize("topology", ["4x8x8", "8x4x4", "2x2x2"])
def test_a_strict_configured_generation_refuses_like_the_others(topology):
    with pytest.raises(IllegalSlice, match="v99"):
        slice_shape("tpu-v99-slice", topology, table=with_generations([generation_from_mapping(FAKE)]))


def test_the_shortest_mapping_makes_a_lenient_flat_generation():
    row = generation_from_mapping({"accelerator": "tpu-new", "dims": 2, "coresPerChip": 1, "typePrefix": "new"})
    table = with_generations([row])

    assert (row.name, row.ray_prefix, row.wrap_from, row.strict) == ("tpu-new", "new", 16, False)
    assert slice_shape("tpu-new", "4x4", table=table).accelerator_type == "new-16"
    assert [finding.severity for finding in check_slice("tpu-new", "4x4", 4, 4, table)] == ["warning"]


def test_a_configured_row_takes_the_place_of_ours():
    mapping = {"accelerator": "tpu7x", "dims": 3, "coresPerChip": 8, "typePrefix": "seven", "processAddresses": True}
    table = with_generations([generation_from_mapping(mapping)])

    assert slice_shape("tpu7x", "2x2x2", table=table).accelerator_type == "seven-64"
    assert find_generation("tpu7x").name == "tpu7x"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"accelerator": None}, "accelerator must be a text"),
        ({"accelerator": ""}, "accelerator must be a text"),
        ({"dims": 4}, "dims must be 2 or 3"),
        ({"dims": "3"}, "dims must be a whole number"),
        ({"coresPerChip": True}, "coresPerChip must be a whole number"),
        ({"coresPerChip": 0}, "coresPerChip must be 1 or more"),
        ({"strict": 1}, "strict must be true or false"),
        ({"machines": ["ct99-4t"]}, "machines must be a mapping"),
        ({"machines": {"ct99-3t": 3}}, "ct99-3t must be 1 or 2 or 4 or 8"),
        ({"singleHost": "2x2x1"}, "singleHost must be a list of topologies"),
        ({"singleHost": ["2x4"]}, "a list of 3D topologies"),
        ({"singleHost": ["2x2x2"]}, "topologies of one host"),
        ({"multiHost": ["2xb"]}, "positive whole numbers"),
        ({"multiHost": ["3x3x3"]}, "multiHost must be filled by hosts of 8 chips"),
        ({"multiHostChips": 3}, "multiHostChips must be"),
        ({"cubes": 64}, "cubes must be a mapping"),
        ({"cubes": {"maxChips": 64, "sorted": True}}, "unknown field sorted"),
        ({"cubes": {}}, "maxChips must be a whole number"),
        ({"wrap": 4}, "unknown field wrap"),
    ],
)
def test_a_mistake_in_the_configuration_names_the_field(change, words):
    with pytest.raises(InvalidInput, match=words):
        generation_from_mapping(FAKE | change)


def test_cubes_are_for_3d_only():
    flat = {"accelerator": "x", "dims": 2, "coresPerChip": 1, "typePrefix": "x", "cubes": {"maxChips": 64}}
    with pytest.raises(InvalidInput, match="for a 3D generation"):
        generation_from_mapping(flat)
