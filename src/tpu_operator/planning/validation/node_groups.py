"""Rules that the head group and every worker group obey alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tpu_operator.api.labels_syntax import label_key_problem, label_value_problem
from tpu_operator.planning.validation.mistake import HEAD, group_path, spec_mistake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.groups import HeadGroupSpec, WorkerGroupSpec
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.planning.plan import Blocker

RESOURCE_PARAMS = ("num-cpus", "num-gpus", "memory", "resources")


class NodeGroup(NamedTuple):
    """Head or worker group with its path."""

    path: str
    spec: HeadGroupSpec | WorkerGroupSpec


def node_groups(cluster: RayCluster) -> Iterator[NodeGroup]:
    """The head group and then the worker groups, in the order of the spec."""
    yield NodeGroup(HEAD, cluster.spec.head_group_spec)
    for index, group in enumerate(cluster.spec.worker_group_specs):
        yield NodeGroup(group_path(index), group)


def containers(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Without a container there is nothing to run Ray in (rules 1 and 4a)."""
    for path, group in node_groups(cluster):
        if not group.containers:
            field = f"{path}.template.spec.containers"
            yield spec_mistake(field, "has no container", "add the container that runs Ray, as the first of the list")


def ray_resources(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Ray's logical resources are told in one place only (rules 2 and 4f)."""
    for path, group in node_groups(cluster):
        given = [key for key in RESOURCE_PARAMS if group.ray_start_params.get(key)]
        if given and group.resources:
            yield spec_mistake(
                f"{path}.resources",
                f"is set together with rayStartParams {', '.join(given)}, which mean the same",
                f"keep {path}.resources and remove {', '.join(given)} from {path}.rayStartParams, or the reverse",
            )


def ray_labels(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Ray's node labels stand in `labels`, and are pod labels too (rules 3 and 4g)."""
    for path, group in node_groups(cluster):
        if "labels" in group.ray_start_params:
            yield spec_mistake(
                f"{path}.rayStartParams.labels", "is not allowed", f"move these labels to the map {path}.labels"
            )
        for key, value in group.labels.items():
            if problem := label_key_problem(key) or label_value_problem(value):
                field = f"{path}.labels[{key}]"
                yield spec_mistake(
                    field, f"{key}={value} is no valid label: {problem}", "use a valid label key and value"
                )
