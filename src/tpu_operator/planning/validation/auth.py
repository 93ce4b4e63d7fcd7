"""Rules of token authentication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.planning.validation.mistake import spec_mistake
from tpu_operator.planning.validation.ray_version import version_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.planning.plan import Blocker

OPTIONS: Final = "spec.authOptions"
TOKEN_SINCE: Final = (2, 52, 0)
K8S_TOKEN_SINCE: Final = (2, 55, 0)


def token_version(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 16: older Ray does not know the token and would let everybody in, or nobody."""
    options = cluster.spec.auth_options
    if options is None or options.mode != "token":
        return
    if problem := version_problem(cluster.spec.ray_version, TOKEN_SINCE):
        message = f"mode token needs Ray 2.52.0 or newer, but spec.rayVersion {problem}"
        fix = "set spec.rayVersion to 2.52.0 or newer (and use such an image), or mode to disabled"
        yield spec_mistake(f"{OPTIONS}.mode", message, fix)
    elif options.enable_k8s_token_auth and (problem := version_problem(cluster.spec.ray_version, K8S_TOKEN_SINCE)):
        message = f"needs Ray 2.55.0 or newer, but spec.rayVersion {problem}"
        fix = "set spec.rayVersion to 2.55.0 or newer (and use such an image), or remove the field"
        yield spec_mistake(f"{OPTIONS}.enableK8sTokenAuth", message, fix)


def kubernetes_token(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rules 16 (end) and 17: Kubernetes' tokens are a kind of token auth, and need no Secret."""
    options = cluster.spec.auth_options
    if options is None or not options.enable_k8s_token_auth:
        return
    if options.mode != "token":
        message = f"needs mode token, but mode is {options.mode or 'not set'}"
        yield spec_mistake(
            f"{OPTIONS}.enableK8sTokenAuth", message, f"set {OPTIONS}.mode to token, or remove the field"
        )
    elif options.secret_name:
        message = "is not used with enableK8sTokenAuth"
        yield spec_mistake(f"{OPTIONS}.secretName", message, "remove secretName, or remove enableK8sTokenAuth")
