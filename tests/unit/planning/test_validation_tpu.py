"""TPU groups: what cannot work is refused with its remedy, what may work is a warning."""

from __future__ import annotations

from typing import Any

import pytest

from builders import cluster, decide, group, template
from tpu_operator.config import OperatorConfig
from tpu_operator.planning.plan import Blocker, CreateSlice
from tpu_operator.planning.validation import validate, warnings
from tpu_operator.tpu import gke

V4, V5E, V5E_DEVICE, V5P, V6E, V7X = (
    "tpu-v4-podslice",
    "tpu-v5-lite-podslice",
    "tpu-v5-lite-device",
    "tpu-v5p-slice",
    "tpu-v6e-slice",
    "tpu7x",
)
GROUP, HEAD = "spec.workerGroupSpecs[0]", "spec.headGroupSpec"
TOPOLOGY = f"template.spec.nodeSelector[{gke.TOPOLOGY}]"


def pods(accelerator: str | None, topology: str | None, *chips: int, **spec: Any) -> dict[str, Any]:
    """A pod template with a container for each number of chips."""
    selector = {gke.ACCELERATOR: accelerator, gke.TOPOLOGY: topology}
    containers = [
        {"name": f"c{n}", "image": "ray", "resources": {"limits": {gke.RESOURCE: str(c)}}} for n, c in enumerate(chips)
    ]
    return {
        "spec": {"nodeSelector": {k: v for k, v in selector.items() if v is not None}, "containers": containers, **spec}
    }


def tpu(
    accelerator: str | None, topology: str | None, *chips: int, hosts: int | None = 1, name: str = "g", **fields: Any
) -> dict[str, Any]:
    spec = {key: fields.pop(key) for key in ("hostNetwork", "dnsPolicy", "affinity") if key in fields}
    return group(name, hosts=hosts, **{"template": pods(accelerator, topology, *chips, **spec), **fields})


def blockers(*groups: dict[str, Any], **spec: Any) -> list[Blocker]:
    return list(validate(cluster(*groups, **spec), OperatorConfig()))


def doubts(*groups: dict[str, Any], **spec: Any) -> list[str]:
    return [notice.message for notice in warnings(cluster(*groups, **spec), OperatorConfig())]


REFUSED = [
    (tpu(V6E, "", 4), TOPOLOGY, gke.TOPOLOGY),
    *(
        (tpu(V6E, text, 4), TOPOLOGY, "positive whole numbers")
        for text in ("4", "x4", "4x", "2xa", "0x4", "-2x2", "2x2x2x2", " 2x2")
    ),
    (tpu(V6E, "2x2x2", 4, hosts=2), TOPOLOGY, "2D"),
    (tpu(V5E, "2x2x2", 4, hosts=2), TOPOLOGY, "2D"),
    (tpu(V4, "4x4", 4, hosts=4), TOPOLOGY, "3D"),
    (tpu(V5P, "4x4", 4, hosts=4), TOPOLOGY, "3D"),
    (tpu(V7X, "4x4", 4, hosts=4), TOPOLOGY, "3D"),
    (tpu(V6E, "2x4", 3), "template.spec.containers", "4 or 8"),
    (tpu(V6E, "2x4", 5), "template.spec.containers", "4 or 8"),
    (tpu(V6E, "2x4", 16), "template.spec.containers", "4 or 8"),
    (tpu(V6E, "2x2", 8), "template.spec.containers", "not 8"),
    (tpu(V5P, "2x2x2", 8), "template.spec.containers", "4 chips, not 8"),
    (tpu(V6E, "4x4", 8, hosts=2), "template.spec.containers", "4 chips, not 8"),
    (tpu(V5E_DEVICE, "4x4", 4, hosts=4), TOPOLOGY, "single-host only"),
    (tpu(V7X, "4x8x4", 4, hosts=32), TOPOLOGY, "4x4x8"),
    (tpu(V5P, "8x4x4", 4, hosts=32), TOPOLOGY, "4x4x8"),
    (tpu(V5P, "4x4x6", 4, hosts=24), TOPOLOGY, "multiple of 4"),
    (tpu(V7X, "2x4x8", 4, hosts=16), TOPOLOGY, "multiple of 4"),
    (tpu(V7X, "16x24x28", 4, hosts=2688), TOPOLOGY, "9216"),
    (tpu(V4, "2x2x1", 4, hosts=2), "numOfHosts", "set numOfHosts to 1"),
    (tpu(V6E, "4x4", 4, hosts=1), "numOfHosts", "numOfHosts is 1; set numOfHosts to 4"),
    (tpu(V6E, "4x4", 4, hosts=0), "numOfHosts", "numOfHosts is 0; set numOfHosts to 4"),
    (tpu(V6E, "4x4", 4, hosts=None), "numOfHosts", "numOfHosts is absent; set numOfHosts to 4"),
    (tpu(V6E, "2x4", 4, hosts=1), "numOfHosts", "set numOfHosts to 2"),
    (tpu(V7X, "2x2x2", 2, 2, hosts=1), "numOfHosts", "set numOfHosts to 2"),
    (tpu(None, "4x4", 4, hosts=2), "numOfHosts", "set numOfHosts to 4"),
    (tpu(V6E, "4x4", 4, hosts=4, name="Upper"), "groupName", "name it 'upper'"),
    (tpu(V6E, "4x4", 4, hosts=4, name="v6e.4x4"), "groupName", "name it 'v6e-4x4'"),
    (tpu(V6E, "16x16", 4, hosts=64, name="a" * 57, replicas=1000, high=1000), "groupName", "64 characters"),
]


@pytest.mark.parametrize(("spec", "field", "text"), REFUSED, ids=lambda v: v if isinstance(v, str) else "")
def test_a_slice_that_cannot_be_is_refused_with_group_field_and_remedy(spec, field, text):
    (blocker,) = blockers(spec)
    assert blocker.field == f"{GROUP}.{field}"
    assert text in str(blocker)
    assert f"'{spec['groupName']}'" in blocker.message
    assert blocker.fix
    assert blocker.group == spec["groupName"]


ACCEPTED = [
    tpu(V6E, "4x4", 4, hosts=4),
    tpu(V6E, "2x4", 8),
    tpu(V6E, "2x4", 8, hosts=0),
    tpu(V6E, "2x4", 8, hosts=None),
    tpu(V6E, "2x4", 4, hosts=2),
    tpu(V5E_DEVICE, "1x1", 1),
    tpu(V4, "8x4x4", 4, hosts=32),
    tpu(V7X, "2x2x2", 2, 2, hosts=2),
    tpu(V6E, "4x4", 4, 0, hosts=4),
    tpu(V6E, "2x2", 4, name="Upper.Case"),
    group("Upper", hosts=2),
    tpu(V6E, "4x4", 4, hosts=4, hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet"),
]


@pytest.mark.parametrize("spec", ACCEPTED)
def test_a_right_slice_is_neither_refused_nor_doubted(spec):
    assert not blockers(spec)
    assert not doubts(spec)


def affinity(*terms: dict[str, list[str]]) -> dict[str, Any]:
    listed = [
        {"matchExpressions": [{"key": k, "operator": "In", "values": v} for k, v in term.items()]} for term in terms
    ]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}}


SLICE = {gke.ACCELERATOR: [V6E], gke.TOPOLOGY: ["4x4"]}

DOUBTED = [
    (tpu(V6E, None, 4, hosts=4), "worker group 'g': node selector cloud.google.com/gke-tpu-topology is missing"),
    (tpu(None, None, 4, hosts=4), "gke-tpu-topology is missing"),
    (tpu(None, None, 4), "gke-tpu-topology is missing"),
    (tpu(None, "4x4", 4, hosts=4), "gke-tpu-accelerator is missing"),
    (tpu("tpu-v9-slice", "4x4x4", 4, hosts=16), "'tpu-v9-slice' is not in the table"),
    (tpu("tpu-v3-slice", "8x4", 4, hosts=8), "8x4 of v3"),
    (tpu(V6E, "2x4", 1), "shares the host"),
    (tpu(V6E, "4x4", 4, hosts=4, hostNetwork=True), "DNS of the cluster"),
    (tpu(V6E, "4x4", 4, hosts=4, dnsPolicy="Default"), "DNS of the cluster"),
    (tpu(None, None, 4, hosts=4, affinity=affinity({gke.TOPOLOGY: ["4x4", "4x8"]})), "topology is missing"),
    (tpu(None, None, 4, hosts=4, affinity=affinity(SLICE, {gke.TOPOLOGY: ["8x8"]})), "topology is missing"),
]


@pytest.mark.parametrize(("spec", "text"), DOUBTED)
def test_what_may_work_is_a_warning_only(spec, text):
    assert not blockers(spec)
    (message,) = doubts(spec)
    assert text in message


@pytest.mark.parametrize(("hosts", "refused"), [(4, False), (2, True)])
@pytest.mark.parametrize("terms", [(SLICE,), (SLICE, {**SLICE, "spot": ["true"]})])
def test_node_affinity_selects_as_well_as_a_node_selector(terms, hosts, refused):
    spec = tpu(None, None, 4, hosts=hosts, affinity=affinity(*terms))
    assert bool(blockers(spec)) is refused
    assert not doubts(spec)


def test_the_annotation_for_dynamic_slices_goes_before_the_topology_of_the_pool():
    spec = tpu(V6E, "16x16", 4, hosts=4)
    spec["template"]["metadata"] = {"annotations": {gke.SLICE_TOPOLOGY: "4x4"}}
    assert not blockers(spec)


def resources(requests: int | None, limits: int | None) -> dict[str, Any]:
    given = {"requests": requests, "limits": limits}
    return {kind: {gke.RESOURCE: str(n)} for kind, n in given.items() if n is not None}


@pytest.mark.parametrize(
    ("request_", "limit", "right"), [(4, 4, True), (None, 4, True), (4, 8, False), (4, None, False)]
)
def test_request_and_limit_of_chips_are_equal(request_, limit, right):
    spec = tpu(V6E, "2x2", 4) if limit != 8 else tpu(V6E, "2x4", 8)
    spec["template"]["spec"]["containers"][0]["resources"] = resources(request_, limit)
    found = blockers(spec)
    assert not found if right else [b.field for b in found] == [f"{GROUP}.template.spec.containers[0].resources"]


def test_all_offenders_are_told_and_only_they_are_held_up():
    bad = [tpu(V6E, "4x4", 4, hosts=2, name="a"), tpu(V6E, "4x4x4", 4, hosts=16, name="b")]
    both = cluster(*bad, tpu(V6E, "4x4", 4, hosts=4, name="c"))
    plan = decide(both)
    assert [b.group for b in plan.blockers] == ["a", "b"]
    assert [a.group for a in plan.actions if isinstance(a, CreateSlice)] == ["c"]


@pytest.mark.parametrize(
    ("head", "text"),
    [
        (pods(V6E, "4x4", 4), "head: v6e (tpu-v6e-slice) 4x4 with 4 chips per host has 4 hosts, the head is one pod"),
        (pods(V6E, "4x5", 4), "head: v6e (tpu-v6e-slice) has no topology 4x5"),
    ],
)
def test_a_head_with_chips_is_a_single_host(head, text):
    (blocker,) = blockers(headGroupSpec={"rayStartParams": {}, "template": head})
    assert blocker.field == f"{HEAD}.{TOPOLOGY}"
    assert blocker.message == text or text in blocker.message
    assert blocker.group is None
    assert not blockers(headGroupSpec={"rayStartParams": {}, "template": pods(V6E, "2x2", 4)})


def test_suspended_and_autoscaled_groups_are_looked_at_too():
    assert blockers(tpu(V6E, "4x4", 4, hosts=2, suspend=True))
    assert blockers(tpu(V6E, "4x4", 4, hosts=2, replicas=0), autoscaling=True)


def test_groups_without_chips_may_have_any_selector():
    spec = group(hosts=3, template=template("ray-worker", nodeSelector={gke.TOPOLOGY: "nonsense"}))
    assert not blockers(spec)
    assert not doubts(spec)
