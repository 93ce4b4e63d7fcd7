"""Upgrade strategy Recreate: whether the running pods are made from the spec as it is now."""

from __future__ import annotations

import hashlib
from copy import copy
from typing import TYPE_CHECKING

import msgspec

from tpu_operator.api import names
from tpu_operator.planning.plan import Part, Reason, StampPod
from tpu_operator.resources.pods.metadata import STAMP

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject, JsonValue
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.planning.pod import Pod

_OF_NO_POD = (
    "upgradeStrategy",
    "suspend",
    "managedBy",
    "networkPolicy",
    "headServiceAnnotations",
)
_OF_SCALE = ("replicas", "minReplicas", "maxReplicas", "scaleStrategy", "suspend", "idleTimeoutSeconds", "priority")
_HEAD_OF_NO_POD = ("serviceType", "headService", "enableIngress", "ingressOptions")


def recreate_hash(cluster: RayCluster) -> str:
    """32 hex digits over everything in the spec that a running pod is made from.

    KubeRay's rule leaves out scale, tolerations and scheduling gates, and counts all else; ours also leaves out what no
    pod is made from: services, ingress, network policy, suspend (quirks 24 and 38).
    """
    spec = {k: v for k, v in _mapping(cluster.raw.get("spec")).items() if k not in _OF_NO_POD}
    head = {k: v for k, v in _mapping(spec.get("headGroupSpec")).items() if k not in _HEAD_OF_NO_POD}
    spec["headGroupSpec"] = _group(head)
    groups = spec.get("workerGroupSpecs")
    spec["workerGroupSpecs"] = [_group(_mapping(g)) for g in groups] if isinstance(groups, list) else []
    return hashlib.blake2b(msgspec.json.encode(spec, order="deterministic"), digest_size=16).hexdigest()


def _group(group: JsonObject) -> JsonObject:
    kept = {k: v for k, v in group.items() if k not in _OF_SCALE}
    kept["rayStartParams"] = group.get("rayStartParams") or {}
    template = copy(_mapping(group.get("template")))
    pod = {k: v for k, v in _mapping(template.get("spec")).items() if k not in ("tolerations", "schedulingGates")}
    template["spec"] = pod
    kept["template"] = template
    return kept


def _mapping(value: JsonValue | None) -> JsonObject:
    return dict(value) if isinstance(value, dict) else {}


def outdated(cluster: RayCluster, head: Pod | None) -> bool:
    """All pods must go: strategy Recreate, and the head was made by this version from another spec."""
    if not _recreates(cluster) or head is None or head.metadata.annotations is None:
        return False
    annotations = head.metadata.annotations
    return annotations.kuberay_version == STAMP and annotations.recreate_hash not in (None, "", recreate_hash(cluster))


def restamp(cluster: RayCluster, head: Pod | None) -> Part:
    """A head made by another operator or version only gets our hash, it is not recreated (UP-03)."""
    if not _recreates(cluster) or head is None or not head.uid or head.terminating:
        return Part()
    annotations = head.metadata.annotations
    if annotations is None or annotations.kuberay_version in (None, "", STAMP):
        return Part()
    stamp = {names.RECREATE_HASH: recreate_hash(cluster), names.KUBERAY_VERSION: STAMP}
    return Part(actions=(StampPod(head, stamp, Reason.RESTAMP),))


def _recreates(cluster: RayCluster) -> bool:
    strategy = cluster.spec.upgrade_strategy
    return strategy is not None and strategy.type == "Recreate"
