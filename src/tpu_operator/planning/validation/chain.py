"""The chain of checks. A new rule is one function and one line here; condition, Event and webhook follow by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api.problem import MISSING
from tpu_operator.planning.plan import Blocker
from tpu_operator.planning.validation import (
    auth,
    autoscaling,
    batch_scheduler,
    fault_tolerance,
    history_server,
    lifecycle,
    metadata,
    network_policy,
    node_groups,
    tls,
    tpu,
    worker_groups,
)
from tpu_operator.planning.validation.mistake import SPEC_REASON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.planning.plan import Notice
    from tpu_operator.planning.validation.mistake import Check

CHECKS: Final[tuple[Check, ...]] = (
    metadata.cluster_name,
    node_groups.containers,
    node_groups.ray_resources,
    node_groups.ray_labels,
    worker_groups.group_names_unique,
    worker_groups.group_names_not_reserved,
    worker_groups.group_names_usable,
    worker_groups.replica_bounds,
    tpu.slices_fit,
    tpu.chip_requests_equal_limits,
    tpu.hosts_can_be_named,
    autoscaling.group_idle_timeout,
    autoscaling.group_priority,
    fault_tolerance.annotation_and_options,
    fault_tolerance.redis_without_fault_tolerance,
    fault_tolerance.options_told_twice,
    fault_tolerance.backend,
    fault_tolerance.redis_username,
    lifecycle.suspended_group_gate,
    autoscaling.v2_without_autoscaling,
    autoscaling.suspended_groups,
    autoscaling.version_told_twice,
    autoscaling.restart_policy_v2,
    autoscaling.idle_timeout,
    autoscaling.start_command,
    history_server.history_server_gate,
    history_server.collector,
    history_server.collector_name_free,
    auth.token_version,
    auth.kubernetes_token,
    network_policy.network_policy_gate,
    network_policy.policy_rules_match_mode,
    network_policy.policy_groups,
    tls.tls_gate,
    tls.tls_collisions,
    lifecycle.upgrade_strategy,
    batch_scheduler.network_tier,
)


def validate(cluster: RayCluster, config: OperatorConfig) -> tuple[Blocker, ...]:
    """All mistakes of `cluster`, in the order of the chain; values of a wrong type come first.

    KubeRay stops at the first. A rule about a field whose type is wrong already is left out: it would only
    judge the default that stands in for the unreadable value.
    """
    unreadable = tuple(_wrong_type(cluster))
    fields = tuple(blocker.field for blocker in unreadable)
    rest = (blocker for check in CHECKS for blocker in check(cluster, config))
    return unreadable + tuple(blocker for blocker in rest if not _covered(blocker.field, fields))


def _wrong_type(cluster: RayCluster) -> Iterator[Blocker]:
    for problem in cluster.problems:
        message = "is missing" if problem.got == MISSING else f"is {problem.got}, expected {problem.expected}"
        yield Blocker(SPEC_REASON, problem.field, message, problem.fix)


def _covered(field: str, unreadable: tuple[str, ...]) -> bool:
    return any(field == path or field.startswith((f"{path}.", f"{path}[")) for path in unreadable)


def warnings(cluster: RayCluster, config: OperatorConfig) -> tuple[Notice, ...]:
    """What will work, but perhaps not as meant."""
    checks = (autoscaling.restart_policy_v1, tpu.doubts, batch_scheduler.kai_queue)
    return tuple(notice for check in checks for notice in check(cluster, config))
