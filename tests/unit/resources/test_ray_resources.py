"""From the resources of containers and groups to what a node tells Ray."""

from __future__ import annotations

import pytest

from tpu_operator.resources.pods import ray_resources


@pytest.mark.parametrize(
    ("limits", "requests", "flags"),
    [
        ({}, {}, {}),
        (None, None, {}),
        ({"cpu": "1500m"}, {}, {"num-cpus": "2"}),
        ({"cpu": "0.5"}, {}, {"num-cpus": "1"}),
        ({"cpu": 3}, {}, {"num-cpus": "3"}),
        ({}, {"cpu": "8"}, {"num-cpus": "8"}),
        ({"cpu": "2"}, {"cpu": "8"}, {"num-cpus": "2"}),
        ({"cpu": "0"}, {"cpu": "4"}, {"num-cpus": "4"}),
        ({"cpu": "0"}, {}, {}),
        ({"memory": "8Gi"}, {}, {"memory": "8589934592"}),
        ({"memory": "4G"}, {}, {"memory": "4000000000"}),
        ({"memory": 4294967296}, {}, {"memory": "4294967296"}),
        ({"memory": "1.5Gi"}, {}, {"memory": "1610612736"}),
        ({}, {"memory": "8Gi"}, {}),
        ({"nvidia.com/gpu": "2"}, {}, {"num-gpus": "2"}),
        ({}, {"nvidia.com/gpu": "2"}, {}),
        ({"nvidia.com/gpu": "0"}, {}, {}),
        ({"nvidia.com/gpu": "2", "amd.com/gpu": "1"}, {}, {"num-gpus": "3"}),
        ({"nvidia.com/mig-1g.5gb": "2", "nvidia.com/mig-2g.10gb": 1}, {}, {"num-gpus": "3"}),
        ({"google.com/tpu": "4"}, {}, {"resources": """'{"TPU":4}'"""}),
        ({"aws.amazon.com/neuroncore": 8}, {}, {"resources": """'{"neuron_cores":8}'"""}),
        ({"aws.amazon.com/neuroncore": 8, "google.com/tpu": 4}, {}, {"resources": """'{"neuron_cores":8}'"""}),
        ({"example.com/fpga": "1"}, {}, {}),
        ({"cpu": "many"}, {}, {}),
    ],
)
def test_flags_follow_from_the_container(limits, requests, flags):
    assert ray_resources.detected({"resources": {"limits": limits, "requests": requests}}, {}) == flags


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        ({"num-cpus": "0"}, {"memory": "1024", "num-gpus": "1", "resources": """'{"TPU":4}'"""}),
        ({"num-gpus": "0", "memory": "5"}, {"num-cpus": "1", "resources": """'{"TPU":4}'"""}),
        (
            {"resources": '"{\\"a\\": 0.5}"'},
            {"num-cpus": "1", "memory": "1024", "num-gpus": "1", "resources": """'{"TPU":4,"a":0.5}'"""},
        ),
        ({"resources": '{"TPU": 2}'}, {"num-cpus": "1", "memory": "1024", "num-gpus": "1"}),
        ({"resources": '{"neuron_cores": 2}'}, {"num-cpus": "1", "memory": "1024", "num-gpus": "1"}),
        ({"resources": "{nonsense"}, {"num-cpus": "1", "memory": "1024", "num-gpus": "1"}),
        (
            {"resources": ""},
            {"num-cpus": "1", "memory": "1024", "num-gpus": "1", "resources": """'{"TPU":4}'"""},
        ),
    ],
)
def test_what_the_user_gives_is_not_detected(given, flags):
    limits = {"cpu": 1, "memory": "1Ki", "nvidia.com/gpu": 1, "google.com/tpu": 4}
    assert ray_resources.detected({"resources": {"limits": limits}}, given) == flags


@pytest.mark.parametrize(
    ("resources", "flags"),
    [
        ({}, {}),
        ({"CPU": "0", "Memory": "1Gi", "GPU": "2"}, {"num-cpus": "0", "memory": "1073741824", "num-gpus": "2"}),
        ({"cpu": "1500m"}, {"num-cpus": "2"}),
        ({"nvidia.com/gpu": "1"}, {"num-gpus": "1"}),
        ({"TPU": "4", "Custom": "0.5"}, {"resources": """'{"Custom":0.5,"TPU":4}'"""}),
        ({"broken": "many", "CPU": "x"}, {}),
        ({"it's": "1"}, {"resources": """'{"it'"'"'s":1}'"""}),
    ],
)
def test_the_resources_field_becomes_flags(resources, flags):
    assert ray_resources.declared(resources) == flags


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "GPU", "gpu", "amd.com/gpu", "nvidia.com/mig-3g.20gb"])
def test_gpus_are_known_by_name(name):
    assert ray_resources.is_gpu(name)


@pytest.mark.parametrize("name", ["cpu", "google.com/tpu", "nvidia.com/gpu.shared", "example.com/mig-1g.5gb"])
def test_other_resources_are_no_gpus(name):
    assert not ray_resources.is_gpu(name)
