"""Network policies of a cluster: one for the head, one for each worker group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.config import Gate
from tpu_operator.resources.addresses import port_number
from tpu_operator.resources.owned import common_labels, owned
from tpu_operator.resources.pods.ray_start import head_params
from tpu_operator.resources.tree import listed, own_copy, text_list

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import NetworkPolicyOptions, NetworkPolicyRules, RayCluster
    from tpu_operator.config import OperatorConfig

API_VERSION: Final = "networking.k8s.io/v1"
KIND: Final = "NetworkPolicy"
_INGRESS: Final = "Ingress"
_EGRESS: Final = "Egress"
_TYPES: Final = {"DenyAllIngress": [_INGRESS], "DenyAllEgress": [_EGRESS]}
_K8S_JOB_MODE: Final = "K8sJobMode"
_RAY_JOB: Final = "RayJob"
_DNS_PORT: Final = 53


def head_policy_name(cluster: RayCluster) -> str:
    """Name of the head's policy."""
    return f"{cluster.name}-head"


def group_policy_name(cluster: RayCluster, group: str) -> str:
    """Name of a group's policy."""
    return f"{cluster.name}-workers-{group}"


def network_policies(cluster: RayCluster, config: OperatorConfig) -> tuple[JsonObject, ...]:
    """The policies, if the user wants them: the cluster's pods talk among each other, all else only by exception."""
    options = cluster.spec.network_policy
    if options is None or not config.gate(Gate.NETWORK_POLICY):
        return ()
    head = _policy(cluster, head_policy_name(cluster), names.HEAD_GROUP)
    policies = [{**head, "spec": _spec(cluster, config, options, {names.NODE_TYPE: names.HEAD}, options.head)}]
    by_group = {entry.group_name: entry for entry in options.worker_groups}
    for group in (g.group_name for g in cluster.spec.worker_group_specs):
        selected: JsonObject = {names.NODE_TYPE: names.WORKER, names.NODE_GROUP: group}
        spec = _spec(cluster, config, options, selected, by_group.get(group, options.worker))
        policies.append({**_policy(cluster, group_policy_name(cluster, group), group), "spec": spec})
    return tuple(policies)


def network_policy_names(cluster: RayCluster) -> tuple[str, ...]:
    """Names of the policies of the head and of the groups as they are."""
    groups = (group_policy_name(cluster, g.group_name) for g in cluster.spec.worker_group_specs)
    return (head_policy_name(cluster), *groups)


def is_own_policy(labels: JsonObject) -> bool:
    """Whether these are labels of a policy that an operator made, perhaps for a group that is no more."""
    return labels.get(names.CREATED_BY) == names.CREATED_BY_VALUE and names.NODE_GROUP in labels


def _policy(cluster: RayCluster, name: str, group: str) -> JsonObject:
    labels: JsonObject = {**common_labels(cluster), names.NODE_GROUP: group}
    return owned(cluster, API_VERSION, KIND, name, labels=labels)


def _spec(
    cluster: RayCluster,
    config: OperatorConfig,
    options: NetworkPolicyOptions,
    selected: JsonObject,
    rules: NetworkPolicyRules | None,
) -> JsonObject:
    types = _TYPES.get(options.mode or "", [_INGRESS, _EGRESS])
    own: JsonObject = {"podSelector": {"matchLabels": {names.CLUSTER: cluster.name}}}
    labels: JsonObject = {names.CLUSTER: cluster.name, **selected}
    spec: JsonObject = {"podSelector": {"matchLabels": labels}, "policyTypes": text_list(types)}
    if _INGRESS in types:
        given = [own_copy(rule) for rule in rules.ingress_rules] if rules else []
        submitter = _job_submitter(cluster) if selected[names.NODE_TYPE] == names.HEAD else []
        spec["ingress"] = listed([{"from": [own]}, *submitter, *given])
    if _EGRESS in types:
        given = [own_copy(rule) for rule in rules.egress_rules] if rules else []
        spec["egress"] = listed([{"to": [own_copy(own)]}, *_dns(config), *given])
    return spec


def _dns(config: OperatorConfig) -> list[JsonObject]:
    """Names must resolve, or no worker finds its head (quirk 65). Where the resolver runs, not even the API server knows."""
    if not config.network_policy_dns:
        return []
    return [{"ports": listed([{"protocol": protocol, "port": _DNS_PORT} for protocol in ("UDP", "TCP")])}]


def _job_submitter(cluster: RayCluster) -> list[JsonObject]:
    """The pod by which a RayJob submits its job to the dashboard."""
    owner = next((o for o in cluster.metadata.owner_references if o.get("controller")), {})
    ray_job = owner.get("kind") == _RAY_JOB and str(owner.get("apiVersion", "")).startswith(f"{names.GROUP}/")
    if not ray_job or cluster.labels.get(names.JOB_SUBMISSION_MODE) != _K8S_JOB_MODE:
        return []
    labels: JsonObject = {names.ORIGINATED_FROM_CR: owner.get("name"), names.ORIGINATED_FROM_CRD: _RAY_JOB}
    port = port_number(head_params(cluster), "dashboard-port", names.DASHBOARD_PORT)
    rule: JsonObject = {
        "from": [{"podSelector": {"matchLabels": labels}}],
        "ports": [{"protocol": "TCP", "port": port}],
    }
    return [rule]
