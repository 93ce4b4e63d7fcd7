"""The status: read back what was written, and written as KubeRay's Go types write it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tpu_operator.api.conditions import ConditionType
from tpu_operator.api.status import Condition, HeadInfo, RayClusterStatus, WorkerGroupStatus

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
STATUS = RayClusterStatus(
    state="ready",
    conditions=(
        Condition(ConditionType.READY, "True", "AllPodsReady", "", NOW.replace(microsecond=0), observed_generation=3),
    ),
    desired_worker_replicas=8,
    max_worker_replicas=16,
    desired_cpu="12",
    desired_gpu="0",
    endpoints={"client": "10001"},
    head=HeadInfo(pod_ip="10.0.0.1", service_name="svc"),
    state_transition_times={"ready": NOW.replace(microsecond=0)},
    observed_generation=3,
    worker_groups=(WorkerGroupStatus("g", desired_slices=2, ready_slices=1, forming_slices=1),),
)
WRITTEN = {
    "state": "ready",
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "AllPodsReady",
            "message": "",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
            "observedGeneration": 3,
        }
    ],
    "desiredWorkerReplicas": 8,
    "maxWorkerReplicas": 16,
    "desiredCPU": "12",
    "desiredGPU": "0",
    "endpoints": {"client": "10001"},
    "head": {"podIP": "10.0.0.1", "serviceName": "svc"},
    "stateTransitionTimes": {"ready": "2026-01-02T03:04:05Z"},
    "observedGeneration": 3,
    "workerGroups": [{"name": "g", "desiredSlices": 2, "readySlices": 1, "formingSlices": 1, "brokenSlices": 0}],
}


def test_it_is_written_as_kuberays_clients_expect():
    assert STATUS.to_json() == WRITTEN


def test_what_was_written_is_read_back():
    assert RayClusterStatus.parse(WRITTEN) == STATUS


def test_an_empty_status_has_a_head_only():
    assert RayClusterStatus().to_json() == {"head": {}}


def test_enum_members_become_plain_text():
    kind = STATUS.to_json()["conditions"][0]["type"]
    assert type(kind) is str


def test_times_are_utc_in_whole_seconds():
    local = NOW.astimezone(timezone(timedelta(hours=2)))
    assert replace(STATUS, last_update_time=local).to_json()["lastUpdateTime"] == "2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    "raw",
    [
        None,
        [],
        "x",
        {},
        {"state": None, "conditions": None, "head": None},
        {"conditions": [{"type": 1}]},
        {"endpoints": []},
    ],
)
def test_a_status_that_cannot_be_read_is_empty(raw):
    assert RayClusterStatus.parse(raw) == RayClusterStatus()


def test_conditions_of_others_and_unknown_fields_do_no_harm():
    read = RayClusterStatus.parse({"conditions": [{"type": "x.io/Mine", "status": "Unknown", "extra": 1}], "new": {}})
    assert read.conditions == (Condition("x.io/Mine", "Unknown"),)


def test_quantities_may_be_numbers():
    assert RayClusterStatus.parse({"desiredCPU": 3}).desired_cpu == "3"


def test_a_condition_keeps_reason_and_message_even_if_empty():
    assert Condition("A", "True").to_json() == {"type": "A", "status": "True", "reason": "", "message": ""}
