"""Counts and resources of whole clusters, from the numbers in the spec."""

from __future__ import annotations

import copy

import pytest

from tpu_operator.api.raycluster import RayCluster
from tpu_operator.resources.totals import pod_resources, totals
from tpu_operator.resources.wanted import wanted_pods, wanted_slices

INT32_MAX = 2**31 - 1


def template(*resources: dict | None) -> dict:
    return {"spec": {"containers": [{"name": f"c{i}", "resources": r} for i, r in enumerate(resources or ({},))]}}


def group(**fields: object) -> dict:
    return {"groupName": "g", "template": template(), **fields}


def spec_of(*groups: dict, head: dict | None = None):
    raw = {"spec": {"headGroupSpec": {"template": head or template()}, "workerGroupSpecs": list(groups)}}
    return RayCluster.parse(raw).spec


@pytest.mark.parametrize(
    ("fields", "slices", "pods"),
    [
        pytest.param({"replicas": 3}, 3, 3, id="replicas as written"),
        pytest.param({"replicas": 3, "numOfHosts": 4}, 3, 12, id="pods are slices times hosts"),
        pytest.param({"replicas": 10, "maxReplicas": 4}, 4, 4, id="OC-10 not above maxReplicas"),
        pytest.param({"replicas": 0, "minReplicas": 2}, 2, 2, id="not below minReplicas"),
        pytest.param({}, 0, 0, id="absent replicas are 0"),
        pytest.param({"minReplicas": 2}, 2, 2, id="absent replicas are raised to minReplicas"),
        pytest.param({"replicas": None, "minReplicas": None, "maxReplicas": None}, 0, 0, id="null is absent"),
        pytest.param({"replicas": -1}, 0, 0, id="negative replicas are clamped"),
        pytest.param({"replicas": -1, "minReplicas": -5}, 0, 0, id="and never stay negative"),
        pytest.param({"replicas": 2, "numOfHosts": 0}, 2, 2, id="numOfHosts 0 counts as 1"),
        pytest.param({"replicas": 2, "numOfHosts": -1}, 2, 2, id="negative numOfHosts counts as 1"),
        pytest.param({"replicas": 2, "minReplicas": 1, "suspend": True}, 0, 0, id="a suspended group wants nothing"),
    ],
)
def test_what_a_group_wants(fields, slices, pods):
    (one,) = spec_of(group(**fields)).worker_group_specs
    assert (wanted_slices(one), wanted_pods(one)) == (slices, pods)


@pytest.mark.parametrize(
    ("groups", "want"),
    [
        pytest.param([], (0, 0, 0), id="no groups"),
        pytest.param(
            [{"replicas": 3, "minReplicas": 0, "maxReplicas": 4, "numOfHosts": 4}], (12, 0, 16), id="counts are pods"
        ),
        pytest.param([{"replicas": 1}], (1, 0, INT32_MAX), id="no upper bound"),
        pytest.param([{"replicas": 1}, {"replicas": 1}], (2, 0, INT32_MAX), id="the sum of upper bounds saturates"),
        pytest.param(
            [{"replicas": 2**30, "minReplicas": 2**30, "numOfHosts": 4}], (INT32_MAX,) * 3, id="all sums saturate"
        ),
        pytest.param(
            [{"replicas": 2, "minReplicas": 1, "maxReplicas": 3}, {"replicas": 9, "maxReplicas": 9, "suspend": True}],
            (2, 1, 3),
            id="suspended groups do not count",
        ),
    ],
)
def test_desired_least_and_most_workers(groups, want):
    sums = totals(spec_of(*(group(**fields) for fields in groups)))
    assert (sums.desired, sums.least, sums.most) == want


TPU = template({"limits": {"google.com/tpu": "4"}})


@pytest.mark.parametrize(
    ("head", "groups", "want"),
    [
        pytest.param(
            None,
            [{"replicas": 10, "maxReplicas": 4, "numOfHosts": 2, "template": TPU}],
            {"tpu": "32"},
            id="ST-04 chips of the clamped number of slices",
        ),
        pytest.param(
            None,
            [{"replicas": 0, "minReplicas": 2, "numOfHosts": 2, "template": TPU}],
            {"tpu": "16"},
            id="ST-04 also when raised to minReplicas",
        ),
        pytest.param(
            template({"limits": {"cpu": "500m", "memory": "1Gi"}}),
            [{"replicas": 3, "template": template({"requests": {"cpu": "250m", "memory": "512Mi"}})}],
            {"cpu": "1250m", "memory": "2560Mi"},
            id="head and workers",
        ),
        pytest.param(
            template({"requests": {"cpu": 1}, "limits": {"cpu": 4, "memory": "2Gi"}}, {"limits": {"cpu": "2"}}),
            [],
            {"cpu": "3", "memory": "2Gi"},
            id="limits where nothing is requested, over all containers",
        ),
        pytest.param(
            template({"limits": {"nvidia.com/gpu": 2, "amd.com/gpu": 1, "nvidia.com/mig-1g.5gb": 3, "gpu.io/x": 9}}),
            [],
            {"gpu": "6"},
            id="all kinds of GPU",
        ),
        pytest.param(
            template({"limits": {"cpu": "2"}}),
            [{"replicas": 5, "suspend": True, "template": TPU}],
            {"cpu": "2"},
            id="suspended groups do not count",
        ),
        pytest.param(template({"limits": {"cpu": "lots"}}), [], {}, id="what is no quantity counts as nothing"),
        pytest.param(template(None, {"limits": None, "requests": None}), [], {}, id="PT-08 null is nothing"),
    ],
)
def test_desired_resources(head, groups, want):
    sums = totals(spec_of(*(group(**fields) for fields in groups), head=head))
    got = {"cpu": sums.cpu, "memory": sums.memory, "gpu": sums.gpu, "tpu": sums.tpu}
    assert got == {"cpu": "0", "memory": "0", "gpu": "0", "tpu": "0", **want}


def test_init_containers_do_not_count():
    big = template({"limits": {"cpu": "1"}})
    big["spec"]["initContainers"] = [{"name": "i", "resources": {"limits": {"cpu": "64"}}}]
    assert totals(spec_of(head=big)).cpu == "1"


def test_the_template_is_not_changed_by_summing():
    head = template({"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}})
    before = copy.deepcopy(head)
    pod_resources(spec_of(head=head).head_group_spec)
    assert head == before
