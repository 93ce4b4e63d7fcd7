"""The Secret with the token by which the nodes of a cluster know each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.owned import owned
from tpu_operator.resources.pods.auth import SECRET_KEY, token_options, token_secret
from tpu_operator.resources.tree import mapping

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig

GENERATED: Final = "<32 random bytes, base64>"
"""Stands for the value. The executor puts one in its place as it creates the Secret; nothing else ever sees it."""

_KEPT_METADATA: Final = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "labels",
    "ownerReferences",
    "deletionTimestamp",
)


def token_secrets(cluster: RayCluster, _: OperatorConfig) -> tuple[JsonObject, ...]:
    """The Secret, unless tokens are off, are Kubernetes' own, or are in a Secret of the user's."""
    options = token_options(cluster)
    if options is None or options.enable_k8s_token_auth or options.secret_name:
        return ()
    manifest = owned(cluster, "v1", "Secret", token_secret(cluster), labels={names.CLUSTER: cluster.name})
    return ({**manifest, "type": "Opaque", "stringData": {SECRET_KEY: GENERATED}},)


def token_secret_names(cluster: RayCluster) -> tuple[str, ...]:
    """Name of a generated Secret."""
    return (names.child_name(cluster.name),)


def has_token(secret: JsonObject) -> bool:
    """Whether a Secret, of which the values may have been taken out, has the key that pods refer to."""
    return SECRET_KEY in mapping(secret.get("data"))


def without_values(secret: JsonObject) -> JsonObject:
    """A Secret with its keys, but without their values, which kubectl writes into an annotation too."""
    keys: JsonObject = dict.fromkeys(mapping(secret.get("data")), "")
    metadata = {k: v for k, v in mapping(secret.get("metadata")).items() if k in _KEPT_METADATA}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": keys}
