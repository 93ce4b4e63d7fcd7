"""Which host of which slice a TPU pod is: hostname, and the environment that libtpu, JAX and Ray read.

Source of names and values: GKE's TPU webhook for KubeRay, which this replaces; where it runs too, it finds everything
set. Each name occurs once. The user's value stays, unless it is empty or a default of a single host that cannot be
true on a slice of several (`localhost`, worker 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

from tpu_operator.api import names
from tpu_operator.errors import InvalidInput
from tpu_operator.resources.pods.ray_resources import amount
from tpu_operator.resources.pods.variables import literal, value_of
from tpu_operator.resources.tree import listed, mapping, objects
from tpu_operator.tpu import gke
from tpu_operator.tpu.environment import (
    Multislice,
    WorkerPlace,
    coordinator_address,
    hostname,
    worker_environment,
)
from tpu_operator.tpu.generations import find_generation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster, WorkerGroupSpec
    from tpu_operator.resources.pods.place import Place

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
class TpuIdentity:
    """How the pods of a TPU group are told who they are.

    `service` is the headless service, empty if the hosts need no names; `slices` is MEGASCALE_NUM_SLICES, 0 if not given.
    """

    group: str
    service: str
    containers: tuple[Container, ...]
    process_addresses: bool
    slices: int

    @classmethod
    def of(cls, cluster: RayCluster, group: WorkerGroupSpec, spec: JsonObject) -> TpuIdentity | None:
        """Identity for a group's pods of that spec; None if no container asks for chips."""
        containers = tuple(_tpu_containers(objects(spec.get("containers"))))
        if not containers:
            return None
        accelerator = str(mapping(spec.get("nodeSelector")).get(gke.ACCELERATOR) or "")
        return cls(
            group=group.group_name,
            service=names.headless_service(cluster.name) if needs_host_names(group) else "",
            containers=containers,
            process_addresses=find_generation(accelerator).process_addresses,
            slices=slices_of(group),
        )

    def given_to(self, spec: JsonObject, place: Place) -> JsonObject:
        """The spec for one host. Only the lists on the way to what differs are copied."""
        containers = cast("list[JsonObject]", list(cast("list[JsonObject]", spec["containers"])))
        environments = self._environments(place)
        for at, (container, wanted) in enumerate(zip(self.containers, environments, strict=True)):
            found = containers[container.position]
            env = cast("list[JsonObject]", found.get("env") or [])
            worker_id = literal(WORKER_ID, str(place.host * len(self.containers) + at))
            merged = _merged(env, container.positions, wanted, worker_id, multi_host=place.hosts > 1)
            containers[container.position] = {**found, "env": listed(merged)}
        named: JsonObject = {}
        if self.service:
            named = {"hostname": hostname(self.group, place.index, place.host), "subdomain": self.service}
        return {**spec, **named, "containers": listed(containers)}

    def _environments(self, place: Place) -> tuple[Entries, ...]:
        """Variables of each TPU container that all hosts of the slice have in common, in order."""
        first = WorkerPlace(
            self.group,
            place.index,
            0,
            place.hosts,
            service=self.service,
            containers=len(self.containers),
            process_addresses=self.process_addresses,
        )
        return _slice_environments(first, self.slices)


def needs_host_names(group: WorkerGroupSpec) -> bool:
    """Whether hosts must find each other by name: those of one slice, or of several slices that work as one job."""
    return group.hosts > 1 or slices_of(group) > 0


def slices_of(group: WorkerGroupSpec) -> int:
    """MEGASCALE_NUM_SLICES as the user gives it to a TPU container; 0 if not, or not as a number."""
    for container in group.containers:
        if chips(container):
            given = str((value_of(container, _NUM_SLICES) or {}).get("value") or "")
            if given.isascii() and given.isdigit():
                return int(given)
    return 0


def chips(container: JsonObject) -> int:
    """Chips that a container asks for: its limit, else its request."""
    resources = mapping(container.get("resources"))
    limit = amount(mapping(resources.get("limits")).get(gke.RESOURCE))
    return (limit or amount(mapping(resources.get("requests")).get(gke.RESOURCE))).ceil_int()


def _tpu_containers(containers: list[JsonObject]) -> Iterable[Container]:
    for position, container in enumerate(containers):
        if chips(container):
            env = objects(container.get("env"))
            yield Container(position, {entry.get("name"): at for at, entry in enumerate(env)})


@lru_cache(maxsize=256)
def _slice_environments(first: WorkerPlace, slices: int) -> tuple[Entries, ...]:
    """Of the first host; the others of the slice differ in TPU_WORKER_ID only, so this is done once a slice."""
    environments = worker_environment(first, multislice=_multislice(first, slices))
    return tuple(tuple(cast("JsonObject", entry.manifest()) for entry in env) for env in environments)


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
    env: list[JsonObject], positions: dict[object, int], wanted: Entries, worker_id: JsonObject, *, multi_host: bool
) -> list[JsonObject]:
    merged = list(env)
    for entry in wanted:
        mine = worker_id if entry["name"] == WORKER_ID else entry
        at = positions.get(entry["name"])
        if at is None:
            merged.append(mine)
        elif _is_unset(merged[at], multi_host=multi_host):
            merged[at] = mine
    return merged


def _is_unset(entry: JsonObject, *, multi_host: bool) -> bool:
    if entry.get("valueFrom"):
        return False
    value, name = str(entry.get("value") or ""), str(entry["name"])
    if name == WORKER_ID:
        # A literal in the template is the same on every host of the slice, so at most one of them would be right.
        return multi_host or not value
    return not value or (multi_host and _OF_SINGLE_HOST.get(name, value + "x") in value)
