"""Objects that the API server takes and that cannot work: told once, left alone, healed by an edit."""

from __future__ import annotations

from typing import Any

import pytest

from bed import Bed, condition, group, pod_template, raycluster
from tpu_operator.api import names

pytestmark = pytest.mark.apiserver

GROUPS = "/spec/workerGroupSpecs"


def replace(path: str, value: object) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


def without_containers() -> dict[str, Any]:
    return {"spec": {"containers": []}}


# The object, the field that is told of, a part of what to write instead, an edit that heals it, and the pods then.
INVALID: dict[str, tuple[dict[str, Any], str, str, dict[str, Any], int]] = {
    "twin-groups": (
        raycluster("demo", group("g", 1), group("g", 3)),
        "spec.workerGroupSpecs[1].groupName",
        "a name of its own",
        replace(f"{GROUPS}/1/groupName", "h"),
        5,
    ),
    "minimum-above-maximum": (
        raycluster("demo", group("g", 1, minReplicas=3, maxReplicas=2)),
        "spec.workerGroupSpecs[0].minReplicas",
        "at most 2",
        replace(f"{GROUPS}/0/minReplicas", 1),
        2,
    ),
    "negative-minimum": (
        raycluster("demo", group("g", 1, minReplicas=-1)),
        "spec.workerGroupSpecs[0].minReplicas",
        "0 or more",
        replace(f"{GROUPS}/0/minReplicas", 0),
        2,
    ),
    "reserved-group-name": (
        raycluster("demo", group("headgroup", 1)),
        "spec.workerGroupSpecs[0].groupName",
        "another name",
        replace(f"{GROUPS}/0/groupName", "g"),
        2,
    ),
    "suspended-group-under-the-autoscaler": (
        raycluster("demo", group("g", 1, suspend=True), enableInTreeAutoscaling=True),
        "spec.workerGroupSpecs[0].suspend",
        "",
        replace(f"{GROUPS}/0/suspend", value=False),
        2,
    ),
    "no-head-container": (
        raycluster("demo", group("g", 1), headGroupSpec={"rayStartParams": {}, "template": without_containers()}),
        "spec.headGroupSpec.template.spec.containers",
        "",
        replace("/spec/headGroupSpec/template", pod_template()),
        2,
    ),
}


@pytest.mark.parametrize("case", INVALID)
async def test_a_mistake_is_told_once_with_field_rule_and_fix(operator: Bed, case: str) -> None:
    spec, field, fix, cure, pods = INVALID[case]
    await operator.create(spec)
    seen = await operator.until_cluster("demo", "stalled", lambda c: condition(c, "Stalled").get("status") == "True")
    told = condition(seen, "Stalled")["message"]
    assert field in told
    assert fix in told
    assert condition(seen, "Ready")["status"] == "False"
    await operator.annotate("demo", touched="yes")
    await operator.settled()
    assert (operator.made(), operator.killed(), operator.calls["apply", "services"]) == (0, 0, 0)
    events = await operator.events()
    assert [e["type"] for e in events] == ["Warning"]
    assert field in events[0]["note"]
    assert fix in events[0]["note"]
    await operator.edit("demo", cure)
    await operator.until_live(pods)
    await operator.until_cluster("demo", "healed", lambda c: condition(c, "Stalled").get("status") == "False")


async def test_an_edit_that_makes_a_mistake_leaves_the_pods_alone(operator: Bed) -> None:
    await operator.create(raycluster("demo", group("g", 3)))
    await operator.all_ready("demo", 4)
    await operator.settled()
    await operator.edit("demo", replace(f"{GROUPS}/0/minReplicas", 9), replace(f"{GROUPS}/0/maxReplicas", 1))
    await operator.until_cluster("demo", "stalled", lambda c: condition(c, "Stalled").get("status") == "True")
    await operator.settled()
    assert (operator.made(), operator.killed()) == (4, 0)
    assert (await operator.cluster("demo"))["status"]["state"] == "ready"
    await operator.edit("demo", replace(f"{GROUPS}/0/minReplicas", 0), replace(f"{GROUPS}/0/maxReplicas", 3))
    await operator.until_cluster("demo", "healed", lambda c: condition(c, "Stalled").get("status") == "False")
    await operator.settled()
    assert (operator.made(), operator.killed()) == (4, 0)


async def test_a_group_whose_name_cannot_be_used_does_not_hold_up_the_others(operator: Bed) -> None:
    await operator.create(raycluster("demo", group("not ok!", 1), group("g", 2)))
    pods = await operator.until_live(3)
    assert {p["metadata"]["labels"][names.NODE_GROUP] for p in pods} == {"headgroup", "g"}
    seen = await operator.until_cluster("demo", "stalled", lambda c: condition(c, "Stalled").get("status") == "True")
    assert "spec.workerGroupSpecs[0].groupName" in condition(seen, "Stalled")["message"]


async def test_an_invalid_object_can_be_deleted(operator: Bed) -> None:
    await operator.create(raycluster("demo", group("g", 1), group("g", 3)))
    await operator.until_cluster("demo", "stalled", lambda c: condition(c, "Stalled").get("status") == "True")
    await operator.delete_cluster("demo")
    await operator.until_true("forgotten", lambda: len(operator.app.clusters) == 0)


async def test_an_object_of_another_manager_is_left_to_it(operator: Bed) -> None:
    await operator.create(raycluster("demo", group("g", 2), managedBy="kueue.x-k8s.io/multikueue"))
    await operator.create(raycluster("mine", group("g", 1)))
    await operator.until_live(2, "mine")
    await operator.settled()
    assert operator.made() == 2
    assert "status" not in await operator.cluster("demo")
