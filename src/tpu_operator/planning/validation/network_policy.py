"""Rules of the network policy options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tpu_operator.api.labels_syntax import dns1123_label_problem
from tpu_operator.config import Gate
from tpu_operator.planning.validation.mistake import gate_off, group_path, spec_mistake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.network_policy import NetworkPolicyRules
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.planning.plan import Blocker

POLICY: Final = "spec.networkPolicy"


class _Side(NamedTuple):
    path: str
    rules: NetworkPolicyRules


def network_policy_gate(cluster: RayCluster, config: OperatorConfig) -> Iterator[Blocker]:
    """Rule 18."""
    if cluster.spec.network_policy is not None and not config.gate(Gate.NETWORK_POLICY):
        yield gate_off(POLICY, Gate.NETWORK_POLICY)


def policy_rules_match_mode(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 19: exceptions are possible only to what the mode denies."""
    policy = cluster.spec.network_policy
    if policy is None:
        return
    for path, rules in _sides(cluster):
        for mode, field, given in (
            ("DenyAllEgress", "ingressRules", rules.ingress_rules),
            ("DenyAllIngress", "egressRules", rules.egress_rules),
        ):
            if policy.mode == mode and given:
                fix = f"remove {field}, or set {POLICY}.mode to DenyAll"
                yield spec_mistake(f"{path}.{field}", f"has no effect, because mode is {mode}", fix)


def _sides(cluster: RayCluster) -> Iterator[_Side]:
    policy = cluster.spec.network_policy
    if policy is None:
        return
    if policy.head is not None:
        yield _Side(f"{POLICY}.head", policy.head)
    if policy.worker is not None:
        yield _Side(f"{POLICY}.worker", policy.worker)
    for index, group in enumerate(policy.worker_groups):
        yield _Side(f"{POLICY}.workerGroups[{index}]", group)


def policy_groups(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 19: each policy is named after its group, and the group must be there."""
    policy = cluster.spec.network_policy
    if policy is None:
        return
    groups = [group.group_name for group in cluster.spec.worker_group_specs]
    for index, name in enumerate(groups):
        if problem := dns1123_label_problem(name):
            message = f"{name!r} cannot be part of a NetworkPolicy's name: {problem}"
            fix = "use at most 63 lower-case letters, digits and dashes, with a letter or digit first and last"
            yield spec_mistake(f"{group_path(index)}.groupName", message, fix)
    for index, entry in enumerate(policy.worker_groups):
        if entry.group_name not in groups:
            message = f"{entry.group_name!r} is no worker group of this cluster"
            fix = f"use one of {', '.join(groups)}" if groups else "remove the entry"
            yield spec_mistake(f"{POLICY}.workerGroups[{index}].groupName", message, fix)
