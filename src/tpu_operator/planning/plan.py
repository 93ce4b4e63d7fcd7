"""The decision of a pass as data: what to do, why, what to tell, what stands in the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tpu_operator.api.json import JsonObject
    from tpu_operator.planning.memory import SliceKey
    from tpu_operator.planning.pod import Pod
    from tpu_operator.resources.registry import ChildKey


class Reason(StrEnum):
    """Why an action is taken. The value is what `tpu-operator plan`, logs and metrics show."""

    # creates
    HEAD_MISSING = "HeadMissing"
    SCALE_UP = "ScaleUp"
    TOP_UP = "TopUp"
    CHILD_WANTED = "ChildWanted"
    CHILD_CHANGED = "ChildChanged"
    # deletes of pods
    WORKERS_TO_DELETE = "WorkersToDelete"
    SCALE_DOWN = "ScaleDown"
    POD_FAILED = "PodFailed"
    RAY_CONTAINER_ENDED = "RayContainerEnded"
    HOST_TERMINATING = "HostTerminating"
    HOST_MISSING = "HostMissing"
    HOST_DUPLICATE = "HostDuplicate"
    INDEX_DUPLICATE = "IndexDuplicate"
    NUM_OF_HOSTS_CHANGED = "NumOfHostsChanged"
    CREATE_REFUSED = "CreateRefused"
    GROUP_REMOVED = "GroupRemoved"
    GROUP_SUSPENDED = "GroupSuspended"
    SUSPENDED = "Suspended"
    UPGRADE = "Upgrade"
    SURPLUS_HEAD = "SurplusHead"
    CLUSTER_DELETED = "ClusterDeleted"
    # other deletes
    CHILD_UNWANTED = "ChildUnwanted"
    # finalizers and stamps
    FINALIZER = "Finalizer"
    RESTAMP = "Restamp"


@dataclass(frozen=True, slots=True)
class CreateHead:
    """Create the head pod under `name`."""

    name: str
    reason: Reason = Reason.HEAD_MISSING


@dataclass(frozen=True, slots=True)
class HostName:
    """A pod to make: host index in its slice and pod name."""

    host: int
    pod: str


@dataclass(frozen=True, slots=True)
class CreateSlice:
    """Create the hosts of a slice that are not there: all of them, or the rest when topping up."""

    group: str
    index: int
    slice_name: str
    size: int
    hosts: tuple[HostName, ...]
    reason: Reason


@dataclass(frozen=True, slots=True)
class DeleteHead:
    """Delete a head pod; `detail` says what was seen."""

    pod: Pod
    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class DeleteSlice:
    """Delete all pods of a slice that are not terminating already."""

    group: str
    index: int | None
    slice_name: str
    pods: tuple[Pod, ...]
    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Apply:
    """Bring a child other than a pod to what `manifest` says, by server-side apply."""

    key: ChildKey
    manifest: JsonObject
    reason: Reason


@dataclass(frozen=True, slots=True)
class DeleteChild:
    """Delete a child whose feature was turned off."""

    key: ChildKey
    uid: str
    reason: Reason = Reason.CHILD_UNWANTED


@dataclass(frozen=True, slots=True)
class StampPod:
    """Set annotations of a pod: the only change ever made to one after its creation."""

    pod: Pod
    annotations: Mapping[str, str]
    reason: Reason = Reason.RESTAMP


@dataclass(frozen=True, slots=True)
class PatchFinalizers:
    """Set the RayCluster's finalizers to `finalizers`, if they are still those of the snapshot."""

    finalizers: tuple[str, ...]
    reason: Reason = Reason.FINALIZER


Action = CreateHead | CreateSlice | DeleteHead | DeleteSlice | Apply | DeleteChild | StampPod | PatchFinalizers


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a person should hear once: it becomes one Event. `key` identifies it over passes."""

    key: str
    reason: str
    message: str
    warning: bool = True
    action: str = "Reconcile"


@dataclass(frozen=True, slots=True)
class Blocker:
    """A mistake in the object that keeps the pass from acting, for the whole cluster or for one group only.

    `reason` is the Event's reason (KubeRay's `InvalidRayClusterSpec` ...), `field` a path such as
    `spec.workerGroupSpecs[0].minReplicas`, `message` names the rule and `fix` what to write instead.
    """

    reason: str
    field: str
    message: str
    fix: str = ""
    group: str | None = None

    @override
    def __str__(self) -> str:
        return f"{self.field}: {self.message}" + (f"; {self.fix}" if self.fix else "")


class Hold(StrEnum):
    """Why the pass looks at the object but leaves it alone."""

    EXTERNALLY_MANAGED = "ExternallyManaged"
    DELETING = "Deleting"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something wanted that cannot start yet: what, why, and in how many seconds to look again."""

    what: str
    why: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Part:
    """Contribution of one step to the plan."""

    actions: tuple[Action, ...] = ()
    notices: tuple[Notice, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    repairs: tuple[SliceKey, ...] = ()

    def plus(self, part: Part) -> Part:
        return Part(
            self.actions + part.actions,
            self.notices + part.notices,
            self.blockers + part.blockers,
            self.waiting + part.waiting,
            self.repairs + part.repairs,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """Output of `plan`: the sum of the parts.

    `repairs` are slices that are being recreated because a host failed; they feed the growing delay between recreations.
    """

    actions: tuple[Action, ...] = ()
    notices: tuple[Notice, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    repairs: tuple[SliceKey, ...] = ()
    hold: Hold | None = None

    @property
    def requeue_after(self) -> float | None:
        """Seconds until time alone makes another pass useful."""
        return min((w.seconds for w in self.waiting), default=None)

    @property
    def empty(self) -> bool:
        """Nothing is to be done: the cluster has converged, or must be left alone."""
        return not self.actions

    def without_new_pods(self) -> Plan:
        """The plan as far as it does not depend on what pods need first."""
        kept = tuple(a for a in self.actions if not isinstance(a, CreateHead | CreateSlice))
        return replace(self, actions=kept)

    def plus(self, part: Part) -> Plan:
        return replace(
            self,
            actions=self.actions + part.actions,
            notices=self.notices + part.notices,
            blockers=self.blockers + part.blockers,
            waiting=self.waiting + part.waiting,
            repairs=self.repairs + part.repairs,
        )

    @staticmethod
    def of(parts: Iterable[Part]) -> Plan:
        total = Plan()
        for part in parts:
            total = total.plus(part)
        return total
