"""How a mistake is worded: every check makes its blockers here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from tpu_operator.api.raycluster import RayCluster
from tpu_operator.config import OperatorConfig
from tpu_operator.planning.plan import Blocker

if TYPE_CHECKING:
    from tpu_operator.config import Gate

Check = Callable[[RayCluster, OperatorConfig], Iterable[Blocker]]

METADATA_REASON: Final = "InvalidRayClusterMetadata"
SPEC_REASON: Final = "InvalidRayClusterSpec"

HEAD: Final = "spec.headGroupSpec"
AUTOSCALER: Final = "spec.autoscalerOptions"


def group_path(index: int) -> str:
    """Path of a worker group as the user would write it."""
    return f"spec.workerGroupSpecs[{index}]"


def spec_mistake(field: str, message: str, fix: str, group: str | None = None) -> Blocker:
    """A mistake in the spec; with `group` it holds up that worker group only."""
    return Blocker(SPEC_REASON, field, message, fix, group)


def gate_off(field: str, gate: Gate) -> Blocker:
    """The field belongs to a feature that this operator has been told not to offer."""
    return spec_mistake(
        field,
        f"needs the feature gate {gate}, which is off in this operator",
        f"remove {field}, or have the operator started with feature gate {gate}=true",
    )
