"""The informers of a process: pods in a small view, the other children as whole documents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from tpu_operator.api import names
from tpu_operator.controller.clusters import Key
from tpu_operator.controller.lookups import Lookups
from tpu_operator.controller.resources import resource_of
from tpu_operator.kube.consistency import OwnWrites
from tpu_operator.kube.informer import Informer
from tpu_operator.kube.resource import PODS
from tpu_operator.planning.pod import OwnerReference, Pod
from tpu_operator.resources.owned import owner_uid
from tpu_operator.resources.registry import ChildKey, ChildKind, child_kinds, possible_children

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.kube.client import Client

POD_SELECTOR: Final = f"{names.NODE_TYPE} in ({names.HEAD}, {names.WORKER}),{names.CLUSTER}"
"""Only Ray's pods are watched: memory does not grow with the rest of the Kubernetes cluster (OP-02)."""

Wake = Callable[[Key], None]


class ChildAnnotations(msgspec.Struct, frozen=True):
    """The annotation that the cache needs."""

    made_for: str | None = msgspec.field(name=names.MADE_FOR, default=None)


class ChildMeta(msgspec.Struct, frozen=True, rename="camel"):
    """`metadata` of a child, as far as the cache needs it."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] | None = None
    annotations: ChildAnnotations | None = None
    owner_references: tuple[OwnerReference, ...] = ()


@dataclass(frozen=True, slots=True)
class Child:
    """A child other than a pod: the document, and the part of its metadata that the cache needs."""

    metadata: ChildMeta
    raw: JsonObject

    @property
    def owner(self) -> OwnerReference | None:
        """Its controller; of what is to outlive its cluster and so has none, the cluster that it was made for."""
        controller = next((o for o in self.metadata.owner_references if o.controller), None)
        made_for = self.metadata.annotations and self.metadata.annotations.made_for
        if controller is not None or not made_for:
            return controller
        return OwnerReference(
            made_for, names.KIND, (self.metadata.labels or {}).get(names.CLUSTER, ""), controller=True
        )

    @property
    def version(self) -> int:
        return int(self.metadata.resource_version or 0)


@dataclass(frozen=True, slots=True)
class LostCreate:
    """A create of which nobody knows what became of it: the pod as the planner sees it, and what was sent for which spec."""

    pod: Pod
    manifest: JsonObject
    generation: int


def decode_child(kind: ChildKind) -> Callable[[bytes], Child]:
    """Decoder of a kind; items of a list come without kind and apiVersion, so these are put back."""

    def decode(data: bytes | msgspec.Raw) -> Child:
        raw: JsonObject = msgspec.json.decode(data)
        return child_of({**raw, "kind": kind.kind, "apiVersion": kind.api_version})

    return decode


def child_of(raw: JsonObject) -> Child:
    """The cache entry for a document."""
    return Child(msgspec.convert(raw["metadata"], ChildMeta), raw)


@dataclass(slots=True)
class Caches:
    """What is known of the children of all RayClusters, with the own writes that the watches have not shown yet."""

    client: Client
    config: OperatorConfig
    wake: Wake
    pods: Informer[Pod] = field(init=False)
    pod_writes: OwnWrites[Pod, LostCreate] = field(init=False)
    kinds: Mapping[str, tuple[Informer[Child], ...]] = field(init=False)
    lookups: Lookups = field(init=False)
    served: frozenset[str] | None = field(init=False, default=None)
    decode_pod: Callable[[bytes | msgspec.Raw], Pod] = field(init=False, default=msgspec.json.Decoder(Pod).decode)
    _applied: dict[str, dict[str, Child]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.pods = Informer(
            self.client,
            PODS,
            self.decode_pod,
            namespaces=self.config.namespaces,
            label_selector=POD_SELECTOR,
            indexes={"owner": _pod_owner, "cluster": _pod_cluster},
            on_change=self._pod_changed,
            on_relist=self._pods_relisted,
        )
        self.pod_writes = OwnWrites(self.pods)
        self.lookups = Lookups(self.client)
        self.serve(None)

    def serve(self, served: frozenset[str] | None) -> None:
        """Choose the kinds to watch, before `run`: those of which the API is served."""
        self.served = served
        self.kinds = {kind.kind: tuple(self._informers(kind)) for kind in child_kinds(self.config, served)}

    def _informers(self, kind: ChildKind) -> Iterable[Informer[Child]]:
        for selector in kind.selectors:
            yield Informer(
                self.client,
                resource_of(kind),
                decode_child(kind),
                namespaces=self.config.namespaces,
                label_selector=selector,
                indexes={"owner": _child_owner},
                on_change=self._child_changed,
            )

    @property
    def informers(self) -> tuple[Informer[Pod] | Informer[Child], ...]:
        return (self.pods, *(i for informers in self.kinds.values() for i in informers))

    async def run(self) -> None:
        """Keep all caches up to date until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self.informers:
                tasks.create_task(informer.run())

    async def filled(self, namespace: str | None) -> None:
        """Wait until everything of a namespace that is served (None: of all) has been listed once."""
        for informer in self.informers:
            await informer.listed(namespace)

    def children_of(self, cluster: RayCluster) -> tuple[dict[ChildKey, JsonObject], dict[ChildKey, JsonObject]]:
        """Own children, and objects of other owners under names that we would use."""
        own: dict[ChildKey, JsonObject] = {}
        foreign: dict[ChildKey, JsonObject] = {}
        for child in self._known(cluster):
            key = ChildKey(str(child.raw["kind"]), child.metadata.name)
            mine = child.owner is not None and child.owner.uid == cluster.uid
            (own if mine else foreign)[key] = child.raw
        for key, raw in self.lookups.found(cluster.uid).items():
            (own if owner_uid(raw.get("metadata")) == cluster.uid else foreign)[key] = raw
        return own, foreign

    def _known(self, cluster: RayCluster) -> Iterable[Child]:
        wanted = possible_children(cluster, self.config, self.served)
        seen: dict[str, Child] = {}
        for kind, informers in self.kinds.items():
            for informer in informers:
                for child in informer.by_index("owner", cluster.uid):
                    seen[child.metadata.uid] = child
            for key in wanted:
                if key.kind != kind:
                    continue
                for informer in informers:
                    if (found := informer.find(cluster.namespace, key.name)) is not None:
                        seen[found.metadata.uid] = found
        for uid, applied in tuple(self._applied.get(cluster.uid, {}).items()):
            if not self._lay_over(uid, applied, seen):
                del self._applied[cluster.uid][uid]
        return seen.values()

    def _lay_over(self, uid: str, applied: Child, seen: dict[str, Child]) -> bool:
        """The newer of what we wrote and what the watch has shown; a deletion that it has shown ends both."""
        shown = seen.get(uid)
        if (shown is not None and shown.version >= applied.version) or any(
            i.recently_deleted(uid) for i in self.kinds[str(applied.raw["kind"])]
        ):
            return False
        seen[uid] = applied
        return True

    def applied(self, raw: JsonObject) -> None:
        """Answer of an own write to a child."""
        child = child_of(raw)
        if child.owner is not None:
            self._applied.setdefault(child.owner.uid, {})[child.metadata.uid] = child

    def forget(self, uid: str) -> None:
        """The RayCluster is gone: nothing about it stays in memory (OC-25)."""
        self.pod_writes.forget(uid)
        self._applied.pop(uid, None)
        self.lookups.forget(uid)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        known = self.pod_writes.awaited(new.uid) if old is None and new is not None else old
        self.pod_writes.observed(old, new)
        if known is not None and new is not None and new.same_as(known):
            return
        pod = new or old
        if pod is not None and (owner := pod.controller()) is not None and owner.kind == names.KIND:
            self.wake(Key(pod.metadata.namespace, owner.name))

    def _pods_relisted(self, namespace: str | None, version: int) -> None:
        self.pod_writes.relisted(namespace, version)

    def _child_changed(self, old: Child | None, new: Child | None) -> None:
        child = new or old
        if child is not None and child.owner is not None and child.owner.kind == names.KIND:
            self.wake(Key(child.metadata.namespace, child.owner.name))


def _pod_owner(pod: Pod) -> Iterable[str]:
    owner = pod.controller()
    return (owner.uid,) if owner is not None and owner.kind == names.KIND else ()


def _pod_cluster(pod: Pod) -> Iterable[str]:
    name = pod.labels.get(names.CLUSTER)
    return (f"{pod.metadata.namespace}/{name}",) if name else ()


def _child_owner(child: Child) -> Iterable[str]:
    return (child.owner.uid,) if child.owner is not None and child.owner.kind == names.KIND else ()
