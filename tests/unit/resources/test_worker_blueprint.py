from __future__ import annotations

import copy
import json

import pytest
from some_cluster import CONFIG, cluster, env, group, template, worker_of

from tpu_operator.resources.pods.place import Place
from tpu_operator.resources.pods.worker import WorkerBlueprint
from tpu_operator.tpu.environment import WorkerPlace, worker_environment

CHIPS = {"resources": {"limits": {"google.com/tpu": "4"}}}


def tpu_group(accelerator: str = "tpu-v6e-slice", *containers: dict, hosts: int = 2, **fields: object) -> dict:
    each = [{"name": f"c{n}", "image": "ray:2", **c} for n, c in enumerate(containers or (CHIPS,))]
    spec = {"nodeSelector": {"cloud.google.com/gke-tpu-accelerator": accelerator}, "containers": each}
    return group(template={"spec": spec}, numOfHosts=hosts, **fields)


def blueprint(own_group: dict) -> WorkerBlueprint:
    own = cluster(own_group)
    return WorkerBlueprint.of(own, own.spec.worker_group_specs[0], CONFIG)


def identity(pod: dict, number: int = 0) -> dict:
    found = env(pod["spec"]["containers"][number])
    return {n: v for n, v in found.items() if n.startswith(("TPU_", "MEGASCALE_"))}


@pytest.mark.parametrize(
    ("accelerator", "containers", "hosts"),
    [("tpu-v6e-slice", 1, 4), ("tpu7x", 1, 2), ("tpu7x", 2, 2), ("tpu7x", 2, 1), ("tpu-v6e-slice", 1, 1), ("", 1, 2)],
)
def test_every_host_has_the_environment_of_its_place(accelerator, containers, hosts):
    made = blueprint(tpu_group(accelerator, *[CHIPS] * containers, hosts=hosts))
    for index in (0, 3):
        for host in range(hosts):
            pod = made.pod(Place("small-x", index, host, hosts), "name")
            place = WorkerPlace(
                "small",
                index,
                host,
                hosts,
                service="demo-headless" if hosts > 1 else "",
                containers=containers,
                process_addresses=accelerator == "tpu7x",
            )
            for number, wanted in enumerate(worker_environment(place)):
                expected = [{k: v for k, v in e.manifest().items() if v} for e in wanted]
                assert [e for e in pod["spec"]["containers"][number]["env"] if e["name"].startswith("TPU_")] == expected


def test_only_hosts_of_a_slice_have_names():
    several = blueprint(tpu_group()).pod(Place("small-x", 3, 1, 2), "name")["spec"]
    assert (several["hostname"], several["subdomain"]) == ("small-3-1", "demo-headless")
    single = blueprint(tpu_group(hosts=1)).pod(Place("small-x", 3, 0, 1), "name")["spec"]
    no_tpu = blueprint(group(numOfHosts=2)).pod(Place("small-x", 3, 1, 2), "name")["spec"]
    assert (no_tpu["hostname"], no_tpu["subdomain"]) == ("small-3-1", "demo-headless")
    assert not {"hostname", "subdomain"} & single.keys()
    assert not identity({"spec": no_tpu})


@pytest.mark.parametrize(
    ("name", "value", "hosts", "result"),
    [
        ("TPU_NAME", "mine", 2, "mine"),
        ("TPU_NAME", "", 2, "small-0"),
        ("TPU_WORKER_HOSTNAMES", "localhost", 2, "small-0-0.demo-headless,small-0-1.demo-headless"),
        ("TPU_WORKER_HOSTNAMES", "a,b", 2, "a,b"),
        ("TPU_WORKER_ID", "0", 2, "1"),
        ("TPU_WORKER_ID", "7", 2, "1"),
        ("TPU_WORKER_ID", "7", 1, "7"),
        ("TPU_DEVICE_PLUGIN_ADDR", "x:1", 2, "x:1"),
    ],
)
def test_the_users_value_stays_unless_it_cannot_be_true(name, value, hosts, result):
    chips = {**CHIPS, "env": [{"name": name, "value": value}]}
    pod = blueprint(tpu_group("tpu-v6e-slice", chips, hosts=hosts)).pod(Place("small-x", 0, hosts - 1, hosts), "n")
    assert identity(pod)[name] == result


def test_a_reference_of_the_user_stays():
    reference = {"fieldRef": {"fieldPath": "metadata.labels['ray.io/replica-host-index']"}}
    chips = {**CHIPS, "env": [{"name": "TPU_WORKER_ID", "valueFrom": reference}]}
    pod = blueprint(tpu_group("tpu-v6e-slice", chips)).pod(Place("small-x", 0, 1, 2), "n")
    assert identity(pod)["TPU_WORKER_ID"] == reference


@pytest.mark.parametrize(
    ("accelerator", "hosts", "index", "expected"),
    [
        ("tpu-v6e-slice", 1, 0, ("2", "0", "small-0-0.demo-headless", "8081")),
        ("tpu-v6e-slice", 2, 1, ("2", "1", "small-0-0.demo-headless", "8081")),
        ("tpu7x", 2, 1, ("2", "1", "small-0-0.demo-headless:8081", "8081")),
        ("tpu-v6e-slice", 2, 2, ("2", None, None, None)),
    ],
)
def test_slices_that_work_as_one_job_know_each_other(accelerator, hosts, index, expected):
    chips = {**CHIPS, "env": [{"name": "MEGASCALE_NUM_SLICES", "value": "2"}]}
    pod = blueprint(tpu_group(accelerator, chips, hosts=hosts)).pod(Place("small-x", index, 0, hosts), "n")
    names = ("NUM_SLICES", "SLICE_ID", "COORDINATOR_ADDRESS", "PORT")
    assert tuple(identity(pod).get(f"MEGASCALE_{n}") for n in names) == expected
    assert pod["spec"]["hostname"] == f"small-{index}-0"


def test_containers_without_chips_are_left_alone():
    pod = blueprint(tpu_group("tpu-v6e-slice", {}, CHIPS)).pod(Place("small-x", 0, 1, 2), "n")
    assert not identity(pod, 0)
    assert identity(pod, 1)["TPU_WORKER_ID"] == "1"


def test_pods_of_a_blueprint_do_not_touch_each_other():
    made = blueprint(tpu_group())
    first = made.pod(Place("small-a", 0, 0, 2), "first")
    before = copy.deepcopy(first)
    made.pod(Place("small-b", 1, 1, 2), "second")
    assert first == before
    assert made.pod(Place("small-a", 0, 0, 2), "first") == before


def test_pods_share_what_does_not_differ():
    made = blueprint(tpu_group())
    one, two = (made.pod(Place("small-a", 0, host, 2), str(host))["spec"] for host in (0, 1))
    assert one["volumes"] is two["volumes"]
    assert one["initContainers"] is two["initContainers"]
    assert one["containers"][0]["resources"] is two["containers"][0]["resources"]


def test_the_users_document_shares_nothing_with_a_pod():
    own = cluster(group(template=template({"env": [{"name": "A", "value": "1"}]}, volumes=[{"name": "v"}])))
    before = json.dumps(own.raw)
    pod = worker_of(own)
    pod["spec"]["volumes"].clear()
    pod["spec"]["containers"][0]["env"][0]["value"] = "2"
    assert json.dumps(own.raw) == before
