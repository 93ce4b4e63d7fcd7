"""Fake TPU node pools: what is typed, and the nodes that follow."""

import pytest

from devcluster.pools import Pool, PoolSpec, node_pools, nodes, parse_pool
from tpu_operator.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("tpu-v6e-slice:4x4", PoolSpec("tpu-v6e-slice", "4x4")),
        ("tpu-v6e-slice:4x4:2", PoolSpec("tpu-v6e-slice", "4x4", 2)),
        ("tpu-v5p-slice:2x2x4:3", PoolSpec("tpu-v5p-slice", "2x2x4", 3)),
        ("tpu-v6e-slice:2x4:1:8", PoolSpec("tpu-v6e-slice", "2x4", 1, 8)),
    ],
)
def test_a_pool_is_read_from_accelerator_topology_slices_and_chips(text: str, want: PoolSpec) -> None:
    assert parse_pool(text) == want


@pytest.mark.parametrize("text", ["", "tpu-v6e-slice", "tpu-v6e-slice:4x", "tpu-v6e-slice:4x4:", "a:4x4:0", "a:4x4:x"])
def test_text_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"pool|slice"):
        parse_pool(text)


def test_a_topology_that_the_accelerator_does_not_have_is_refused_when_it_is_typed() -> None:
    with pytest.raises(InvalidInput):
        parse_pool("tpu-v6e-slice:3x5")


def test_each_slice_is_a_pool_with_a_name_of_its_own_even_if_a_shape_is_named_twice() -> None:
    spec = PoolSpec("tpu-v6e-slice", "4x4", 2)
    pools = node_pools([spec, spec])
    assert len({pool.name for pool in pools}) == 4
    assert pools[0] == Pool("tpu-v6e-slice-4x4-0", "tpu-v6e-slice", "4x4", hosts=4, chips_per_host=4)


def test_a_tpu_node_has_the_labels_taint_and_chips_that_gke_gives_it() -> None:
    [node] = [n for n in nodes([PoolSpec("tpu-v6e-slice", "4x4")], 0) if n["metadata"]["name"].endswith("host-2")]
    assert node["metadata"]["labels"].items() >= {
        ("cloud.google.com/gke-tpu-accelerator", "tpu-v6e-slice"),
        ("cloud.google.com/gke-tpu-topology", "4x4"),
        ("cloud.google.com/gke-accelerator-count", "4"),
        ("cloud.google.com/gke-nodepool", "tpu-v6e-slice-4x4-0"),
        ("kubernetes.io/hostname", "tpu-v6e-slice-4x4-0-host-2"),
        ("type", "kwok"),
    }
    assert node["spec"]["taints"] == [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}]
    assert node["status"]["capacity"] == node["status"]["allocatable"]
    assert node["status"]["allocatable"]["google.com/tpu"] == "4"


def test_plain_nodes_come_first_and_have_neither_chips_nor_taints() -> None:
    first, second, *_ = nodes([PoolSpec("tpu-v6e-slice", "4x4")], 2)
    for node in (first, second):
        assert node["spec"]["taints"] == []
        assert "google.com/tpu" not in node["status"]["capacity"]


def test_names_and_addresses_of_nodes_are_unique() -> None:
    made = nodes([PoolSpec("tpu-v6e-slice", "16x16", 5), PoolSpec("tpu-v5p-slice", "2x2x4", 2)], 3)
    assert len(made) == 3 + 5 * 64 + 2 * 4
    assert len({node["metadata"]["name"] for node in made}) == len(made)
    assert len({node["status"]["addresses"][0]["address"] for node in made}) == len(made)
