"""Rules of the Ray autoscaler: which version runs, and what goes only with which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.planning.plan import Notice
from tpu_operator.planning.validation.containers import (
    AUTOSCALER_V2_ENV,
    container_env,
    env_entry,
    env_path,
    ray_container_path,
    switched_on,
)
from tpu_operator.planning.validation.mistake import AUTOSCALER, HEAD, SPEC_REASON, group_path, spec_mistake
from tpu_operator.planning.validation.node_groups import node_groups
from tpu_operator.planning.validation.ray_version import version_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.planning.plan import Blocker

PRIORITY_SINCE = (2, 56, 0)
START_COMMAND_ENV = "KUBERAY_GEN_AUTOSCALER_START_CMD"
V2_ENV_PATH = env_path(ray_container_path(HEAD), AUTOSCALER_V2_ENV)


def _version(cluster: RayCluster) -> str | None:
    options = cluster.spec.autoscaler_options
    return options.version if options else None


def v2_selected(cluster: RayCluster) -> bool:
    """Autoscaler v2 by option, or by the environment of the head's Ray container."""
    entry = container_env(cluster.spec.head_group_spec.ray_container, AUTOSCALER_V2_ENV)
    return _version(cluster) == "v2" or switched_on(entry)


def group_idle_timeout(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 4h: not negative, and only autoscaler v2 reads it."""
    for index, group in enumerate(cluster.spec.worker_group_specs):
        field = f"{group_path(index)}.idleTimeoutSeconds"
        seconds = group.idle_timeout_seconds
        if seconds is None:
            continue
        if seconds < 0:
            yield spec_mistake(field, f"is {seconds}, expected 0 or more", "set it to 0 or more seconds")
        if not v2_selected(cluster):
            yield _needs_v2(field)


def group_priority(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 4i: a priority other than 0 needs Ray 2.56 and autoscaler v2."""
    for index, group in enumerate(cluster.spec.worker_group_specs):
        if not group.priority:
            continue
        field = f"{group_path(index)}.priority"
        if problem := version_problem(cluster.spec.ray_version, PRIORITY_SINCE):
            fix = "set spec.rayVersion to 2.56.0 or newer (and use such an image), or remove the priority"
            yield spec_mistake(field, f"needs Ray 2.56.0 or newer, but spec.rayVersion {problem}", fix)
        if not v2_selected(cluster):
            yield _needs_v2(field)


def _needs_v2(field: str) -> Blocker:
    message = "is understood by autoscaler v2 only, which is not selected"
    return spec_mistake(field, message, f"set {AUTOSCALER}.version to v2, or remove the field")


def v2_without_autoscaling(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 11: the head waits for an autoscaler that nobody starts."""
    if cluster.spec.autoscaling:
        return
    if switched_on(container_env(cluster.spec.head_group_spec.ray_container, AUTOSCALER_V2_ENV)):
        message = "turns autoscaler v2 on, while spec.enableInTreeAutoscaling is not true"
        yield spec_mistake(V2_ENV_PATH, message, "set spec.enableInTreeAutoscaling to true, or remove the variable")


def version_told_twice(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 12b."""
    entry = container_env(cluster.spec.head_group_spec.ray_container, AUTOSCALER_V2_ENV)
    if cluster.spec.autoscaling and _version(cluster) and entry is not None:
        message = f"is set together with {AUTOSCALER}.version"
        yield spec_mistake(V2_ENV_PATH, message, f"keep {AUTOSCALER}.version and remove the variable")


def suspended_groups(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 12a: the autoscaler would start the group again and again."""
    if not cluster.spec.autoscaling:
        return
    for index, group in enumerate(cluster.spec.worker_group_specs):
        if group.suspend:
            message = "cannot be true while spec.enableInTreeAutoscaling is true"
            fix = "remove suspend (and let the group scale to minReplicas 0), or turn autoscaling off"
            yield spec_mistake(f"{group_path(index)}.suspend", message, fix)


def restart_policy_v2(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rules 12c and 12d: autoscaler v2 takes a restarted Ray node for a lost one."""
    if not cluster.spec.autoscaling or _version(cluster) != "v2":
        return
    for path, group in node_groups(cluster):
        policy = group.pod_spec.get("restartPolicy")
        if policy not in (None, "", "Never"):
            message = f"is {policy}, but autoscaler v2 needs Never"
            yield spec_mistake(f"{path}.template.spec.restartPolicy", message, "set it to Never, or remove it")


def idle_timeout(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 13."""
    options = cluster.spec.autoscaler_options
    seconds = options.idle_timeout_seconds if options else None
    if seconds is not None and seconds < 0:
        field = f"{AUTOSCALER}.idleTimeoutSeconds"
        yield spec_mistake(field, f"is {seconds}, expected 0 or more", "set it to 0 or more seconds")


def start_command(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 14: the variable is the operator's own, by which a user's command can find the generated one."""
    options = cluster.spec.autoscaler_options
    if options and env_entry(options.env, START_COMMAND_ENV):
        fix = f"remove it; set {AUTOSCALER}.command and args to start the autoscaler your way"
        yield spec_mistake(env_path(AUTOSCALER, START_COMMAND_ENV), "is set by the operator itself", fix)


def restart_policy_v1(cluster: RayCluster, _: OperatorConfig) -> Iterator[Notice]:
    """Only a warning (9.3): under autoscaler v1 a restarted worker may be counted twice."""
    if not cluster.spec.autoscaling or _version(cluster) != "v1":
        return
    groups = [
        group.group_name
        for group in cluster.spec.worker_group_specs
        if group.pod_spec.get("restartPolicy") not in (None, "", "Never")
    ]
    if groups:
        message = (
            f"worker groups {', '.join(groups)}: restartPolicy should be Never or absent with autoscaler v1; "
            "a worker that restarts in place may not be seen as lost"
        )
        yield Notice(f"restart-policy-v1/{','.join(groups)}", SPEC_REASON, message, action="Validate")
