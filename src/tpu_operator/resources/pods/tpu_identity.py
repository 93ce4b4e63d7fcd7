"""Which host of which slice a pod is: hostname, legacy labels, and the environment that libtpu, JAX and Ray read.

Source of names and values: GKE's TPU webhook for KubeRay, which this replaces; where it runs too, it finds everything
set. Each name occurs once. The user's value stays, unless it is empty or a default of a single host that cannot be
true on a slice of several (`localhost`, worker 0). Hosts of slices without chips get their hostname only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from tpu_operator.api import names
from tpu_operator.api.labels_syntax import LABEL_LENGTH
from tpu_operator.errors import InvalidInput
from tpu_operator.resources.pods import tpu_nodes
from tpu_operator.resources.pods.place import Place
from tpu_operator.resources.pods.tpu_nodes import chips
from tpu_operator.resources.pods.variables import literal, value_of
from tpu_operator.resources.tree import inner, listed, objects
from tpu_operator.resources.wanted import wanted_slices
from tpu_operator.tpu.environment import (
    MAX_HOSTNAME,
    Multislice,
    WorkerPlace,
    coordinator_address,
    hostname,
    hostname_fault,
    worker_environment,
)
from tpu_operator.tpu.generations import find_generation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster, WorkerGroupSpec
    from tpu_operator.resources.pods.draft import Draft, RayNode

WORKER_ID: Final = "TPU_WORKER_ID"
_NUM_SLICES: Final = "MEGASCALE_NUM_SLICES"
_OF_SINGLE_HOST: Final = {"TPU_WORKER_HOSTNAMES": "localhost", "TPU_PROCESS_ADDRESSES": "localhost"}

Entries = tuple["JsonObject", ...]


@dataclass(frozen=True, slots=True)
class Container:
    """A TPU container: its position in the pod, and where its environment has which variable."""

    position: int
    positions: dict[object, int]


@dataclass(frozen=True, slots=True)
class WorkerId:
    """Where a TPU_WORKER_ID stands that differs from host to host: `entry` of the environment of `container`."""

    container: int
    entry: int
    number: int


@dataclass(frozen=True, slots=True)
class SliceIdentity:
    """The spec that the hosts of a slice have in common. `service` is empty if they have no hostnames."""

    spec: JsonObject
    group: str
    index: int
    service: str
    processes: int
    worker_ids: tuple[WorkerId, ...]

    def of_host(self, host: int) -> JsonObject:
        """The spec of one host. Only the lists on the way to what differs are copied."""
        containers = list(cast("list[JsonObject]", self.spec["containers"]))
        for at in self.worker_ids:
            found = containers[at.container]
            env = list(cast("list[JsonObject]", found["env"]))
            env[at.entry] = literal(WORKER_ID, str(host * self.processes + at.number))
            containers[at.container] = {**found, "env": listed(env)}
        spec: JsonObject = {**self.spec, "containers": listed(containers)}
        if self.service:
            spec["hostname"], spec["subdomain"] = hostname(self.group, self.index, host), self.service
        return spec


@dataclass(frozen=True, slots=True)
class TpuIdentity:
    """How the pods of a group are told who they are.

    `service` is the headless service, empty if the hosts need no names; `slices` is MEGASCALE_NUM_SLICES, 0 if not given.
    """

    group: str
    service: str
    containers: tuple[Container, ...]
    process_addresses: bool
    slices: int

    @classmethod
    def of(cls, cluster: RayCluster, group: WorkerGroupSpec, spec: JsonObject) -> TpuIdentity | None:
        """Identity for a group's pods of that spec; None if they have no chips and need, or can have, no names."""
        containers = tuple(_tpu_containers(objects(spec.get("containers"))))
        named = needs_host_names(group) if containers else _may_be_named(group, spec)
        if not containers and not named:
            return None
        return cls(
            group=group.group_name,
            service=names.headless_service(cluster.name) if named else "",
            containers=containers,
            process_addresses=find_generation(tpu_nodes.accelerator(spec) or "").process_addresses,
            slices=slices_of(group),
        )

    @classmethod
    def of_head(cls, spec: JsonObject) -> TpuIdentity | None:
        """A head with chips is a slice of one host, apart from all groups (MH-25); None if it has none."""
        containers = tuple(_tpu_containers(objects(spec.get("containers"))))
        return cls(names.HEAD_GROUP, "", containers, process_addresses=False, slices=0) if containers else None

    def labels(self, place: Place) -> JsonObject:
        """What Ray's autoscaler v1 and GKE's webhook look for. Slices without chips never had them.

        A single host gets the index of its host too: without it the webhook would count pods to find one.
        """
        if not self.containers:
            return {}
        legacy = f"{self.group}-{place.index}"
        found: JsonObject = {names.LEGACY_REPLICA_INDEX: legacy} if len(legacy) <= LABEL_LENGTH else {}
        return {**found, names.HOST_INDEX: "0"} if place.hosts == 1 else found

    def of_slice(self, spec: JsonObject, place: Place) -> SliceIdentity:
        """What the slice of that place adds to the group's spec. Which of its hosts the place is does not matter."""
        containers = list(cast("list[JsonObject]", spec["containers"]))
        ids = []
        for number, (container, wanted) in enumerate(zip(self.containers, self._environments(place), strict=True)):
            found = containers[container.position]
            env = _merged(found, container.positions, wanted, multi_host=place.hosts > 1)
            containers[container.position] = {**found, "env": listed(env)}
            ids += [WorkerId(container.position, at, number) for at, entry in enumerate(env) if entry is _WORKER_ID]
        # Only slices without chips can be too long here: validation sees to the others.
        fits = len(hostname(self.group, place.index, place.hosts - 1)) <= MAX_HOSTNAME
        return SliceIdentity(
            spec={**spec, "containers": listed(containers)},
            group=self.group,
            index=place.index,
            service=self.service if fits else "",
            processes=len(self.containers),
            worker_ids=tuple(ids),
        )

    def _environments(self, place: Place) -> Iterable[Entries]:
        """Variables of each TPU container of the slice, in order; a marker stands for what differs from host to host."""
        if not self.containers:
            return ()
        first = WorkerPlace(
            self.group,
            place.index,
            0,
            place.hosts,
            service=self.service,
            containers=len(self.containers),
            process_addresses=self.process_addresses,
        )
        environments = worker_environment(first, multislice=_multislice(first, self.slices))
        return (
            tuple(_WORKER_ID if e.name == WORKER_ID else cast("JsonObject", e.manifest()) for e in entries)
            for entries in environments
        )


_WORKER_ID: Final = literal(WORKER_ID, "")
"""Stands for the TPU_WORKER_ID of a host until it is known which."""


def head_identity(node: RayNode, draft: Draft) -> None:
    """Identity of a head with chips."""
    if identity := TpuIdentity.of_head(draft.spec):
        inner(draft.metadata, "labels")[names.LEGACY_REPLICA_INDEX] = f"{node.group_name}-0"
        draft.spec = identity.of_slice(draft.spec, Place(node.group_name, 0, 0, 1)).of_host(0)


def needs_host_names(group: WorkerGroupSpec) -> bool:
    """Whether hosts must find each other by name: those of one slice, or of several slices that work as one job."""
    return group.hosts > 1 or slices_of(group) > 0


def _may_be_named(group: WorkerGroupSpec, spec: JsonObject) -> bool:
    """Nobody has to know hosts without chips by name: the user's names stay, and any name of a group is legal."""
    if group.hosts == 1 or spec.get("hostname") or spec.get("subdomain"):
        return False
    return hostname_fault(group.group_name, wanted_slices(group), group.hosts) is None


def slices_of(group: WorkerGroupSpec) -> int:
    """MEGASCALE_NUM_SLICES as the user gives it to a TPU container; 0 if not, or not as a number."""
    for container in group.containers:
        if chips(container):
            given = str((value_of(container, _NUM_SLICES) or {}).get("value") or "")
            if given.isascii() and given.isdigit():
                return int(given)
    return 0


def _tpu_containers(containers: list[JsonObject]) -> Iterable[Container]:
    for position, container in enumerate(containers):
        if chips(container):
            env = objects(container.get("env"))
            yield Container(position, {entry.get("name"): at for at, entry in enumerate(env)})


def _multislice(place: WorkerPlace, slices: int) -> Multislice | None:
    """None too for a replica beyond the number of slices that the user gave: it has no part in their job."""
    if not slices:
        return None
    address = coordinator_address(place.group, 0, place.service, with_port=place.process_addresses)
    try:
        return Multislice(slices, place.replica, address)
    except InvalidInput:
        return None


def _merged(
    container: JsonObject, positions: dict[object, int], wanted: Entries, *, multi_host: bool
) -> list[JsonObject]:
    merged = list(cast("list[JsonObject]", container.get("env") or []))
    for entry in wanted:
        at = positions.get(entry["name"])
        if at is None:
            merged.append(entry)
        elif _is_unset(merged[at], multi_host=multi_host):
            merged[at] = entry
    return merged


def _is_unset(entry: JsonObject, *, multi_host: bool) -> bool:
    if entry.get("valueFrom"):
        return False
    value, name = str(entry.get("value") or ""), str(entry["name"])
    if name == WORKER_ID:
        # A literal in the template is the same on every host of the slice, so at most one of them would be right.
        return multi_host or not value
    return not value or (multi_host and _OF_SINGLE_HOST.get(name, value + "x") in value)
