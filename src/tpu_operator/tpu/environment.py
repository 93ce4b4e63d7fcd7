"""The environment by which libtpu, JAX and Ray learn which host of which slice they are on.

Names, ports and order are those of the TPU webhook for KubeRay, which users' scripts and Ray rely on. Everything derives
from one place, (group, replica, host), so the worker id, the position in each list and the hostname cannot disagree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpu_operator.errors import InvalidInput
from tpu_operator.tpu.finding import About, Finding, error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.tpu.shape import SliceShape

PROCESS_PORT: Final = 8471
# libtpu's own default, 8080, is where Ray serves its metrics.
MEGASCALE_PORT: Final = 8081
DEVICE_PLUGIN_PORT: Final = 2112
MAX_HOSTNAME: Final = 63

_DNS_LABEL = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class EnvEntry:
    """One variable of a container: a value, or the pod field it comes from."""

    name: str
    value: str = ""
    field_path: str = ""

    def manifest(self) -> dict[str, object]:
        """Write it as an entry of a container's `env`."""
        if self.field_path:
            return {"name": self.name, "valueFrom": {"fieldRef": {"fieldPath": self.field_path}}}
        return {"name": self.name, "value": self.value}


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """Where a worker pod stands: host `host` of the `hosts` of replica `replica` of worker group `group`.

    `service`: the headless service under which the hosts resolve, by its name, or in full where the pod's DNS search
    list cannot be relied on; empty for a single-host pod without hostname. `containers`: how many of the pod's containers
    request chips. `slice_name`: TPU_NAME, by default `<group>-<replica>`. `process_addresses`: this generation wants
    TPU_PROCESS_ADDRESSES on multi-host slices (`Generation.process_addresses`); several containers always do, or they
    would not know of each other.
    """

    group: str
    replica: int
    host: int
    hosts: int
    service: str = ""
    containers: int = 1
    slice_name: str = ""
    process_addresses: bool = False

    def __post_init__(self) -> None:
        if self.replica < 0 or not 0 <= self.host < self.hosts or self.containers < 1:
            raise InvalidInput(f"no such place: {self.containers} TPU containers, host {self.host} of {self.hosts}")
        if self.hosts > 1 and not self.service:
            raise InvalidInput("the hosts of a multi-host slice need a headless service to find each other")

    @property
    def name(self) -> str:
        """TPU_NAME: what Ray takes for the slice's identity."""
        return self.slice_name or f"{self.group}-{self.replica}"

    @property
    def needs_addresses(self) -> bool:
        """Whether the processes have to be told of each other one by one."""
        return self.containers > 1 or (self.process_addresses and self.hosts > 1)


@dataclass(frozen=True, slots=True)
class Multislice:
    """This pod's slice among the `slices` that work as one job; `coordinator` is host 0 of slice 0."""

    slices: int
    slice_id: int
    coordinator: str

    def __post_init__(self) -> None:
        if not 0 <= self.slice_id < self.slices:
            raise InvalidInput(f"slice id {self.slice_id} is not one of 0..{self.slices - 1}")


def hostname(group: str, replica: int, host: int) -> str:
    """`spec.hostname` of a worker pod: `<group>-<replica>-<host>`."""
    return f"{group}-{replica}-{host}"


def host_names(group: str, replica: int, hosts: int, service: str) -> tuple[str, ...]:
    """Names of all hosts of a slice as they resolve, `<hostname>.<service>`; the index is the host's."""
    return tuple(f"{hostname(group, replica, host)}.{service}" for host in range(hosts))


def process_addresses(place: WorkerPlace) -> tuple[str, ...]:
    """host:port of each process of the slice, one a TPU container, host by host; the index is its TPU_WORKER_ID."""
    local = not place.service
    hosts = ("localhost",) if local else host_names(place.group, place.replica, place.hosts, place.service)
    return tuple(f"{host}:{PROCESS_PORT + container}" for host in hosts for container in range(place.containers))


def coordinator_address(group: str, replica: int, service: str, *, with_port: bool = False) -> str:
    """MEGASCALE_COORDINATOR_ADDRESS: host 0 of the first slice; tpu7x wants the port with it."""
    address = host_names(group, replica, 1, service)[0]
    return f"{address}:{MEGASCALE_PORT}" if with_port else address


def multislice_environment(multislice: Multislice, container: int = 0) -> tuple[EnvEntry, ...]:
    """Variables of the pod's TPU container number `container` for a job of several slices."""
    return (
        EnvEntry("MEGASCALE_NUM_SLICES", str(multislice.slices)),
        EnvEntry("MEGASCALE_SLICE_ID", str(multislice.slice_id)),
        EnvEntry("MEGASCALE_COORDINATOR_ADDRESS", multislice.coordinator),
        EnvEntry("MEGASCALE_PORT", str(MEGASCALE_PORT + container)),
    )


def worker_environment(
    place: WorkerPlace, *, multislice: Multislice | None = None, shape: SliceShape | None = None
) -> tuple[tuple[EnvEntry, ...], ...]:
    """Variables for each TPU container of a worker pod, in order; a name occurs once, after what it refers to.

    Give `shape` where no node plugin tells containers about the slice (outside GKE, or on fake TPU nodes).
    """
    return tuple(
        (
            *(multislice_environment(multislice, container) if multislice else ()),
            *_identity(place, container),
            *(shape_environment(shape) if shape else ()),
        )
        for container in range(place.containers)
    )


def _identity(place: WorkerPlace, container: int) -> Iterator[EnvEntry]:
    if place.hosts > 1:
        # One entry a host, however many processes it runs: libtpu compares the length with the host bounds.
        names = host_names(place.group, place.replica, place.hosts, place.service)
        yield EnvEntry("TPU_WORKER_HOSTNAMES", ",".join(names))
    if place.needs_addresses:
        yield EnvEntry("TPU_PROCESS_ADDRESSES", ",".join(process_addresses(place)))
        yield EnvEntry("TPU_PROCESS_PORT", str(PROCESS_PORT + container))
    yield EnvEntry("TPU_WORKER_ID", str(place.host * place.containers + container))
    yield EnvEntry("TPU_NAME", place.name)
    yield EnvEntry("TPU_DEVICE_PLUGIN_HOST_IP", field_path="status.hostIP")
    yield EnvEntry("TPU_DEVICE_PLUGIN_ADDR", f"$(TPU_DEVICE_PLUGIN_HOST_IP):{DEVICE_PLUGIN_PORT}")


def shape_environment(shape: SliceShape) -> tuple[EnvEntry, ...]:
    """What GKE's node plugin sets in each container, for nodes that have none; what is unknown is left out."""
    entries = (
        EnvEntry("TPU_TOPOLOGY", str(shape.topology)),
        EnvEntry("TPU_ACCELERATOR_TYPE", shape.accelerator_type),
        EnvEntry("TPU_CHIPS_PER_HOST_BOUNDS", _joined(shape.chips_per_host_bounds)),
        EnvEntry("TPU_HOST_BOUNDS", _joined(shape.host_bounds)),
        EnvEntry("TPU_TOPOLOGY_WRAP", _joined(shape.wrap).lower()),
        EnvEntry("TPU_SKIP_MDS_QUERY", "true"),
    )
    return tuple(entry for entry in entries if entry.value)


def _joined(values: tuple[int, int, int]) -> str:
    return ",".join(str(value) for value in values)


def hostname_fault(group: str, replicas: int, hosts: int) -> Finding | None:
    """Say why the group's name cannot stand in the hostnames of so many replicas and hosts; None if it can.

    A hostname is one DNS label (RFC 1123): lower-case letters, digits and dashes, at most 63 characters.
    """
    longest = hostname(group, max(replicas - 1, 0), max(hosts - 1, 0))
    room = MAX_HOSTNAME - len(longest) + len(group)
    if len(longest) <= MAX_HOSTNAME and _DNS_LABEL.fullmatch(longest):
        return None
    usable = _usable_name(group, room)
    return error(
        About.NAME,
        f"worker group name {group!r} cannot stand in the hostname {longest!r} ({len(longest)} characters)",
        expected=f"at most {room} lower-case letters, digits and dashes, a letter or digit first",
        got=f"{len(group)} characters",
        fix=f"name it {usable!r}, for example" if usable else f"choose a name of at most {room} characters",
    )


def _usable_name(group: str, room: int) -> str:
    """The longest name near to `group` that fits."""
    return re.sub("[^-a-z0-9]+", "-", group.lower()).lstrip("-")[:room].rstrip("-")
