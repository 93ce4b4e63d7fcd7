"""The cluster's name: every child's name, label and DNS name is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.api.labels_syntax import dns1035_label_problem
from tpu_operator.planning.plan import Blocker
from tpu_operator.planning.validation.mistake import METADATA_REASON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig


def cluster_name(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """At most 53 characters, which leaves room for `-serve-svc`, and a DNS-1035 label (rules 9.1, NM-02)."""
    name = cluster.name
    if len(name) > names.MAX_CLUSTER_NAME:
        message = f"is {len(name)} characters long, at most {names.MAX_CLUSTER_NAME} are allowed"
        yield Blocker(METADATA_REASON, "metadata.name", message, "create the RayCluster under a shorter name")
    elif problem := dns1035_label_problem(name):
        message = f"{name!r} cannot be the name of a Service: {problem}"
        fix = "use lower-case letters, digits and dashes only, with a letter first and no dash last"
        yield Blocker(METADATA_REASON, "metadata.name", message, fix)
