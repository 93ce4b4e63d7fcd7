"""What all children have in common: kind, name, place and owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.api import names

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster


def owned(  # noqa: PLR0913  (metadata has as many parts)
    cluster: RayCluster,
    api_version: str,
    kind: str,
    name: str,
    *,
    labels: JsonObject,
    annotations: JsonObject | None = None,
) -> JsonObject:
    """Begin a manifest whose object Kubernetes deletes with the cluster."""
    owner: JsonObject = dict(names.controller_reference(cluster.name, cluster.uid))
    metadata: JsonObject = {
        "name": name,
        "namespace": cluster.namespace,
        "labels": labels,
        "ownerReferences": [owner],
    }
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
