"""Fake TPU node pools: what a person types, and the Node objects that follow."""

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tpu_operator.tpu.shape import slice_shape

Manifest = Mapping[str, object]

TPU = "google.com/tpu"
GKE = "cloud.google.com"
FIRST_NODE_ADDRESS = ipaddress.IPv4Address("10.240.0.1")
SPEC = re.compile(r"(?P<accelerator>[a-z0-9-]+):(?P<topology>\d+(x\d+)*)(:(?P<slices>\d+))?(:(?P<chips>\d+))?")


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """`slices` node pools of one shape: GKE makes one node pool for each multi-host slice."""

    accelerator: str
    topology: str
    slices: int = 1
    chips_per_host: int | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """One node pool: the `hosts` nodes of one slice, `chips_per_host` chips each."""

    name: str
    accelerator: str
    topology: str
    hosts: int
    chips_per_host: int


def parse_pool(text: str) -> PoolSpec:
    """Read `accelerator:topology[:slices[:chips per host]]`, for example `tpu-v6e-slice:4x4:2`.

    Raises ValueError for another form and InvalidInput for a topology that the accelerator does not have.
    """
    match = SPEC.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no pool: write accelerator:topology[:slices[:chips per host]]")
    chips = int(match["chips"]) if match["chips"] else None
    spec = PoolSpec(match["accelerator"], match["topology"], int(match["slices"] or 1), chips)
    if spec.slices < 1:
        raise ValueError(f"{text!r}: at least one slice")
    slice_shape(spec.accelerator, spec.topology, chips_per_host=chips)
    return spec


def node_pools(specs: Iterable[PoolSpec]) -> list[Pool]:
    """Return the pools of all specs, each with a name of its own, also if two specs have the same shape."""
    numbers: Counter[tuple[str, str]] = Counter()
    pools = []
    for spec in specs:
        shape = slice_shape(spec.accelerator, spec.topology, chips_per_host=spec.chips_per_host)
        for _ in range(spec.slices):
            key = (spec.accelerator, spec.topology)
            name = f"{spec.accelerator}-{spec.topology}-{numbers[key]}"
            numbers[key] += 1
            pools.append(Pool(name, spec.accelerator, spec.topology, shape.hosts, shape.chips_per_host))
    return pools


def nodes(specs: Iterable[PoolSpec], cpu_nodes: int) -> list[Manifest]:
    """Return the Node objects: `cpu_nodes` plain ones, then those of each pool, host by host."""
    plain = [_cpu_node(index, index) for index in range(cpu_nodes)]
    hosts = [(pool, host) for pool in node_pools(specs) for host in range(pool.hosts)]
    return plain + [_tpu_node(pool, host, cpu_nodes + index) for index, (pool, host) in enumerate(hosts)]


def _cpu_node(index: int, number: int) -> Manifest:
    labels = {f"{GKE}/gke-nodepool": "cpu"}
    resources = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "1000"}
    return _node(f"cpu-{index}", number, labels=labels, taints=[], resources=resources)


def _tpu_node(pool: Pool, host: int, number: int) -> Manifest:
    """Build one host, with the labels and the taint that GKE gives TPU nodes (GKE: "About TPUs in GKE")."""
    labels = {
        f"{GKE}/gke-tpu-accelerator": pool.accelerator,
        f"{GKE}/gke-tpu-topology": pool.topology,
        f"{GKE}/gke-accelerator-count": str(pool.chips_per_host),
        f"{GKE}/gke-nodepool": pool.name,
    }
    taints = [{"key": TPU, "value": "present", "effect": "NoSchedule"}]
    resources = {
        "cpu": "224",
        "memory": "960Gi",
        "ephemeral-storage": "1Ti",
        "pods": "110",
        TPU: str(pool.chips_per_host),
    }
    return _node(f"{pool.name}-host-{host}", number, labels=labels, taints=taints, resources=resources)


def _node(
    name: str,
    number: int,
    *,
    labels: Mapping[str, str],
    taints: list[dict[str, str]],
    resources: Mapping[str, str],
) -> Manifest:
    standard = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    addresses = [
        {"type": "InternalIP", "address": str(FIRST_NODE_ADDRESS + number)},
        {"type": "Hostname", "address": name},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"type": "kwok", **standard, **labels}},
        "spec": {"taints": taints},
        "status": {"addresses": addresses, "capacity": dict(resources), "allocatable": dict(resources)},
    }
