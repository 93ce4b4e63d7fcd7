from __future__ import annotations

import copy
from typing import Any

import pytest
from some_cluster import CONFIG, cluster, env, group, head_of, ray, worker_of

from tpu_operator.config import OperatorConfig
from tpu_operator.resources.pods.place import Place
from tpu_operator.tpu.generations import GENERATIONS
from tpu_operator.tpu.shape import slice_shape

POOL = "cloud.google.com/gke-nodepool"
SLICE = "tpu-operator.io/slice"
REQUIRED, PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))


def tpu_group(
    accelerator: str | None = "tpu-v6e-slice",
    topology: str | None = "4x4",
    chips: int = 4,
    hosts: int = 4,
    *,
    annotations: dict[str, str] | None = None,
    container: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    selector = {"gke-tpu-accelerator": accelerator, "gke-tpu-topology": topology}
    selector = {f"cloud.google.com/{key}": value for key, value in selector.items() if value}
    each = {"name": "c", "image": "ray:2", "resources": {"limits": {"google.com/tpu": str(chips)}}, **(container or {})}
    template = {
        "metadata": {"annotations": annotations or {}},
        "spec": {"nodeSelector": selector, "containers": [each], **spec},
    }
    return group(template=template, numOfHosts=hosts)


def worker(own_group: dict[str, Any], place: Place | None = None, config: OperatorConfig = CONFIG) -> dict[str, Any]:
    return worker_of(cluster(own_group), config, place)


def terms(pod: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return pod["spec"]["affinity"][kind][REQUIRED]


def matches(term: dict[str, Any], labels: dict[str, str]) -> bool:
    """Label selectors as Kubernetes reads them."""
    selector = term["labelSelector"]
    found = [labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()]
    for e in selector.get("matchExpressions", []):
        has, value = e["key"] in labels, labels.get(e["key"])
        found.append(
            {
                "Exists": has,
                "DoesNotExist": not has,
                "In": value in e.get("values", []),
                "NotIn": value not in e.get("values", []),
            }[e["operator"]]
        )
    return all(found)


def attracts(pod: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(matches(term, other["metadata"]["labels"]) for term in terms(pod, "podAffinity"))


def repels(pod: dict[str, Any], other: dict[str, Any]) -> bool:
    return any(matches(term, other["metadata"]["labels"]) for term in terms(pod, "podAntiAffinity"))


def other_cluster(own_group: dict[str, Any], slice_name: str) -> dict[str, Any]:
    """A cluster of the same name in another namespace: only its uid is another."""
    own = cluster(own_group)
    raw = copy.deepcopy(own.raw)
    raw["metadata"]["namespace"], raw["metadata"]["uid"] = "elsewhere", "uid-2"
    return worker_of(type(own).parse(raw), place=Place(slice_name, 0, 0, 4))


MINE = worker(tpu_group(), Place("small-abcde", 0, 0, 4))
OTHERS = {
    "another host of the slice": (worker(tpu_group(), Place("small-abcde", 0, 3, 4)), True, False),
    "another slice of the group": (worker(tpu_group(), Place("small-fghij", 1, 0, 4)), False, True),
    "the next incarnation": (worker(tpu_group(), Place("small-fghij", 0, 0, 4)), False, True),
    "a slice of another cluster": (other_cluster(tpu_group(), "small-fghij"), False, True),
    "one of the same name, by chance": (other_cluster(tpu_group(), "small-abcde"), False, True),
    "a single TPU host": (worker(tpu_group(topology="2x2", hosts=1), Place("x", 0, 0, 1)), False, True),
    "a CPU worker": (worker(group()), False, False),
    "a slice without chips": (worker(group(numOfHosts=4)), False, False),
    "the head": (head_of(cluster()), False, False),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_slice_stays_together_and_apart_from_all_other_tpu_pods(other):
    pod, attracted, repelled = OTHERS[other]
    assert attracts(MINE, pod) is attracted
    assert repels(MINE, pod) is repelled


def test_slices_identified_by_the_old_webhook_are_kept_away_too():
    legacy = {"ray.io/cluster": "demo", "ray.io/group": "small", "replicaIndex": "small-0"}
    assert repels(MINE, {"metadata": {"labels": legacy}})


def test_all_terms_are_about_node_pools_and_those_that_repel_about_all_namespaces():
    every = terms(MINE, "podAffinity") + terms(MINE, "podAntiAffinity")
    assert {term["topologyKey"] for term in every} == {POOL}
    assert all(term["namespaceSelector"] == {} for term in terms(MINE, "podAntiAffinity"))


@pytest.mark.parametrize(
    ("own_group", "hosts"),
    [(group(), 1), (group(numOfHosts=4), 4), (tpu_group(topology="2x2", hosts=1), 1)],
    ids=["cpu", "cpu slice", "single host"],
)
def test_only_slices_of_several_tpu_hosts_have_such_rules(own_group, hosts):
    pod = worker(own_group, Place("small-abcde", 0, 0, hosts))
    assert "affinity" not in pod["spec"]
    assert SLICE not in pod["metadata"]["labels"]


@pytest.mark.parametrize(
    ("setting", "annotations", "key"),
    [
        (None, {}, POOL),
        ("example.com/rack", {}, "example.com/rack"),
        ("none", {}, None),
        (None, {"tpu-operator.io/slice-topology-key": "example.com/cube"}, "example.com/cube"),
        ("none", {"tpu-operator.io/slice-topology-key": POOL}, POOL),
        (None, {"tpu-operator.io/slice-topology-key": "none"}, None),
        (None, {"cloud.google.com/gke-tpu-slice-topology": "4x4"}, None),
        (
            None,
            {
                "cloud.google.com/gke-tpu-slice-topology": "4x4",
                "tpu-operator.io/slice-topology-key": "example.com/part",
            },
            "example.com/part",
        ),
    ],
)
def test_the_group_says_by_which_label_pools_are_told_apart_else_the_administrator(setting, annotations, key):
    config = OperatorConfig(**({} if setting is None else {"slice_topology_key": setting}))
    pod = worker(tpu_group(annotations=annotations), config=config)
    assert SLICE in pod["metadata"]["labels"], "others keep away from it all the same"
    if key is None:
        assert "affinity" not in pod["spec"]
    else:
        assert [term["topologyKey"] for term in terms(pod, "podAffinity")] == [key]


def test_the_users_affinity_stays_and_comes_first():
    zone = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "topology.kubernetes.io/zone"}
    own = {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}},
        "podAffinity": {REQUIRED: [zone], PREFERRED: [{"weight": 1, "podAffinityTerm": zone}]},
        "podAntiAffinity": {PREFERRED: [{"weight": 2, "podAffinityTerm": zone}]},
    }
    pod = worker(tpu_group(affinity=own))
    affinity = pod["spec"]["affinity"]
    assert affinity["nodeAffinity"] == own["nodeAffinity"]
    assert affinity["podAffinity"][PREFERRED] == own["podAffinity"][PREFERRED]
    assert affinity["podAntiAffinity"][PREFERRED] == own["podAntiAffinity"][PREFERRED]
    assert affinity["podAffinity"][REQUIRED] == [zone, *terms(MINE, "podAffinity")]
    assert affinity["podAntiAffinity"][REQUIRED] == terms(MINE, "podAntiAffinity")


def test_rules_that_are_there_already_are_not_added_again():
    again = worker(tpu_group(affinity=MINE["spec"]["affinity"]), Place("small-abcde", 0, 0, 4))
    assert again["spec"]["affinity"] == MINE["spec"]["affinity"]


def test_pods_of_a_slice_share_their_affinity():
    own = cluster(tpu_group())
    from tpu_operator.resources.pods.worker import WorkerBlueprint

    made = WorkerBlueprint.of(own, own.spec.worker_group_specs[0], CONFIG)
    one, two = (made.pod(Place("small-a", 0, host, 4), str(host))["spec"] for host in (0, 1))
    assert one["affinity"] is two["affinity"]


def test_annotations_for_kueue_pass_through_untouched():
    kueue = {
        "kueue.x-k8s.io/podset-required-topology": "cloud.google.com/gce-topology-block",
        "kueue.x-k8s.io/podset-slice-required-topology": POOL,
        "kueue.x-k8s.io/podset-slice-size": "4",
    }
    own = tpu_group(annotations=kueue)
    pod = worker(own)
    assert pod["metadata"]["annotations"] == {**kueue, "tpu-operator.io/num-of-hosts": "4"}
    head = head_of(cluster(own, head={"template": own["template"]}))
    assert kueue.items() <= head["metadata"]["annotations"].items()


# -- legacy labels and the head ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own_group", "place", "labels"),
    [
        (tpu_group(), Place("small-abcde", 3, 2, 4), {"replicaIndex": "small-3", "ray.io/replica-host-index": "2"}),
        (
            tpu_group(topology="2x2", hosts=1),
            Place("x", 3, 0, 1),
            {"replicaIndex": "small-3", "ray.io/replica-host-index": "0"},
        ),
        (group(numOfHosts=4), Place("small-abcde", 3, 2, 4), {"ray.io/replica-host-index": "2"}),
        (group(), Place("x", 3, 0, 1), {}),
        (
            {**tpu_group(topology="2x2", hosts=1), "groupName": "g" * 62},
            Place("x", 3, 0, 1),
            {"ray.io/replica-host-index": "0"},
        ),
    ],
)
def test_tpu_pods_have_the_labels_that_autoscaler_and_webhook_look_for(own_group, place, labels):
    found = worker(own_group, place)["metadata"]["labels"]
    assert {key: found[key] for key in ("replicaIndex", "ray.io/replica-host-index") if key in found} == labels


def test_a_head_with_chips_is_a_slice_of_its_own():
    own = cluster(tpu_group(), head={"template": tpu_group(topology="2x2")["template"]})
    head = head_of(own)
    found = env(ray(head))
    assert (found["TPU_WORKER_ID"], found["TPU_NAME"]) == ("0", "headgroup-0")
    assert "TPU_WORKER_HOSTNAMES" not in found
    assert found["TPU_ACCELERATOR_TYPE"] == "v6e-4"
    assert head["metadata"]["labels"]["replicaIndex"] == "headgroup-0"
    assert not {"hostname", "subdomain", "affinity"} & head["spec"].keys()
    assert env(ray(worker_of(own)))["TPU_WORKER_HOSTNAMES"].count("small-0-") == 4


def test_a_head_without_chips_has_no_part_in_it():
    head = head_of(cluster(tpu_group()))
    assert not [name for name in env(ray(head)) if name.startswith("TPU_")]
    assert "replicaIndex" not in head["metadata"]["labels"]


# -- hosts of slices without chips -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "spec", "names"),
    [
        ("small", {}, ("small-1-2", "demo-headless")),
        ("small", {"hostname": "mine"}, ("mine", None)),
        ("small", {"subdomain": "mine"}, (None, "mine")),
        ("Upper-Case", {}, (None, None)),
        ("with.dot", {}, (None, None)),
    ],
)
def test_hosts_without_chips_have_names_where_these_are_legal_and_free(name, spec, names):
    template = {"spec": {"containers": [{"name": "ray", "image": "ray:2"}], **spec}}
    pod = worker({"groupName": name, "numOfHosts": 4, "template": template}, Place(f"{name}-abcde", 1, 2, 4))
    assert (pod["spec"].get("hostname"), pod["spec"].get("subdomain")) == names
    assert not [n for n in env(ray(pod)) if n.startswith("TPU_")]


def test_a_host_without_chips_whose_name_would_be_too_long_has_none():
    own = {**group(numOfHosts=2), "groupName": "g" * 57}
    lengths = [len(worker(own, Place("s", index, 0, 2))["spec"].get("hostname", "")) for index in (1, 10, 100, 1000)]
    assert lengths == [61, 62, 63, 0]


# -- the shape, where no node plugin tells it --------------------------------------------------------------------------

SHAPE = ("TPU_TOPOLOGY", "TPU_ACCELERATOR_TYPE", "TPU_CHIPS_PER_HOST_BOUNDS", "TPU_HOST_BOUNDS", "TPU_TOPOLOGY_WRAP")


def shape_of(pod: dict[str, Any]) -> tuple[str | None, ...]:
    found = env(ray(pod))
    return tuple(found.get(name) for name in SHAPE)


@pytest.mark.parametrize(
    ("accelerator", "topology", "chips", "hosts", "expected"),
    [
        ("tpu-v6e-slice", "4x4", 4, 4, ("4x4", "v6e-16", "2,2,1", "2,2,1", "false,false,false")),
        ("tpu-v5p-slice", "4x4x8", 4, 32, ("4x4x8", "v5p-256", "2,2,1", "2,2,8", "true,true,true")),
        ("tpu7x", "2x2x2", 4, 2, ("2x2x2", "tpu7x-16", "2,2,1", "1,1,2", "false,false,false")),
        ("tpu-v6e-slice", "2x4", 8, 1, ("2x4", "v6e-8", "2,4,1", "1,1,1", "false,false,false")),
        ("tpu-v6e-slice", "2x4", 1, 1, (None,) * 5),
        ("tpu-v6e-slice", "4x5", 4, 5, (None,) * 5),
        ("tpu-v6e-slice", None, 4, 4, (None,) * 5),
        (None, "4x4", 4, 4, (None,) * 5),
        ("tpu-v9-slice", "4x4", 4, 4, (None,) * 5),
    ],
)
def test_containers_are_told_a_shape_that_is_sure_and_no_other(accelerator, topology, chips, hosts, expected):
    pod = worker(tpu_group(accelerator, topology, chips, hosts), Place("s-abcde", 0, 0, hosts))
    assert shape_of(pod) == expected


@pytest.mark.parametrize(("setting", "told"), [("auto", True), ("always", True), ("never", False)])
def test_the_administrator_says_whether_the_shape_is_told(setting, told):
    pod = worker(tpu_group(), config=OperatorConfig(tpu_environment=setting))
    assert (shape_of(pod) != (None,) * 5) is told
    assert env(ray(pod))["TPU_WORKER_ID"] == "0"


def test_what_the_user_says_of_the_shape_stays():
    mine = {"env": [{"name": "TPU_TOPOLOGY", "value": "mine"}]}
    assert shape_of(worker(tpu_group(container=mine)))[:2] == ("mine", "v6e-16")


def test_the_shape_of_a_dynamic_slice_is_not_that_of_its_pool():
    own = tpu_group("tpu-v6e-slice", "16x16", annotations={"cloud.google.com/gke-tpu-slice-topology": "4x4"})
    assert shape_of(worker(own))[:2] == ("4x4", "v6e-16")


@pytest.mark.parametrize("accelerator", GENERATIONS)
def test_every_topology_of_the_table_is_told_as_the_table_has_it(accelerator):
    row = GENERATIONS[accelerator]
    for topology in (*row.single_host, *row.multi_host):
        for chips in row.host_sizes(topology):
            shape = slice_shape(accelerator, topology, chips)
            pod = worker(tpu_group(accelerator, str(topology), chips, shape.hosts), Place("s", 0, 0, shape.hosts))
            bounds = ",".join(map(str, shape.host_bounds))
            assert shape_of(pod)[0] == str(topology)
            assert shape_of(pod)[1] == (shape.accelerator_type or None)
            assert shape_of(pod)[3] == bounds
