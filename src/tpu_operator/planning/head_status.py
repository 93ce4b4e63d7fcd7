"""What status tells of the head: its pod's readiness, its addresses and the ports of its service."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from tpu_operator.api import names
from tpu_operator.api.conditions import ConditionType
from tpu_operator.api.status import Condition, HeadInfo
from tpu_operator.planning.conditions import UNKNOWN, condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.json import JsonObject
    from tpu_operator.planning.pod import ContainerState, Pod
    from tpu_operator.planning.snapshot import Snapshot


def head_pod_ready(head: Pod | None) -> Condition:
    """Condition HeadPodReady: KubeRay's copy of the pod's own Ready condition, and False for a head that is leaving."""
    kind = ConditionType.HEAD_POD_READY
    if head is None:
        return condition(kind, true=False, reason="HeadPodNotFound", message="Head Pod not found")
    if head.terminating:
        return condition(kind, true=False, reason="HeadPodTerminating", message="Head Pod is being deleted")
    ready = head.ready_condition
    if ready is None:
        return condition(kind, true=False, reason=UNKNOWN)
    reason, message = ready.reason or "", ready.message or ""
    if ready.status == "True":
        return condition(kind, true=True, reason=reason or "HeadPodRunningAndReady", message=message)
    if reason == "ContainersNotReady" and (culprit := _culprit(head)):
        name, state = culprit
        reason, message = state.reason or UNKNOWN, "; ".join(filter(None, (message, f"{name}: {state.message or ''}")))
    told = condition(kind, true=False, reason=reason, message=message)
    return told if ready.status == "False" else replace(told, status=ready.status)


def _culprit(head: Pod) -> tuple[str, ContainerState] | None:
    """The first container that does not run, with its state."""
    for status in head.status.container_statuses:
        state = status.state.waiting or status.state.terminated
        if state is not None:
            return status.name, state
    return None


def head_service(snapshot: Snapshot) -> JsonObject | None:
    """The own Service that leads to the head, by KubeRay's labels; of several, the one with the usual name."""
    usual = names.head_service(snapshot.cluster.name)
    found = {key.name: service for key, service in snapshot.observed.children.items() if key.kind == "Service"}
    heads = sorted(name for name in found if _leads_to_head(found[name], snapshot.cluster.name))
    if usual in found:
        return found[usual]
    return found[heads[0]] if heads else None


def _leads_to_head(service: JsonObject, cluster: str) -> bool:
    labels = _object(_object(service, "metadata"), "labels")
    return labels.get(names.NODE_TYPE) == names.HEAD and labels.get(names.IDENTIFIER) == names.identifier(
        cluster, names.HEAD
    )


def _object(owner: JsonObject, key: str) -> JsonObject:
    value = owner.get(key)
    return value if isinstance(value, dict) else {}


def head_info(head: Pod | None, service: JsonObject | None) -> HeadInfo:
    """Names and addresses of head pod and service; a headless service has the head pod's address."""
    pod_ip = (head.status.pod_ip if head else None) or ""
    service_ip = ""
    if service is not None:
        cluster_ip = str(_object(service, "spec").get("clusterIP") or "")
        service_ip = pod_ip if cluster_ip in ("", "None") else cluster_ip
    return HeadInfo(
        pod_ip=pod_ip,
        pod_name=head.name if head else "",
        service_ip=service_ip,
        service_name=str(_object(service or {}, "metadata").get("name") or ""),
    )


def endpoints(service: JsonObject | None) -> dict[str, str]:
    """Per named port of the head service: nodePort, else targetPort, as text. Ports that are gone are gone (quirk 55)."""
    return dict(_endpoints(_object(service or {}, "spec")))


def _endpoints(spec: JsonObject) -> Iterator[tuple[str, str]]:
    ports = spec.get("ports")
    for port in cast("list[JsonObject]", ports if isinstance(ports, list) else []):
        value = port.get("nodePort") or port.get("targetPort") or port.get("port")
        if port.get("name") and value:
            yield str(port["name"]), str(value)
