"""Is a pod lost? The rule by which a pod is deleted and its slice repaired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpu_operator.planning.plan import Reason

if TYPE_CHECKING:
    from tpu_operator.planning.pod import Pod


@dataclass(frozen=True, slots=True)
class Loss:
    """Why a pod no longer counts: the reason, and what was seen, in stable words."""

    reason: Reason
    detail: str


def loss(pod: Pod, ray_container: str) -> Loss | None:
    """What makes `pod` useless, or None.

    KubeRay's should-delete rule: phase Failed or Succeeded always (the kubelet restarts nothing then, whatever the restart
    policy says: evictions, HP-01), a terminated Ray container only under restartPolicy Never (HP-02, HP-04). Besides, a
    terminating host counts as lost at once. The Ray container is found by its name in the template, because
    another webhook may have put its own container first (HP-05).
    """
    if pod.terminating:
        return Loss(Reason.HOST_TERMINATING, "a host is being deleted")
    if pod.terminal:
        return Loss(Reason.POD_FAILED, _phase_detail(pod))
    if pod.spec.restart_policy == "Never" and _ray_container_ended(pod, ray_container):
        return Loss(Reason.RAY_CONTAINER_ENDED, f"container {ray_container} ended and restartPolicy is Never")
    return None


def _phase_detail(pod: Pod) -> str:
    return f"phase {pod.phase}" + (f" ({pod.status.reason})" if pod.status.reason else "")


def _ray_container_ended(pod: Pod, ray_container: str) -> bool:
    return any(s.name == ray_container and s.state.terminated is not None for s in pod.status.container_statuses)
