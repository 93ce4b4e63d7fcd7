"""Everything that a pass may know, read once, as frozen data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.planning.memory import Memory
    from tpu_operator.planning.pod import Pod
    from tpu_operator.resources.registry import ChildKey


@dataclass(frozen=True, slots=True)
class Observed:
    """Objects that are there: the cache with our own writes laid over it.

    `pods` are controlled by this cluster's uid; `foreign_pods` carry its label but belong to somebody else.
    `children` are other kinds, own ones; `foreign_children` have a name that we would use and another controller, or
    are what the user was to make. `absent` is what was looked up by name and is not there. Of Secrets, no values.
    """

    pods: tuple[Pod, ...] = ()
    foreign_pods: tuple[Pod, ...] = ()
    children: Mapping[ChildKey, JsonObject] = field(default_factory=dict)
    foreign_children: Mapping[ChildKey, JsonObject] = field(default_factory=dict)
    absent: frozenset[ChildKey] = frozenset()


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What the Kubernetes cluster offers: API group/versions that it serves, None if that is not known."""

    served: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Input of `plan`. `nonce` is fresh for each pass and the only source of new names."""

    cluster: RayCluster
    observed: Observed
    memory: Memory
    config: OperatorConfig
    now: datetime
    nonce: str
    facts: ClusterFacts = ClusterFacts()
