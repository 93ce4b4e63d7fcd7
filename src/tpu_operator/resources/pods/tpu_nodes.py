"""Which TPU nodes a pod asks for: the accelerator and topology that it selects, and the chips that it takes of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.resources.pods.ray_resources import amount
from tpu_operator.resources.tree import mapping, objects
from tpu_operator.tpu import gke

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject, JsonValue


def chips(container: JsonObject) -> int:
    """Chips that a container asks for: its limit, else its request."""
    resources = mapping(container.get("resources"))
    limit = amount(mapping(resources.get("limits")).get(gke.RESOURCE))
    return (limit or amount(mapping(resources.get("requests")).get(gke.RESOURCE))).ceil_int()


def pod_chips(spec: JsonObject) -> int:
    """Chips that all containers of a pod ask for together, 0 if it is no TPU pod."""
    return sum(chips(container) for container in objects(spec.get("containers")))


def accelerator(spec: JsonObject) -> str | None:
    """Accelerator that the pod selects, None if it leaves that open."""
    return selected(spec, gke.ACCELERATOR)


def topology(template: JsonObject) -> str | None:
    """Topology of the slice, None if the pod leaves it open. The annotation for dynamic slices goes before the pool's."""
    annotations = mapping(mapping(template.get("metadata")).get("annotations"))
    dynamic = annotations.get(gke.SLICE_TOPOLOGY)
    return dynamic if isinstance(dynamic, str) else selected(mapping(template.get("spec")), gke.TOPOLOGY)


def selected(spec: JsonObject, label: str) -> str | None:
    """The one value of a node label with which the pod can be content, by node selector or by node affinity."""
    value = mapping(spec.get("nodeSelector")).get(label)
    if value is not None:
        return str(value)
    required = mapping(
        mapping(mapping(spec.get("affinity")).get("nodeAffinity")).get("requiredDuringSchedulingIgnoredDuringExecution")
    )
    found = {_only_value(term, label) for term in objects(required.get("nodeSelectorTerms"))}
    return found.pop() if len(found) == 1 else None


def _only_value(term: JsonObject, label: str) -> str | None:
    """The terms are alternatives, the expressions of a term hold together."""
    for expression in objects(term.get("matchExpressions")):
        values: JsonValue = expression.get("values")
        if expression.get("key") == label and expression.get("operator") == "In" and isinstance(values, list):
            return str(values[0]) if len(values) == 1 else None
    return None
