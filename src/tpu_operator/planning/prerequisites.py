"""What must be there before pods are created: the finalizer, the user's service account, the claim, the token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.planning.children import LOOK_AGAIN, child_key
from tpu_operator.planning.deletion import plan_finalizer
from tpu_operator.planning.plan import Notice, Part, Waiting
from tpu_operator.resources import gcs_storage
from tpu_operator.resources.owned import owner_uid
from tpu_operator.resources.pods.autoscaler import own_service_account
from tpu_operator.resources.registry import ChildKey
from tpu_operator.resources.token_secret import has_token, token_secrets

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.planning.snapshot import Snapshot


def prerequisites(snapshot: Snapshot) -> Part:
    """If anything is waited for in this part, no pod is created in this pass."""
    return plan_finalizer(snapshot).plus(_account(snapshot)).plus(_claim(snapshot)).plus(_token(snapshot))


def _account(snapshot: Snapshot) -> Part:
    """The autoscaler's role is bound to the account that the user names, which is never made in the user's place (AD-07)."""
    cluster = snapshot.cluster
    name = own_service_account(cluster)
    if not cluster.spec.autoscaling or ChildKey("ServiceAccount", name) not in snapshot.observed.absent:
        return Part()
    text = (
        f"Failed to reconcile RayCluster {cluster.namespace}/{cluster.name}: the template of the head names the "
        f"ServiceAccount {name}, which is not found; create it, or remove serviceAccountName to have one made"
    )
    notice = Notice(f"account/{name}", "AutoscalerServiceAccountNotFound", text, action="Validate")
    return Part(notices=(notice,), waiting=(Waiting("pods", f"there is no ServiceAccount {name}", LOOK_AGAIN),))


def _claim(snapshot: Snapshot) -> Part:
    """The head must not write into a claim of somebody else."""
    cluster, observed = snapshot.cluster, snapshot.observed
    if name := gcs_storage.users_claim(cluster):
        if ChildKey(gcs_storage.KIND, name) not in observed.absent:
            return Part()
        text = f"PVC {name}, named in gcsFaultToleranceOptions.storage.claimName, is not found; create it"
        return Part(notices=(Notice(f"claim/{name}", "FailedToCreatePVC", text, action="Validate"),))
    for manifest in gcs_storage.claims(cluster, snapshot.config):
        key = child_key(manifest)
        foreign = observed.foreign_children.get(key)
        usable = foreign is not None and gcs_storage.may_be_used(foreign, cluster)
        if key not in observed.children and not usable:
            return Part(waiting=(Waiting("pods", f"PVC {key.name} is not there, or not theirs", LOOK_AGAIN),))
    return Part()


def _token(snapshot: Snapshot) -> Part:
    """Nodes must all have the same token: not that of a cluster of this name that is just going."""
    for manifest in token_secrets(snapshot.cluster, snapshot.config):
        key = child_key(manifest)
        secret = snapshot.observed.foreign_children.get(key)
        if secret is not None and not _usable(secret):
            why = f"Secret {key.name} belongs to somebody else, or lacks the token"
            return Part(waiting=(Waiting("pods", why, LOOK_AGAIN),))
    return Part()


def _usable(secret: JsonObject) -> bool:
    """A Secret that somebody has put there by hand is taken, as in KubeRay."""
    return not owner_uid(secret.get("metadata")) and has_token(secret)
