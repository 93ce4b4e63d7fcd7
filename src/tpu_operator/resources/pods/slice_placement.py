"""Where the scheduler may put the hosts of a TPU slice: all on one node pool, and on none where another slice is.

Chips of one pool only are linked to each other, so a slice that is spread over two pools, or shares one, never starts.
The rules of GKE's TPU webhook for KubeRay are kept in meaning, without what it gets wrong: the user's affinity stays,
clusters of one name in two namespaces are told apart, and pods that are no TPU pods keep nobody away.

In Kubernetes anti-affinity works both ways: what a slice keeps away cannot come to its pool later either.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.pods import tpu_nodes
from tpu_operator.resources.tree import listed, mapping, objects
from tpu_operator.tpu import gke

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster, WorkerGroupSpec
    from tpu_operator.config import OperatorConfig

NO_KEY: Final = "none"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_HASH_BYTES: Final = 10


@dataclass(frozen=True, slots=True)
class SlicePlacement:
    """Rules for the slices of a group. `key` is the node label that tells pools apart, empty for no rule."""

    cluster_uid: str
    key: str

    @classmethod
    def of(
        cls, cluster: RayCluster, group: WorkerGroupSpec, spec: JsonObject, config: OperatorConfig
    ) -> SlicePlacement | None:
        """None for groups that are no slices of several TPU hosts: those may stand where they like."""
        if group.hosts == 1 or not tpu_nodes.pod_chips(spec):
            return None
        key = topology_key(group, config)
        return cls(cluster.uid, "" if key == NO_KEY else key)

    def slice_label(self, slice_name: str) -> str:
        """Value of the label by which the pods of this incarnation of this slice know each other.

        The name alone would not do: its five random characters come twice in a large fleet.
        """
        text = f"{self.cluster_uid}\0{slice_name}".encode()
        return hashlib.blake2b(text, digest_size=_HASH_BYTES).hexdigest()

    def given_to(self, spec: JsonObject, slice_name: str) -> JsonObject:
        """The spec with the slice's rules beside the user's own; nothing is added that is there already."""
        if not self.key:
            return spec
        label = self.slice_label(slice_name)
        affinity = mapping(spec.get("affinity"))
        together = _with_terms(affinity.get("podAffinity"), (self._own(label),))
        apart = _with_terms(affinity.get("podAntiAffinity"), (self._other_slices(label), self._other_tpu_pods()))
        return {**spec, "affinity": {**affinity, "podAffinity": together, "podAntiAffinity": apart}}

    def _own(self, label: str) -> JsonObject:
        return {"labelSelector": {"matchLabels": {names.SLICE: label}}, "topologyKey": self.key}

    def _other_slices(self, label: str) -> JsonObject:
        """Slices of any cluster of this operator, in all namespaces."""
        return self._everywhere(
            {"key": names.SLICE, "operator": "Exists"}, {"key": names.SLICE, "operator": "NotIn", "values": [label]}
        )

    def _other_tpu_pods(self) -> JsonObject:
        """Single hosts, and slices whose identity GKE's webhook has given. Where one is, no whole slice has room."""
        return self._everywhere(
            {"key": names.LEGACY_REPLICA_INDEX, "operator": "Exists"},
            {"key": names.SLICE, "operator": "DoesNotExist"},
        )

    def _everywhere(self, *expressions: JsonObject) -> JsonObject:
        selector: JsonObject = {"matchExpressions": listed(list(expressions))}
        return {"labelSelector": selector, "namespaceSelector": {}, "topologyKey": self.key}


def topology_key(group: WorkerGroupSpec, config: OperatorConfig) -> str:
    """The group's own key, else the administrator's.

    Slices that are a part of a pool, or several pools, are not told apart by pools: none, unless the group says which.
    """
    annotations = mapping(mapping(group.template.get("metadata")).get("annotations"))
    own = annotations.get(names.SLICE_TOPOLOGY_KEY)
    if isinstance(own, str):
        return own
    return NO_KEY if gke.SLICE_TOPOLOGY in annotations else config.slice_topology_key


def _with_terms(rules: object, terms: tuple[JsonObject, ...]) -> JsonObject:
    given = rules if isinstance(rules, dict) else {}
    required = objects(given.get(_REQUIRED))
    return {**given, _REQUIRED: listed([*required, *(term for term in terms if term not in required)])}
