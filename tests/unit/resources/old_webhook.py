"""What GKE's TPU webhook for KubeRay does to a pod (v1.3), as far as identity goes: a model to run beside ours.

Written from its behaviour, mistakes included. `scan` is its view of the other pods of the group: the replica and host that it
would count its way to on the path for pods without both index labels.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

CHIPS = "google.com/tpu"
TOPOLOGY = "cloud.google.com/gke-tpu-topology"
ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
REPLICA, HOST = "ray.io/worker-group-replica-index", "ray.io/replica-host-index"
LONGEST_SERVICE = 50


class Denied(Exception):
    """The webhook answers 403."""


def mutate(pod: Json, scan: tuple[int, int] = (0, 0)) -> Json:
    """The pod as it reaches the API server."""
    pod = copy.deepcopy(pod)
    spec, labels = pod["spec"], pod["metadata"].setdefault("labels", {})
    tpu = [c for c in spec["containers"] if _chips(c)]
    if not tpu:
        return pod
    selector = spec.get("nodeSelector", {})
    for needed, where in (("ray.io/cluster", labels), ("ray.io/group", labels), (TOPOLOGY, selector)):
        if needed not in where:
            raise Denied(needed)
    cluster, group = labels["ray.io/cluster"], labels["ray.io/group"]
    hosts = max(1, _product(selector[TOPOLOGY]) // sum(map(_chips, tpu)))
    seventh = selector.get(ACCELERATOR, "").startswith("tpu7x")
    if REPLICA in labels and HOST in labels:
        replica, host = int(labels[REPLICA]), int(labels[HOST])
    else:
        replica, host = scan
        labels["replicaIndex"] = f"{group}-{replica}"
    service = _shortened(f"{cluster}-headless")
    if hosts > 1:
        spec["hostname"], spec["subdomain"] = f"{group}-{replica}-{host}", service
        spec["affinity"] = {"podAffinity": "the webhook's", "podAntiAffinity": "the webhook's"}
    own = _Slice(group, replica, host, hosts, service, len(tpu) if seventh else 0)
    for number, container in enumerate(tpu):
        given = {e["name"]: e.get("value", "") for e in container.setdefault("env", [])}
        container["env"] += [entry for entry in own.environment(number, given) if not _is_set(entry, given)]
    return pod


@dataclass
class _Slice:
    """`processes` is the number of TPU containers on tpu7x, 0 on others."""

    group: str
    replica: int
    host: int
    hosts: int
    service: str
    processes: int

    def environment(self, number: int, given: Json) -> Iterator[Json]:
        """What a container should have, in order. `given` are the values that it has."""
        if given.get("MEGASCALE_NUM_SLICES"):
            yield from self._megascale(number)
        if self.hosts > 1:
            yield from self._peers(number)
        expected = str(self.host * self.processes + number if self.processes else self.host)
        found = given.get("TPU_WORKER_ID", "")
        yield {"name": "TPU_WORKER_ID", "value": expected, "wrong": found == str(number) and found != expected}
        yield {"name": "TPU_NAME", "value": f"{self.group}-{self.replica}"}
        yield {"name": "TPU_DEVICE_PLUGIN_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}
        yield {"name": "TPU_DEVICE_PLUGIN_ADDR", "value": "$(TPU_DEVICE_PLUGIN_HOST_IP):2112"}

    def _megascale(self, number: int) -> Iterator[Json]:
        port = ":8081" if self.processes else ""
        yield {"name": "MEGASCALE_SLICE_ID", "value": str(self.replica)}
        yield {"name": "MEGASCALE_COORDINATOR_ADDRESS", "value": f"{self.group}-0-0.{self.service}{port}"}
        yield {"name": "MEGASCALE_PORT", "value": str(8081 + (number if self.processes else 0))}

    def _peers(self, number: int) -> Iterator[Json]:
        names = [f"{self.group}-{self.replica}-{host}.{self.service}" for host in range(self.hosts)]
        yield {"name": "TPU_WORKER_HOSTNAMES", "value": ",".join(names)}
        if self.processes:
            every = [f"{name}:{8471 + at}" for name in names for at in range(self.processes)]
            yield {"name": "TPU_PROCESS_ADDRESSES", "value": ",".join(every)}
            yield {"name": "TPU_PROCESS_PORT", "value": str(8471 + number)}


def _is_set(entry: Json, given: Json) -> bool:
    name = entry["name"]
    if name == "TPU_DEVICE_PLUGIN_HOST_IP":
        return name in given
    value = given.get(name, "")
    if name == "TPU_WORKER_HOSTNAMES" and value == "localhost":
        return False
    if name == "TPU_PROCESS_ADDRESSES" and "localhost" in value:
        return False
    return bool(value) and not entry.pop("wrong", False)


def _chips(container: Json) -> int:
    resources = container.get("resources", {})
    asked = [resources.get(kind, {}).get(CHIPS, 0) for kind in ("requests", "limits")]
    return int(asked[0] or asked[1])


def _product(topology: str) -> int:
    product = 1
    for side in topology.split("x"):
        product *= int(side)
    return product


def _shortened(name: str) -> str:
    """KubeRay's helper of old: the last 50 characters, and `r` for a first one that is no letter."""
    if len(name) <= LONGEST_SERVICE:
        return name
    cut = name[-LONGEST_SERVICE:]
    return cut if cut[0].isalpha() else f"r{cut[1:]}"
