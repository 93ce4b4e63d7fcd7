"""What a watch told about pods: who lives, since when, and who is on the way out. No I/O."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import msgspec

CLUSTER = "ray.io/cluster"
# Pods of the bare client carry the operator's labels under this prefix, so that no operator looks at them.
FLOOR_PREFIX = "bar.io/"
FLOOR_CLUSTER = FLOOR_PREFIX + "cluster"
NODE_TYPE = "ray.io/node-type"
SLICE = ("ray.io/worker-group-replica-name", "ray.io/worker-group-replica-index")


class Metadata(msgspec.Struct):
    """The part of an object's metadata that is looked at, under the names of the API."""

    name: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815
    labels: dict[str, str] = {}
    deletionTimestamp: str | None = None  # noqa: N815


class PartialObject(msgspec.Struct):
    """meta.k8s.io/v1 PartialObjectMetadata, or the Status of an error."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)


class PodEvent(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: PartialObject


class PartialList(msgspec.Struct):
    """meta.k8s.io/v1 PartialObjectMetadataList."""

    metadata: Metadata
    items: list[PartialObject] | None = None


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that is there and not being deleted."""

    name: str
    uid: str
    head: bool
    slice: str


@dataclass(slots=True)
class PodLedger:
    """State after all events so far. Times are of the caller's clock, in seconds."""

    live: defaultdict[str, dict[str, Pod]] = field(default_factory=lambda: defaultdict(dict))
    """Living pods by cluster and uid."""
    first: dict[str, float] = field(default_factory=dict)
    """When the first pod of a cluster was seen."""
    lost: dict[str, float] = field(default_factory=dict)
    """When a pod (uid) was first seen terminating or gone."""
    present: set[str] = field(default_factory=set)
    """Pods that are there, terminating ones too."""

    def see(self, event: PodEvent, at: float) -> None:
        """Take in one event of the watch."""
        meta = event.object.metadata
        if not meta.uid or event.type == "BOOKMARK":
            return
        cluster = meta.labels.get(CLUSTER) or meta.labels.get(FLOOR_CLUSTER) or ""
        if event.type == "DELETED":
            self.present.discard(meta.uid)
        else:
            self.present.add(meta.uid)
        if event.type == "DELETED" or meta.deletionTimestamp is not None:
            self.lost.setdefault(meta.uid, at)
            self.live[cluster].pop(meta.uid, None)
            return
        self.first.setdefault(cluster, at)
        if meta.uid not in self.live[cluster]:
            self.live[cluster][meta.uid] = _pod(meta)

    def count(self, cluster: str) -> int:
        return len(self.live[cluster])

    def workers(self, cluster: str) -> list[Pod]:
        return [pod for pod in self.live[cluster].values() if not pod.head]

    def slices(self, cluster: str) -> dict[str, list[Pod]]:
        """Return the living workers by slice, in the order in which the slices were seen first."""
        found: dict[str, list[Pod]] = {}
        for pod in self.workers(cluster):
            found.setdefault(pod.slice, []).append(pod)
        return found

    def whole(self, cluster: str, hosts: int, broken: Collection[str] = frozenset()) -> int:
        """Count the slices of exactly `hosts` living pods, none of them of `broken` (uids)."""
        return sum(
            len(pods) == hosts and not any(pod.uid in broken for pod in pods) for pods in self.slices(cluster).values()
        )

    def all_lost(self, uids: Iterable[str]) -> bool:
        return all(uid in self.lost for uid in uids)


def _pod(meta: Metadata) -> Pod:
    group = next((meta.labels[key] for key in SLICE if key in meta.labels), meta.name)
    return Pod(meta.name, meta.uid, meta.labels.get(NODE_TYPE) == "head", group)
