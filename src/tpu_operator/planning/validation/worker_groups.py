"""Names and numbers of the worker groups."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.api.labels_syntax import LABEL_LENGTH, dns1123_subdomain_problem, label_value_problem
from tpu_operator.planning.validation.mistake import group_path, spec_mistake
from tpu_operator.resources.wanted import bounds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.groups import WorkerGroupSpec
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.planning.plan import Blocker


def group_names_unique(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Two groups of one name would fight for the same pods for ever (OC-07, quirk 4)."""
    groups = cluster.spec.worker_group_specs
    counts = Counter(group.group_name for group in groups)
    seen: set[str] = set()
    for index, group in enumerate(groups):
        if group.group_name in seen:
            message = f"{group.group_name!r} is the name of {counts[group.group_name]} worker groups"
            yield spec_mistake(f"{group_path(index)}.groupName", message, "give each worker group a name of its own")
        seen.add(group.group_name)


def group_names_not_reserved(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """The head pod carries this group name: its workers and the head could not be told apart (quirk 3)."""
    for index, group in enumerate(cluster.spec.worker_group_specs):
        if group.group_name == names.HEAD_GROUP:
            message = f"{names.HEAD_GROUP!r} is the head's own group name"
            yield spec_mistake(f"{group_path(index)}.groupName", message, "give the worker group another name")


def group_names_usable(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """The name becomes a label value and a part of pod names (NM-06); only the group concerned is held up."""
    for index, group in enumerate(cluster.spec.worker_group_specs):
        if problem := _name_problem(cluster.name, group):
            message = f"{group.group_name!r} cannot name pods: {problem}"
            limit = _longest(group)
            fix = f"use at most {limit} letters, digits and dashes, with a letter or digit first and last"
            yield spec_mistake(f"{group_path(index)}.groupName", message, fix, group.group_name)


def _name_problem(cluster: str, group: WorkerGroupSpec) -> str | None:
    name = group.group_name
    if not name:
        return "it is empty"
    if len(name) > _longest(group):
        return f"it is {len(name)} characters long, at most {_longest(group)} fit"
    if problem := label_value_problem(name):
        return problem
    pod = names.worker_prefix(cluster, name)
    problem = dns1123_subdomain_problem(pod)
    return f"{pod!r} is no valid start of a pod name: {problem}" if problem else None


def _longest(group: WorkerGroupSpec) -> int:
    """A slice of several hosts is named `<group>-<suffix>`, and that is a label value too."""
    return LABEL_LENGTH - (names.SUFFIX_LENGTH + 1 if group.hosts > 1 else 0)


def replica_bounds(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rules 4c to 4e. An absent bound is what the CRD fills in, so rule 4b cannot be broken."""
    for index, group in enumerate(cluster.spec.worker_group_specs):
        path = group_path(index)
        low, high = bounds(group)
        for field, value in (("minReplicas", low), ("maxReplicas", high)):
            if value < 0:
                yield spec_mistake(f"{path}.{field}", f"is {value}, expected 0 or more", f"set {field} to 0 or more")
        if low > high >= 0:
            message = f"minReplicas {low} is greater than maxReplicas {high}"
            yield spec_mistake(
                f"{path}.minReplicas", message, f"set minReplicas to at most {high}, or raise maxReplicas"
            )
