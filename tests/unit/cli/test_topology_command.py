"""`tpu-operator topology`: what a person reads and a machine parses, and what nonsense gets."""

from __future__ import annotations

import json

import pytest
import yaml
from typer.testing import CliRunner

from tpu_operator.api.raycluster import RayCluster
from tpu_operator.cli.main import app
from tpu_operator.cli.topology import find_shape
from tpu_operator.config import OperatorConfig
from tpu_operator.planning.validation import validate, warnings
from tpu_operator.tpu.generations import GENERATIONS
from tpu_operator.tpu.shape import slice_shape


def run(*args: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["topology", *args])
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize(
    ("name", "topology", "accelerator"),
    [
        ("v4", "2x2x2", "tpu-v4-podslice"),
        ("v5e", "4x4", "tpu-v5-lite-podslice"),
        ("v5e", "2x4", "tpu-v5-lite-podslice"),
        ("v5litepod", "4x4", "tpu-v5-lite-podslice"),
        ("tpu-v5-lite-device", "2x4", "tpu-v5-lite-device"),
        ("v5p", "4x4x8", "tpu-v5p-slice"),
        ("v6e", "4x4", "tpu-v6e-slice"),
        ("V6E", "4x4", "tpu-v6e-slice"),
        ("v7x", "2x2x2", "tpu7x"),
        ("tpu7x", "2x2x2", "tpu7x"),
        ("v3", "2x2", "tpu-v3-device"),
        ("v3", "4x4", "tpu-v3-slice"),
    ],
)
def test_a_generation_goes_by_its_short_name_or_its_label(name, topology, accelerator):
    assert find_shape(name, topology) == slice_shape(accelerator, topology)


def test_json_has_numbers_hosts_environment_and_a_worker_group():
    found = json.loads(run("v5p", "4x4x8", "-o", "json"))
    assert (found["hosts"], found["chips"], found["acceleratorType"], found["hostBounds"]) == (
        32,
        128,
        "v5p-256",
        "2,2,8",
    )
    every = found["hostsOfSlice"]
    assert [host["environment"]["TPU_WORKER_ID"] for host in every] == [str(n) for n in range(32)]
    assert [host["hostname"] for host in every] == [
        name.partition(".")[0] for name in found["environment"]["TPU_WORKER_HOSTNAMES"].split(",")
    ]
    chips = [tuple(chip) for host in every for chip in host["chips"]]
    assert len(set(chips)) == 128
    assert max(chips) == (3, 3, 7)
    assert every[9]["coordinates"] == [0, 1, 1]


def test_a_single_host_has_no_names_of_others():
    found = json.loads(run("v6e", "2x4", "--chips", "8", "-o", "json"))
    assert found["hosts"] == 1
    assert "TPU_WORKER_HOSTNAMES" not in found["environment"]
    assert "hostname" not in found["hostsOfSlice"][0]


@pytest.mark.parametrize("accelerator", GENERATIONS)
def test_the_worker_group_of_every_slice_passes_validation(accelerator):
    for topology in (*GENERATIONS[accelerator].single_host, *GENERATIONS[accelerator].multi_host):
        group = json.loads(run(accelerator, str(topology), "-o", "json"))["workerGroup"]
        head = {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "h", "image": "x"}]}}}
        spec = {"headGroupSpec": head, "workerGroupSpecs": [group]}
        cluster = RayCluster.parse({"metadata": {"name": "demo", "namespace": "n", "uid": "u"}, "spec": spec})
        assert not cluster.problems
        assert not validate(cluster, OperatorConfig())
        assert not warnings(cluster, OperatorConfig())


def test_text_tells_the_same_to_people():
    text = run("v6e", "4x4")
    head, group = text.split("worker group\n", 1)
    assert "hosts               4" in head
    assert (
        "TPU_WORKER_HOSTNAMES=workers-0-0.demo-headless,workers-0-1.demo-headless, ... workers-0-3.demo-headless (4 in all)"
        in head
    )
    assert "TPU_ACCELERATOR_TYPE=v6e-16" in head
    assert yaml.safe_load(group) == [json.loads(run("v6e", "4x4", "-o", "json"))["workerGroup"]]


@pytest.mark.parametrize(
    ("args", "legal"),
    [
        (("v9", "4x4"), "known are v3, v4i, v4, v5e"),
        (("v6e", "4x5"), "1x1, 2x2, 2x4, 4x4"),
        (("v6e", "4x4x4"), "2D"),
        (("v6e", "four"), "such as 4x4 or 2x2x4"),
        (("v5p", "8x4x4"), "write 4x4x8"),
        (("v6e", "2x4", "--chips", "3"), "4 or 8"),
        (("v6e", "4x4", "-o", "yaml"), "text or json"),
    ],
)
def test_nonsense_gets_one_line_with_what_is_legal(args, legal):
    output = run(*args, code=2)
    assert output.count("\n") == 1
    assert output.startswith("error: ")
    assert legal in output
