"""The claim of the rocksdb backend: where Ray's control store outlives its head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.api.quantity import InvalidQuantity, Quantity
from tpu_operator.resources.owned import owned
from tpu_operator.resources.pods.fault_tolerance import is_enabled, storage_claim, uses_rocksdb
from tpu_operator.resources.tree import mapping, text_list, texts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import GcsStorage, RayCluster
    from tpu_operator.config import OperatorConfig

KIND: Final = "PersistentVolumeClaim"
RETAIN: Final = "Retain"
_SIZE: Final = "1Gi"
_ACCESS_MODE: Final = "ReadWriteOnce"


def _storage(cluster: RayCluster) -> GcsStorage | None:
    options = cluster.spec.gcs_fault_tolerance_options
    return options.storage if options is not None else None


def needs_claim(cluster: RayCluster) -> bool:
    """Whether the head keeps its state on a volume."""
    return is_enabled(cluster) and uses_rocksdb(cluster)


def users_claim(cluster: RayCluster) -> str:
    """Claim that the user names; empty if the operator is to make one, or none is needed."""
    storage = _storage(cluster)
    return (storage.claim_name or "") if storage is not None and needs_claim(cluster) else ""


def claims(cluster: RayCluster, _: OperatorConfig) -> tuple[JsonObject, ...]:
    """The claim that the operator makes. One that is to be retained has no owner, only a note of the cluster it was made for."""
    if not needs_claim(cluster) or users_claim(cluster):
        return ()
    storage = _storage(cluster)
    manifest = owned(
        cluster,
        "v1",
        KIND,
        storage_claim(cluster),
        labels={names.CLUSTER: cluster.name},
        annotations={names.MADE_FOR: cluster.uid},
    )
    if storage is not None and storage.deletion_policy == RETAIN:
        mapping(manifest["metadata"]).pop("ownerReferences")
    return ({**manifest, "spec": _spec(storage)},)


def _spec(storage: GcsStorage | None) -> JsonObject:
    size = (storage and storage.size) or _SIZE
    spec: JsonObject = {
        "accessModes": text_list(list(storage.access_modes) if storage and storage.access_modes else [_ACCESS_MODE]),
        "resources": {"requests": {"storage": size}},
    }
    return spec | {"storageClassName": storage.storage_class_name} if storage and storage.storage_class_name else spec


def claim_names(cluster: RayCluster) -> tuple[str, ...]:
    """Name of a claim that the operator makes."""
    return (f"{cluster.name}-gcs-pvc",)


def may_be_used(claim: JsonObject, cluster: RayCluster) -> bool:
    """Whether a claim of the right name that is not ours may be used: one that a cluster of this name has left behind.

    It belongs to nobody and has the cluster's label. It is never taken over, or it would not be retained any more (quirk 6).
    """
    metadata = mapping(claim.get("metadata"))
    label = mapping(metadata.get("labels")).get(names.CLUSTER)
    return label == cluster.name and not metadata.get("ownerReferences") and not metadata.get("deletionTimestamp")


def drift(live: JsonObject, wanted: JsonObject) -> tuple[str, ...]:
    """Fields of a claim that are not as the spec says; Kubernetes does not let them be changed, or changes data with them."""
    return tuple(_drift(mapping(live.get("spec")), mapping(wanted.get("spec"))))


def _drift(live: JsonObject, wanted: JsonObject) -> Iterator[str]:
    if _bytes(_size(live)) != _bytes(_size(wanted)):
        yield f"size is {_size(live)}, not {_size(wanted)}"
    if sorted(texts(live.get("accessModes"))) != sorted(texts(wanted.get("accessModes"))):
        yield f"accessModes are {texts(live.get('accessModes'))}, not {texts(wanted.get('accessModes'))}"
    asked = wanted.get("storageClassName")
    if asked and live.get("storageClassName") != asked:
        yield f"storageClassName is {live.get('storageClassName')}, not {asked}"


def _size(spec: JsonObject) -> str:
    return str(mapping(mapping(spec.get("resources")).get("requests")).get("storage"))


def _bytes(size: str) -> Decimal | str:
    try:
        return Quantity.parse(size).amount
    except InvalidQuantity:
        return size


def as_it_is(wanted: JsonObject, live: JsonObject) -> JsonObject:
    """`wanted` with the spec that the claim has: what is left to change is its owner."""
    have = mapping(live.get("spec"))
    spec: JsonObject = {field: have[field] for field in mapping(wanted.get("spec")) if field in have}
    return {**wanted, "spec": spec}
