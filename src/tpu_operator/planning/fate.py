"""What became of a pod, in words for Events."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tpu_operator.planning.pod import Pod


def fate(pod: Pod) -> str:
    """What became of a pod, in KubeRay's three facts; the cause of an eviction is with the first."""
    phase = pod.phase + (f" ({pod.status.reason})" if pod.status.reason else "")
    policy = pod.spec.restart_policy
    return f"Pod status: {phase}; Pod restart policy: {policy}; Ray container terminated status: {ended(pod) or 'nil'}"


def ended(pod: Pod) -> str:
    """Exit code and reason of the first container that has ended, or nothing."""
    state = next((s.state.terminated for s in pod.status.container_statuses if s.state.terminated), None)
    if state is None:
        return ""
    return f"exit code {state.exit_code}" + (f", {state.reason}" if state.reason else "")
