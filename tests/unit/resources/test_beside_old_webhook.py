"""GKE's TPU webhook may still run beside us: what it does to our pods changes nothing of who they are."""

from __future__ import annotations

from typing import Any

import pytest
from old_webhook import Denied, mutate
from some_cluster import cluster, head_of, template, worker_of

from tpu_operator.resources.pods.place import Place

CHIPS = "google.com/tpu"
NUM_SLICES = {"name": "MEGASCALE_NUM_SLICES", "value": "4"}


def pods(
    accelerator: str, topology: str, *chips: int, env: tuple[dict[str, str], ...] = (), **spec: Any
) -> dict[str, Any]:
    selector = {"cloud.google.com/gke-tpu-accelerator": accelerator, "cloud.google.com/gke-tpu-topology": topology}
    each = [
        {"name": f"c{n}", "image": "ray:2", "env": list(env), "resources": {"limits": {CHIPS: str(c)}}}
        for n, c in enumerate(chips)
    ]
    return {"spec": {"nodeSelector": selector, "containers": [*each, {"name": "sidecar", "image": "x"}], **spec}}


def tpu_cluster(hosts: int, *args: Any, **kwargs: Any) -> Any:
    return cluster({"groupName": "small", "numOfHosts": hosts, "template": pods(*args, **kwargs)})


def who(pod: dict[str, Any]) -> dict[str, Any]:
    """Everything by which a pod tells and is told who it is, as the kubelet would read it: the last entry of a name counts."""
    env = [{e["name"]: e for e in c.get("env", [])} for c in pod["spec"]["containers"]]
    names = {key: pod["spec"].get(key) for key in ("hostname", "subdomain")}
    return {"labels": pod["metadata"]["labels"], "env": env, **names}


CASES = [
    ("v6e, four hosts", (4, "tpu-v6e-slice", "4x4", 4), {}),
    ("v6e, one host", (1, "tpu-v6e-slice", "2x2", 4), {}),
    ("v6e, one host of eight chips", (1, "tpu-v6e-slice", "2x4", 8), {}),
    ("v4, two hosts", (2, "tpu-v4-podslice", "2x2x2", 4), {}),
    ("tpu7x, two hosts", (2, "tpu7x", "2x2x2", 4), {}),
    ("tpu7x, two hosts of two containers", (2, "tpu7x", "2x2x2", 2, 2), {}),
    ("tpu7x, one host of two containers", (1, "tpu7x", "2x2x1", 2, 2), {}),
    ("multislice", (4, "tpu-v6e-slice", "4x4", 4), {"env": (NUM_SLICES,)}),
    ("multislice of single hosts", (1, "tpu-v6e-slice", "2x2", 4), {"env": (NUM_SLICES,)}),
    ("multislice on tpu7x", (2, "tpu7x", "2x2x2", 2, 2), {"env": (NUM_SLICES,)}),
    ("a name of the user's", (4, "tpu-v6e-slice", "4x4", 4), {"env": ({"name": "TPU_NAME", "value": "mine"},)}),
    ("a literal worker id", (4, "tpu-v6e-slice", "4x4", 4), {"env": ({"name": "TPU_WORKER_ID", "value": "0"},)}),
]


@pytest.mark.parametrize("scan", [(0, 0), (2, 4), (1, 1)], ids=str)
@pytest.mark.parametrize(("args", "kwargs"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_webhook_changes_nothing_of_a_workers_identity(args, kwargs, scan):
    """Whatever it would have counted, in particular beyond a hole, where it counts wrong."""
    own = tpu_cluster(*args, **kwargs)
    hosts = own.spec.worker_group_specs[0].hosts
    for index in (0, 3):
        for host in range(hosts):
            pod = worker_of(own, place=Place("small-abcde", index, host, hosts))
            changed = mutate(pod, scan)
            assert who(changed) == who(pod)
            assert changed["spec"]["containers"] == pod["spec"]["containers"], "no entry is appended"
            assert mutate(changed, scan) == changed


def test_the_webhook_changes_nothing_of_a_heads_identity():
    own = cluster(head={"template": pods("tpu-v6e-slice", "2x2", 4)})
    assert mutate(head_of(own)) == head_of(own)


def test_the_webhook_leaves_pods_without_chips_alone():
    own = cluster({"groupName": "small", "numOfHosts": 2, "template": template()})
    assert mutate(worker_of(own)) == worker_of(own)
    assert mutate(head_of(own)) == head_of(own)


# -- what nothing can be done about, told in docs/tpu.md ---------------------------------------------------------------


def test_the_webhook_replaces_the_affinity_of_a_slice():
    own = tpu_cluster(4, "tpu-v6e-slice", "4x4", 4, affinity={"nodeAffinity": {"of": "the user"}})
    pod = worker_of(own)
    assert pod["spec"]["affinity"]["nodeAffinity"] == {"of": "the user"}
    assert mutate(pod)["spec"]["affinity"].keys() == {"podAffinity", "podAntiAffinity"}


@pytest.mark.parametrize(("length", "right"), [(41, True), (42, False)])
def test_the_webhook_shortens_the_name_of_the_headless_service_of_long_clusters(length, right):
    own = tpu_cluster(4, "tpu-v6e-slice", "4x4", 4)
    pod = worker_of(own)
    name = "c" * length
    pod["metadata"]["labels"]["ray.io/cluster"] = name
    pod["spec"]["subdomain"] = f"{name}-headless"
    assert (mutate(pod)["spec"]["subdomain"] == pod["spec"]["subdomain"]) is right


def test_the_webhook_refuses_tpu_pods_without_a_topology_selector():
    own = tpu_cluster(4, "tpu-v6e-slice", "4x4", 4)
    pod = worker_of(own)
    del pod["spec"]["nodeSelector"]["cloud.google.com/gke-tpu-topology"]
    with pytest.raises(Denied):
        mutate(pod)


def test_the_model_gives_an_identity_to_pods_that_have_none():
    """Against a model that does nothing, everything above would hold."""
    labels = {"ray.io/cluster": "demo", "ray.io/group": "small"}
    pod = {"metadata": {"labels": labels}, **pods("tpu7x", "2x2x2", 2, 2)}
    found = who(mutate(pod, (1, 1)))
    second = {name: entry.get("value") for name, entry in found["env"][1].items()}
    assert (found["hostname"], found["labels"]["replicaIndex"]) == ("small-1-1", "small-1")
    assert (second["TPU_WORKER_ID"], second["TPU_PROCESS_PORT"], second["TPU_NAME"]) == ("3", "8472", "small-1")
    assert not found["env"][2]
