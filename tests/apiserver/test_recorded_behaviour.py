"""What other software reads of KubeRay's clusters: Events, conditions, status, Services, in KubeRay's words and shapes."""

from __future__ import annotations

from typing import Any

import pytest

from bed import Bed, condition, group, label, name_of, pod_template, raycluster, uid_of, workers
from tpu_operator.api import names
from tpu_operator.kube.resource import Resource

pytestmark = pytest.mark.apiserver

Json = dict[str, Any]
SERVICES = Resource("", "v1", "services", "Service")


async def told(operator: Bed, reason: str, count: int = 1) -> list[Json]:
    """The Events of that reason, once there are so many."""

    def of_reason(events: list[Json]) -> list[Json]:
        return [e for e in events if e["reason"] == reason]

    return of_reason(await operator.until_events(reason, lambda events: len(of_reason(events)) >= count))


async def notes(operator: Bed, reason: str, count: int = 1) -> set[str]:
    return {e["note"] for e in await told(operator, reason, count)}


def state(value: str) -> Any:
    return lambda cluster: cluster.get("status", {}).get("state") == value


async def ready_cluster(operator: Bed, pods: int, *groups: Json, **spec: object) -> list[Json]:
    await operator.create(raycluster("demo", *groups, **spec))
    found = await operator.all_ready("demo", pods)
    await operator.until_cluster("demo", "ready", state("ready"))
    return found


async def test_what_was_created_is_told_in_the_words_that_tools_look_for(operator: Bed) -> None:
    pods = await ready_cluster(operator, 3, group("small", 2), enableInTreeAutoscaling=True)
    here = operator.namespace
    expected = {f"Created worker Pod {here}/{name_of(p)}" for p in pods if label(p, names.NODE_TYPE) == names.WORKER}
    head = next(p for p in pods if label(p, names.NODE_TYPE) == names.HEAD)
    assert await notes(operator, "CreatedWorkerPod", 2) == expected
    assert await notes(operator, "CreatedHeadPod") == {f"Created head Pod {here}/{name_of(head)}"}
    assert await notes(operator, "CreatedService") == {f"Created service {here}/demo-head-svc"}
    assert await notes(operator, "CreatedRole") == {f"Created role {here}/demo"}
    assert await notes(operator, "CreatedRoleBinding") == {f"Created role binding {here}/demo"}
    assert await notes(operator, "CreatedServiceAccount") == {f"Created service account {here}/demo"}
    for event in await operator.events():
        assert event["regarding"]["kind"] == names.KIND
        assert event["reportingController"] == names.REPORTING_CONTROLLER
        assert (event["type"], event["action"]) == ("Normal", "Create")


async def test_a_slice_is_one_event_and_many_slices_are_one_too(operator: Bed) -> None:
    await operator.create(raycluster("demo", group("few", 2, hosts=3), group("many", 9, hosts=2)))
    await operator.until_live(1 + 6 + 18)
    await operator.settled()
    found = await notes(operator, "CreatedWorkerPod", 3)
    assert all(note.startswith(f"Created worker Pod {operator.namespace}/demo-") for note in found)
    endings = {note.partition("-worker-")[2][5:] for note in found}
    assert endings == {
        " (slice few-0, 3 hosts)",
        " (slice few-1, 3 hosts)",
        ", and 17 more of group many (9 slices)",
    }


async def test_a_ready_cluster_says_so_as_kuberay_does(operator: Bed) -> None:
    pods = await ready_cluster(operator, 3, group("small", 2, maxReplicas=5))
    head = next(p for p in pods if label(p, names.NODE_TYPE) == names.HEAD)
    cluster = await operator.cluster("demo")
    status = cluster["status"]
    numbers = {key: value for key, value in status.items() if key.endswith("WorkerReplicas")}
    assert numbers == {
        "desiredWorkerReplicas": 2,
        "availableWorkerReplicas": 2,
        "readyWorkerReplicas": 2,
        "maxWorkerReplicas": 5,
    }
    assert (status["desiredCPU"], status["desiredMemory"]) == ("3", "3Gi")
    assert (status["desiredGPU"], status["desiredTPU"]) == ("0", "0")
    assert status["endpoints"] == {
        "client": "10001",
        "dashboard": "8265",
        "gcs-server": "6379",
        "metrics": "8080",
        "serve": "8000",
    }
    assert status["head"] == {
        "podIP": "10.1.2.3",
        "podName": name_of(head),
        "serviceIP": "10.1.2.3",
        "serviceName": "demo-head-svc",
    }
    assert status["observedGeneration"] == 1
    assert status["stateTransitionTimes"].keys() == {"ready"}
    told_of = {c["type"]: (c["status"], c["reason"], c["message"]) for c in status["conditions"]}
    first_time = "All Ray Pods are ready for the first time"
    assert told_of["HeadPodReady"] == ("True", "HeadPodRunningAndReady", "")
    assert told_of["RayClusterProvisioned"] == ("True", "AllPodRunningAndReadyFirstTime", first_time)
    assert told_of["RayClusterSuspending"] == ("False", "RayClusterSuspending", "")
    assert told_of["RayClusterSuspended"] == ("False", "RayClusterSuspended", "")
    assert "ReplicaFailure" not in told_of


async def test_a_named_worker_is_told_by_name_and_a_named_host_with_its_slice(operator: Bed) -> None:
    pods = await ready_cluster(operator, 6, group("single", 1), group("double", 2, hosts=2))
    single = next(p for p in pods if label(p, names.NODE_GROUP) == "single")
    host = next(p for p in pods if label(p, names.NODE_GROUP) == "double" and label(p, names.HOST_INDEX) == "1")
    await operator.scale("demo", 0, [name_of(single)], index=0)
    await operator.scale("demo", 1, [name_of(host)], index=1)
    here, index = operator.namespace, label(host, names.REPLICA_INDEX)
    slice_note = (
        f"Deleted worker Pod {here}/{name_of(host)} for group double: autoscaler scale-down request "
        f"(slice double-{index}, 2 hosts)"
    )
    assert await notes(operator, "DeletedWorkerPod", 2) == {f"Deleted pod {here}/{name_of(single)}", slice_note}


async def test_a_lost_host_is_named_with_what_became_of_it(operator: Bed) -> None:
    pods = await ready_cluster(operator, 3, group("pair", 1, hosts=2))
    host = next(p for p in pods if label(p, names.HOST_INDEX) == "1")
    await operator.fail(host, "Evicted")
    (note,) = await notes(operator, "DeletedWorkerPod")
    assert note.startswith(f"Deleted worker Pod {operator.namespace}/{name_of(host)} for group pair: ")
    assert "Pod status: Failed (Evicted); Pod restart policy: Always" in note
    assert note.endswith("(slice pair-0, 2 hosts)")


async def test_a_slice_that_loses_a_host_before_it_starts_is_made_anew(operator: Bed) -> None:
    """A pod without a node is gone at once: nobody has seen it terminating."""
    await operator.create(raycluster("demo", group("four", 1, hosts=4)))
    before = {uid_of(p) for p in workers(await operator.until_live(5))}
    await operator.settled()
    lost = next(p for p in await operator.workers() if label(p, names.HOST_INDEX) == "2")
    await operator.delete_pod(lost)
    now = await operator.until(
        "four new hosts",
        lambda pods: len(workers(pods)) == len(before) and not before & {uid_of(p) for p in workers(pods)},
    )
    assert {label(p, names.HOST_INDEX) for p in workers(now)} == set("0123")
    assert len({label(p, names.REPLICA_NAME) for p in workers(now)}) == 1
    (note,) = await notes(operator, "DeletedWorkerPod")
    assert "for group four: cleanup of incomplete multi-host group, " in note
    assert note.endswith(" (slice four-0, 3 hosts)")


async def test_a_suspension_is_two_conditions_and_one_event(operator: Bed) -> None:
    await ready_cluster(operator, 3, group("small", 2))
    async with operator.kubelet():
        await operator.patch("demo", suspend=True)
        cluster = await operator.until_cluster("demo", "suspended", state("suspended"))
        text = f"Deleted Pods for RayCluster {operator.namespace}/demo due to suspension"
        assert await notes(operator, "DeletedPod") == {text}
        assert condition(cluster, "RayClusterSuspending")["status"] == "False"
        assert condition(cluster, "RayClusterSuspended")["status"] == "True"
        assert condition(cluster, "HeadPodReady")["reason"] == "HeadPodNotFound"
        provisioned = condition(cluster, "RayClusterProvisioned")
        assert (provisioned["status"], provisioned["reason"]) == ("False", "RayClusterPodsProvisioning")
        assert await operator.pods("demo") == []
        await operator.patch("demo", suspend=None)
        cluster = await operator.until_cluster("demo", "ready again", state("ready"))
    assert condition(cluster, "RayClusterProvisioned")["status"] == "True"
    assert condition(cluster, "RayClusterSuspended")["status"] == "False"


async def test_a_suspended_group_is_one_event_and_the_others_stay(operator: Bed) -> None:
    pods = await ready_cluster(operator, 6, group("one", 1), group("two", 2, hosts=2))
    kept = {uid_of(p) for p in pods if label(p, names.NODE_GROUP) != "two"}
    async with operator.kubelet():
        await operator.edit("demo", {"op": "add", "path": "/spec/workerGroupSpecs/1/suspend", "value": True})
        text = f"Deleted all pods for suspended worker group two in RayCluster {operator.namespace}/demo"
        assert await notes(operator, "DeletedWorkerPod") == {text}
        left = await operator.until("two pods", lambda found: len(found) == len(kept), "demo")
        assert {uid_of(p) for p in left} == kept
        await operator.until_cluster("demo", "one worker wanted", lambda c: c["status"]["desiredWorkerReplicas"] == 1)


async def test_a_recreate_is_one_event_and_new_pods(operator: Bed) -> None:
    pods = await ready_cluster(operator, 3, group("pair", 1, hosts=2), upgradeStrategy={"type": "Recreate"})
    template = pod_template()
    template["spec"]["containers"][0]["image"] = "ray:new"
    async with operator.kubelet():
        await operator.edit("demo", {"op": "replace", "path": "/spec/workerGroupSpecs/0/template", "value": template})
        await operator.until(
            "all pods are new ones",
            lambda found: len(found) == len(pods) and not {uid_of(p) for p in found} & {uid_of(p) for p in pods},
            "demo",
        )
    cause = "due to spec change with Recreate upgradeStrategy"
    assert await notes(operator, "DeletedPod") == {f"Deleted all Pods for RayCluster {operator.namespace}/demo {cause}"}


@pytest.mark.parametrize(
    ("name", "spec", "reason", "opening"),
    [
        ("demo", {"groups": [group("g", -1, minReplicas=-1)]}, "InvalidRayClusterSpec", "spec"),
        ("1st", {"groups": [group("g", 1)]}, "InvalidRayClusterMetadata", "metadata"),
    ],
)
async def test_a_mistake_is_told_in_an_event_and_in_the_status(
    operator: Bed, name: str, spec: dict[str, list[Json]], reason: str, opening: str
) -> None:
    await operator.create(raycluster(name, *spec["groups"]))
    (event,) = await told(operator, reason)
    assert event["note"].startswith(f"The RayCluster {opening} is invalid {operator.namespace}/{name}: ")
    assert (event["type"], event["action"]) == ("Warning", "Validate")
    cluster = await operator.until_cluster(name, "stalled", lambda c: condition(c, "Stalled"))
    assert condition(cluster, "Stalled")["reason"] == reason
    assert await operator.pods() == []


async def test_a_changed_type_of_the_head_service_takes_effect(operator: Bed) -> None:
    head = {"serviceType": "NodePort", "rayStartParams": {}, "template": pod_template()}
    pods = await ready_cluster(operator, 2, group("g", 1), headGroupSpec=head)
    (service,) = await operator.all_of(SERVICES)
    assert service["spec"]["type"] == "NodePort"
    await operator.edit("demo", {"op": "replace", "path": "/spec/headGroupSpec/serviceType", "value": "ClusterIP"})

    async def look() -> list[Json]:
        return await operator.all_of(SERVICES)

    found = await operator.until_async(
        "headless", look, lambda all_: [s["spec"]["clusterIP"] for s in all_] == ["None"]
    )
    assert uid_of(found[0]) != uid_of(service)
    await operator.settled()
    assert {uid_of(p) for p in await operator.pods()} == {uid_of(p) for p in pods}
    cluster = await operator.cluster("demo")
    assert (cluster["status"]["state"], cluster["status"]["endpoints"]["gcs-server"]) == ("ready", "6379")


async def test_nothing_is_written_for_a_cluster_that_somebody_else_manages(operator: Bed) -> None:
    await operator.create(raycluster("demo", group("g", 1), managedBy="kueue.x-k8s.io/multikueue"))
    await operator.create(raycluster("other", group("g", 1), managedBy="ray.io/kuberay-operator"))
    await operator.until_live(2)
    await operator.settled()
    assert "status" not in await operator.cluster("demo")
    assert {label(p, names.CLUSTER) for p in await operator.pods()} == {"other"}
