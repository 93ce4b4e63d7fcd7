"""The shape of the slice, told to TPU containers where no node plugin tells it: topology, accelerator type, bounds.

On GKE the plugin sets the same variables to the same values. Without them Ray gives a node neither its TPU labels nor
the head resource of the slice (Ray 2.60 reads TPU_ACCELERATOR_TYPE and TPU_TOPOLOGY before `ray start`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tpu_operator.api.raycluster import WorkerGroupSpec
from tpu_operator.errors import InvalidInput
from tpu_operator.resources.pods import tpu_nodes
from tpu_operator.resources.pods.variables import fill_in
from tpu_operator.tpu.environment import shape_environment
from tpu_operator.tpu.shape import SliceShape, slice_shape

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.resources.pods.draft import Draft, RayNode


def tell_shape(node: RayNode, draft: Draft) -> None:
    """What the user has set stays. Nothing is told of a shape that is not sure."""
    if node.config.tpu_environment == "never":
        return
    hosts = node.group.hosts if isinstance(node.group, WorkerGroupSpec) else 1
    shape = _shape({"metadata": draft.metadata, "spec": draft.spec}, hosts)
    if shape is None:
        return
    entries = [cast("JsonObject", entry.manifest()) for entry in shape_environment(shape)]
    for container in draft.containers:
        if tpu_nodes.chips(container):
            fill_in(container, *(dict(entry) for entry in entries))


def _shape(template: JsonObject, hosts: int) -> SliceShape | None:
    spec = template["spec"]
    if not isinstance(spec, dict) or not (chips := tpu_nodes.pod_chips(spec)):
        return None
    try:
        shape = slice_shape(tpu_nodes.accelerator(spec) or "", tpu_nodes.topology(template) or "", chips)
    except InvalidInput:
        return None
    return shape if shape.generation.known and shape.hosts == hosts else None
