"""How much the whole cluster wants: pods and resources."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpu_operator.api.fields import INT32_MAX, INT32_MIN
from tpu_operator.api.quantity import ZERO, InvalidQuantity, Quantity
from tpu_operator.resources.wanted import bounds, wanted_pods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tpu_operator.api.groups import NodeGroup, WorkerGroupSpec
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.spec import RayClusterSpec

TPU: Final = "google.com/tpu"
_GPU: Final = re.compile(r"gpu$|nvidia\.com/mig-\d+g\.\d+gb$", re.ASCII)

Resources = dict[str, Quantity]


@dataclass(frozen=True, slots=True)
class Totals:
    """Worker pods wanted, least and most, and the resources of head and workers in canonical notation."""

    desired: int
    least: int
    most: int
    cpu: str
    memory: str
    gpu: str
    tpu: str


def totals(spec: RayClusterSpec) -> Totals:
    """Sums over the groups that are not suspended.

    Pods and resources follow from the same clamped number of slices (KubeRay takes the raw one for resources, quirk 51).
    """
    resources = desired_resources(spec)
    gpus = (amount for name, amount in resources.items() if _GPU.search(name))
    return Totals(
        desired=desired_workers(spec),
        least=min_workers(spec),
        most=max_workers(spec),
        cpu=str(resources.get("cpu", ZERO)),
        memory=str(resources.get("memory", ZERO)),
        gpu=str(sum(gpus, ZERO)),
        tpu=str(resources.get(TPU, ZERO)),
    )


def desired_workers(spec: RayClusterSpec) -> int:
    """Worker pods that should be there."""
    return _int32(sum(wanted_pods(group) for group in spec.worker_group_specs))


def min_workers(spec: RayClusterSpec) -> int:
    """Least number of worker pods."""
    return _int32(sum(bounds(group)[0] * group.hosts for group in spec.worker_group_specs if not group.suspend))


def max_workers(spec: RayClusterSpec) -> int:
    """Greatest number of worker pods."""
    return _int32(sum(bounds(group)[1] * group.hosts for group in spec.worker_group_specs if not group.suspend))


def _int32(number: int) -> int:
    """Kept in the range that the CRD's int32 fields hold (quirk 57)."""
    return max(INT32_MIN, min(INT32_MAX, number))


def desired_resources(spec: RayClusterSpec) -> Resources:
    """Per resource name: the head's plus that of every worker pod wanted."""
    return resources_of(spec, wanted_pods)


def resources_of(spec: RayClusterSpec, pods: Callable[[WorkerGroupSpec], int]) -> Resources:
    """Per resource name: the head's plus that of so many pods of each worker group."""
    total: Resources = {}
    _add(total, pod_resources(spec.head_group_spec), 1)
    for group in spec.worker_group_specs:
        _add(total, pod_resources(group), pods(group))
    return total


def _add(total: Resources, more: Mapping[str, Quantity], times: int) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, ZERO) + amount * times


def pod_resources(group: NodeGroup) -> Resources:
    """Requests of the template's containers, limits where nothing is requested.

    Like KubeRay's, the sum leaves out init containers and what the operator adds.
    """
    return container_resources(group.containers)


def container_resources(containers: Iterable[JsonObject]) -> Resources:
    """Requests of the containers together, limits where nothing is requested."""
    total: Resources = {}
    for container in containers:
        _add(total, dict(_container_resources(container)), 1)
    return total


def _container_resources(container: JsonObject) -> Iterator[tuple[str, Quantity]]:
    resources = container.get("resources")
    if not isinstance(resources, dict):
        return
    limits, requests = resources.get("limits"), resources.get("requests")
    merged = {**(limits if isinstance(limits, dict) else {}), **(requests if isinstance(requests, dict) else {})}
    for name, value in merged.items():
        if isinstance(value, str | int | float):
            try:
                yield name, Quantity.parse(value)
            except InvalidQuantity:
                continue  # the API server refuses the pod, and that is told
