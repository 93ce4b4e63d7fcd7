"""What the autoscaler may do: look at its cluster and pods, and change the numbers of replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.owned import common_labels, owned
from tpu_operator.resources.pods.autoscaler import own_service_account, service_account

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
RBAC_VERSION: Final = f"{RBAC_GROUP}/v1"


def rbac_name(cluster: RayCluster) -> str:
    """Name of service account, role and binding; different clusters never share one (quirk 8)."""
    return names.child_name(cluster.name)


def autoscaler_rules() -> list[JsonObject]:
    """What Ray's autoscaler asks of the API server (checked against Ray 2.9 to 2.60); the operator must hold it too."""
    return [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch"]},
        {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]},
        {"apiGroups": [names.GROUP], "resources": [names.PLURAL], "verbs": ["get", "patch"]},
    ]


def service_accounts(cluster: RayCluster, _: OperatorConfig) -> tuple[JsonObject, ...]:
    """The account of the head, unless the user names one, which then is the user's to make."""
    if not cluster.spec.autoscaling or own_service_account(cluster):
        return ()
    return (owned(cluster, "v1", "ServiceAccount", rbac_name(cluster), labels=common_labels(cluster)),)


def roles(cluster: RayCluster, _: OperatorConfig) -> tuple[JsonObject, ...]:
    """The role of the autoscaler."""
    if not cluster.spec.autoscaling:
        return ()
    role = owned(cluster, RBAC_VERSION, "Role", rbac_name(cluster), labels=common_labels(cluster))
    return ({**role, "rules": [*autoscaler_rules()]},)


def role_bindings(cluster: RayCluster, _: OperatorConfig) -> tuple[JsonObject, ...]:
    """Gives the role to the head's account, whoever made that."""
    if not cluster.spec.autoscaling:
        return ()
    binding = owned(cluster, RBAC_VERSION, "RoleBinding", rbac_name(cluster), labels=common_labels(cluster))
    account: JsonObject = {
        "kind": "ServiceAccount",
        "name": service_account(cluster),
        "namespace": cluster.namespace,
    }
    role: JsonObject = {"apiGroup": RBAC_GROUP, "kind": "Role", "name": rbac_name(cluster)}
    return ({**binding, "subjects": [account], "roleRef": role},)
