"""spec.networkPolicy: what traffic to and from the cluster's pods is denied, and the exceptions."""

from __future__ import annotations

from typing import Annotated, Literal

from tpu_operator.api.fields import ApiObject, Manifest, Text
from tpu_operator.api.schema import Core, Crd


class NetworkPolicyRules(ApiObject):
    """Exceptions to the mode, as in a NetworkPolicy of Kubernetes."""

    ingress_rules: Annotated[
        tuple[Annotated[Manifest, Core("api.networking.v1.NetworkPolicyIngressRule")], ...],
        Crd("Traffic that may come in."),
    ] = ()
    egress_rules: Annotated[
        tuple[Annotated[Manifest, Core("api.networking.v1.NetworkPolicyEgressRule")], ...],
        Crd("Traffic that may go out."),
    ] = ()


class GroupNetworkPolicyRules(NetworkPolicyRules):
    """Exceptions of one worker group, in the place of those of all workers."""

    group_name: Annotated[Text, Crd("Name of the worker group.", required=True)]


class NetworkPolicyOptions(ApiObject):
    """Mode and exceptions. The CRD fills in mode DenyAll."""

    mode: Annotated[
        Literal["DenyAll", "DenyAllIngress", "DenyAllEgress"] | None, Crd("What is denied.", default="DenyAll")
    ] = None
    head: Annotated[NetworkPolicyRules | None, Crd("Exceptions for the head.")] = None
    worker: Annotated[NetworkPolicyRules | None, Crd("Exceptions for the workers.")] = None
    worker_groups: Annotated[
        tuple[GroupNetworkPolicyRules, ...],
        Crd("Exceptions for single worker groups, instead of those for all workers.", keys=("groupName",)),
    ] = ()
