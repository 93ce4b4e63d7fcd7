"""`tpu-operator topology`: everything that follows from a generation and a topology."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Final, cast

import yaml

from tpu_operator.errors import InvalidInput
from tpu_operator.tpu import gke
from tpu_operator.tpu.environment import (
    WorkerPlace,
    hostname,
    worker_environment,
)
from tpu_operator.tpu.generations import GENERATIONS
from tpu_operator.tpu.shape import SliceShape, slice_shape
from tpu_operator.tpu.topology import parse_topology

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.json import JsonObject
    from tpu_operator.tpu.generations import Generation

OUTPUTS: Final = ("text", "json")
GROUP: Final = "workers"
SERVICE: Final = "demo-headless"
_ID: Final = "TPU_WORKER_ID"
_LONGEST_VALUE: Final = 100


def topology_text(generation: str, topology: str, chips: int | None, output: str) -> str:
    """What is printed. Raises InvalidInput, in one line with what is legal, for a slice that does not exist."""
    if output not in OUTPUTS:
        raise InvalidInput(f"output {output!r}: write {' or '.join(OUTPUTS)}")
    shape = find_shape(generation, topology, chips)
    return json.dumps(as_json(shape), indent=2) if output == "json" else "\n".join(as_text(shape))


def find_shape(generation: str, topology: str, chips: int | None = None) -> SliceShape:
    """The shape of a slice by the generation's short name or its accelerator label.

    Where two accelerators have the name, it is that of the first whose table has such a slice: v3 2x2 is one of
    tpu-v3-device, v5e 4x4 of tpu-v5-lite-podslice.
    """
    named = accelerators(generation)
    if not named:
        raise InvalidInput(f"no TPU generation {generation!r}; known are {', '.join(_names())}, and accelerator labels")
    wanted = parse_topology(topology)
    listing = [row.accelerator for row in named if wanted in (*row.single_host, *row.multi_host)]
    return slice_shape((listing or [named[0].accelerator])[0], wanted, chips)


def accelerators(name: str) -> list[Generation]:
    """What a person may mean by `name`, accelerators with slices of several hosts first."""
    wanted = name.lower()
    rows = [r for r in GENERATIONS.values() if wanted in (r.accelerator, r.name, r.ray_prefix, r.type_prefix)]
    return sorted(rows, key=lambda row: not (row.multi_host or row.cubes))


def _names() -> list[str]:
    return list(dict.fromkeys(name for row in GENERATIONS.values() for name in (row.name, row.ray_prefix) if name))


def _place(shape: SliceShape, host: int = 0) -> WorkerPlace:
    return WorkerPlace(
        GROUP,
        0,
        host,
        shape.hosts,
        service=SERVICE if shape.multi_host else "",
        process_addresses=shape.generation.process_addresses,
    )


def environment(shape: SliceShape) -> dict[str, str]:
    """Variables that all hosts of the first slice of a group have in common, TPU_WORKER_ID left out."""
    (entries,) = worker_environment(_place(shape), shape=shape)
    return {entry.name: entry.value or f"(the pod's {entry.field_path})" for entry in entries if entry.name != _ID}


def hosts(shape: SliceShape) -> Iterator[JsonObject]:
    """Each host: its index, which is its TPU_WORKER_ID, its place among the hosts, and that of its chips."""
    sizes = shape.chips_per_host_bounds
    for host in range(shape.hosts):
        at = shape.coordinates(host)
        first = [place * size for place, size in zip(at, sizes, strict=True)]
        offsets = itertools.product(*(range(size) for size in sizes))
        chips = [[a + b for a, b in zip(first, offset, strict=True)] for offset in offsets]
        named: JsonObject = {"hostname": hostname(GROUP, 0, host)} if shape.multi_host else {}
        found: JsonObject = {"host": host, **named, "coordinates": list(at), "environment": {_ID: str(host)}}
        yield {**found, "chips": cast("list[object]", chips)}  # type: ignore[dict-item]


def worker_group(shape: SliceShape) -> JsonObject:
    """An entry of workerGroupSpecs for such slices."""
    chips: JsonObject = {gke.RESOURCE: str(shape.chips_per_host)}
    selector: JsonObject = {gke.ACCELERATOR: shape.generation.accelerator, gke.TOPOLOGY: str(shape.topology)}
    container: JsonObject = {
        "name": "ray-worker",
        "image": "rayproject/ray:2.60.0",
        "resources": {"requests": chips, "limits": dict(chips)},
    }
    spec: JsonObject = {"nodeSelector": selector, "containers": [container]}
    return {
        "groupName": GROUP,
        "replicas": 1,
        "minReplicas": 0,
        "maxReplicas": 4,
        "numOfHosts": shape.hosts,
        "rayStartParams": {},
        "template": {"spec": spec},
    }


def facts(shape: SliceShape) -> dict[str, str | int]:
    """The slice in numbers and names."""
    return {
        "generation": shape.generation.name,
        "accelerator": shape.generation.accelerator,
        "topology": str(shape.topology),
        "chips": shape.chips,
        "chipsPerHost": shape.chips_per_host,
        "hosts": shape.hosts,
        "cores": shape.cores,
        "acceleratorType": shape.accelerator_type,
        "chipsPerHostBounds": _joined(shape.chips_per_host_bounds),
        "hostBounds": _joined(shape.host_bounds),
        "wrap": _joined(shape.wrap).lower(),
        "rayHeadResource": shape.ray_head_resource,
    }


def _joined(values: tuple[int, int, int]) -> str:
    return ",".join(map(str, values))


def as_json(shape: SliceShape) -> JsonObject:
    """For machines. What all hosts have in common stands once: a list of all names in each of 2304 hosts would be huge."""
    return {
        **facts(shape),
        "environment": cast("JsonObject", environment(shape)),
        "hostsOfSlice": list(hosts(shape)),
        "workerGroup": worker_group(shape),
    }


def as_text(shape: SliceShape) -> Iterator[str]:
    """For people."""
    yield from (f"{name:20}{value}" for name, value in facts(shape).items() if value != "")
    yield from (
        "",
        f"hosts (of replica 0 of a worker group {GROUP}; the order is logical, given before pods have nodes)",
    )
    yield f"{'TPU_WORKER_ID':>13}  {'host at':10}{'chips from':12}{'to':12}{'hostname' if shape.multi_host else ''}"
    yield from map(_host_line, hosts(shape))
    yield from ("", f"environment of every host, beside its {_ID}")
    yield from (f"{name}={_cut(value)}" for name, value in environment(shape).items())
    yield from ("", "worker group")
    yield yaml.safe_dump([worker_group(shape)], sort_keys=False).rstrip()


def _host_line(host: JsonObject) -> str:
    chips = cast("list[list[int]]", host["chips"])
    at, first, last = (
        ",".join(map(str, each)) for each in (cast("list[int]", host["coordinates"]), chips[0], chips[-1])
    )
    return f"{host['host']:>13}  {at:10}{first:12}{last:12}{host.get('hostname', '')}".rstrip()


def _cut(value: str) -> str:
    """A long list of hosts by its first and last entries."""
    if len(value) <= _LONGEST_VALUE:
        return value
    entries = value.split(",")
    return f"{','.join(entries[:2])}, ... {entries[-1]} ({len(entries)} in all)"
