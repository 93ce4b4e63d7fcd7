"""RayCluster: the object as the user wrote it, with a parsed view of it.

Every part is exported here: `from tpu_operator.api.raycluster import RayCluster, WorkerGroupSpec`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from tpu_operator.api.auth import AuthOptions
from tpu_operator.api.autoscaler import AutoscalerOptions
from tpu_operator.api.fault_tolerance import GcsFaultToleranceOptions, GcsStorage, RedisCredential
from tpu_operator.api.groups import (
    HeadGroupSpec,
    IngressOptions,
    IngressTls,
    NodeGroup,
    ScaleStrategy,
    WorkerGroupSpec,
)
from tpu_operator.api.history_server import CollectorOptions, HistoryServerOptions
from tpu_operator.api.metadata import ObjectMeta
from tpu_operator.api.network_policy import GroupNetworkPolicyRules, NetworkPolicyOptions, NetworkPolicyRules
from tpu_operator.api.problem import MISSING, FieldProblem, problem
from tpu_operator.api.spec import RayClusterSpec, TlsOptions, UpgradeStrategy
from tpu_operator.api.status import RayClusterStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_core import ErrorDetails

    from tpu_operator.api.json import JsonObject, JsonValue

__all__ = [
    "AuthOptions",
    "AutoscalerOptions",
    "CollectorOptions",
    "FieldProblem",
    "GcsFaultToleranceOptions",
    "GcsStorage",
    "GroupNetworkPolicyRules",
    "HeadGroupSpec",
    "HistoryServerOptions",
    "IngressOptions",
    "IngressTls",
    "NetworkPolicyOptions",
    "NetworkPolicyRules",
    "NodeGroup",
    "ObjectMeta",
    "RayCluster",
    "RayClusterSpec",
    "RayClusterStatus",
    "RedisCredential",
    "ScaleStrategy",
    "TlsOptions",
    "UpgradeStrategy",
    "WorkerGroupSpec",
]

# A value in error is left out; where it is required, the next round finds it missing. A list item, which cannot be
# left out, becomes an empty object and then misses its own fields.
_ROUNDS: Final = 4
_STAND_INS: Final[Mapping[str | int, JsonValue]] = {"groupName": "", "template": {}, "headGroupSpec": {"template": {}}}


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A RayCluster of ray.io/v1. `raw` is the user's document, never changed; the rest is what we understand of it.

    Fields in `problems` could not be read: in `spec` they look as if they were not set (required ones are empty), so
    a cluster with problems must not be acted on.
    """

    raw: JsonObject
    metadata: ObjectMeta
    spec: RayClusterSpec
    status: RayClusterStatus
    problems: tuple[FieldProblem, ...] = ()

    @classmethod
    def parse(cls, raw: JsonObject) -> RayCluster:
        """Read any JSON object; never raises, one odd object must not stop the others (KF-26)."""
        spec, problems = _parse_spec(raw.get("spec"))
        return cls(
            raw=raw,
            metadata=ObjectMeta.parse(raw.get("metadata")),
            spec=spec,
            status=RayClusterStatus.parse(raw.get("status")),
            problems=problems,
        )

    @property
    def name(self) -> str:
        """metadata.name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """metadata.namespace."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """metadata.uid."""
        return self.metadata.uid

    @property
    def generation(self) -> int:
        """metadata.generation: grows with each change of the spec."""
        return self.metadata.generation

    @property
    def labels(self) -> Mapping[str, str]:
        """metadata.labels."""
        return self.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """metadata.annotations."""
        return self.metadata.annotations


def _parse_spec(raw: JsonValue) -> tuple[RayClusterSpec, tuple[FieldProblem, ...]]:
    if raw is None:
        return RayClusterSpec.empty(), (FieldProblem("spec", MISSING, "an object"),)
    try:
        return RayClusterSpec.model_validate(raw), ()
    except ValidationError as error:
        errors = error.errors(include_url=False)
        return _readable(raw, errors), tuple(problem(item, "spec") for item in errors)


def _readable(raw: JsonValue, errors: Sequence[ErrorDetails]) -> RayClusterSpec:
    """The spec without the values in error, so that validation can name mistakes in the rest at the same time."""
    for _ in range(_ROUNDS):
        for error in errors:
            raw = _without(raw, error["loc"], error["type"])
        try:
            return RayClusterSpec.model_validate(raw)
        except ValidationError as again:
            errors = again.errors(include_url=False)
    return RayClusterSpec.empty()


def _without(value: JsonValue, path: Sequence[str | int], kind: str) -> JsonValue:
    """A copy of `value`, as deep as `path`, with a stand-in or nothing at its end."""
    if not path:
        return value
    step, *rest = path
    if isinstance(value, list) and isinstance(step, int):
        end: JsonValue = "" if kind == "string_type" else {}
        item = _without(value[step], rest, kind) if rest else end
        return [*value[:step], item, *value[step + 1 :]]
    if not isinstance(value, dict) or not isinstance(step, str):
        return value
    if rest:
        return {**value, step: _without(value.get(step), rest, kind)}
    if kind == "missing":
        return {**value, step: _STAND_INS.get(step)}
    return {key: item for key, item in value.items() if key != step}
