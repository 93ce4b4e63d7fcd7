"""The status of a RayCluster: KubeRay's fields, which its clients read, and our slices by worker group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, cast

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from tpu_operator.api.fields import Int32, Int64, QuantityText, Text, TextMap, wire_name
from tpu_operator.api.metadata import format_time
from tpu_operator.api.schema import Crd
from tpu_operator.api.structural import QUALIFIED_NAME_PATTERN, REASON_PATTERN

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject, JsonValue

_CONFIG: Final = ConfigDict(alias_generator=wire_name, validate_by_name=True, validate_by_alias=True)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as in metav1.Condition. `status` is True, False or Unknown."""

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    type: Annotated[Text, Crd("Type of the condition.", required=True, max_length=316, pattern=QUALIFIED_NAME_PATTERN)]
    status: Annotated[Text, Crd("True, False or Unknown.", required=True, enum=("True", "False", "Unknown"))]
    reason: Annotated[
        Text,
        Crd(
            "Why, in one word.",
            required=True,
            min_length=1,
            max_length=1024,
            pattern=REASON_PATTERN,
        ),
    ] = ""
    message: Annotated[Text, Crd("Why, for people.", required=True, max_length=32768)] = ""
    last_transition_time: Annotated[datetime | None, Crd("When status changed last.", required=True)] = None
    observed_generation: Annotated[Int64 | None, Crd("Generation of the object that this was said of.", minimum=0)] = (
        None
    )

    def to_json(self) -> JsonObject:
        """As the API has it; reason and message are there even if they are empty."""
        return {**_wire(self), "message": self.message, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class HeadInfo:
    """Names and addresses of the head's pod and service."""

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    pod_ip: Annotated[Text, Crd("Address of the head pod.")] = ""
    pod_name: Annotated[Text, Crd("Name of the head pod.", v1_only=True)] = ""
    service_ip: Annotated[Text, Crd("Address of the head service; the pod's if it is headless.")] = ""
    service_name: Annotated[Text, Crd("Name of the head service.", v1_only=True)] = ""

    def to_json(self) -> JsonObject:
        """As the API has it."""
        return _wire(self)


@dataclass(frozen=True, slots=True)
class WorkerGroupStatus:
    """How many slices of a worker group there are, by state. Its name is `name` in the API."""

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    group_name: Annotated[Text, Field(alias="name"), Crd("Name of the worker group.", required=True)]
    desired_slices: Annotated[Int32, Crd("Slices wanted, within minReplicas and maxReplicas.")] = 0
    ready_slices: Annotated[Int32, Crd("Slices of which every host is ready.")] = 0
    forming_slices: Annotated[Int32, Crd("Slices that are on their way to be ready.")] = 0
    broken_slices: Annotated[Int32, Crd("Slices that lost a host and are replaced as a whole.")] = 0

    def to_json(self) -> JsonObject:
        """As the API has it; a number of 0 is told too."""
        return {
            "name": self.group_name,
            "desiredSlices": self.desired_slices,
            "readySlices": self.ready_slices,
            "formingSlices": self.forming_slices,
            "brokenSlices": self.broken_slices,
        }


@dataclass(frozen=True, slots=True)
class RayClusterStatus:
    """What the operator tells about the cluster. Quantities are in Kubernetes' canonical notation."""

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    state: Annotated[Text, Crd("ready, suspended, or nothing.")] = ""
    reason: Annotated[Text, Crd("Kept for old clients; see conditions.")] = ""
    conditions: Annotated[
        tuple[Condition, ...],
        Crd("Readiness and the like, by type; Ready and Stalled sum it up.", keys=("type",), v1_only=True),
    ] = ()
    desired_worker_replicas: Annotated[Int32, Crd("Worker pods wanted.")] = 0
    min_worker_replicas: Annotated[Int32, Crd("Least number of worker pods.")] = 0
    max_worker_replicas: Annotated[Int32, Crd("Greatest number of worker pods.")] = 0
    ready_worker_replicas: Annotated[Int32, Crd("Worker pods that are ready.")] = 0
    available_worker_replicas: Annotated[Int32, Crd("Worker pods that run.")] = 0
    desired_cpu: Annotated[QuantityText | None, Crd("CPUs wanted by head and workers.")] = None
    desired_memory: Annotated[QuantityText | None, Crd("Memory wanted by head and workers.")] = None
    desired_gpu: Annotated[QuantityText | None, Crd("GPUs wanted by head and workers.")] = None
    desired_tpu: Annotated[QuantityText | None, Crd("TPU chips wanted by head and workers.")] = None
    endpoints: Annotated[TextMap, Crd("Ports of the head service by name.")] = field(default_factory=dict)
    head: Annotated[HeadInfo, Crd("Head pod and head service.")] = field(default_factory=HeadInfo)
    last_update_time: Annotated[datetime | None, Crd("When status was written last.", nullable=True)] = None
    state_transition_times: Annotated[
        Mapping[str, datetime], Crd("When each state was entered last.", v1_only=True)
    ] = field(default_factory=dict)
    observed_generation: Annotated[Int64, Crd("Generation of the object that this was said of.")] = 0
    worker_groups: Annotated[
        tuple[WorkerGroupStatus, ...], Crd("Slices of each worker group.", keys=("name",), v1_only=True)
    ] = ()

    @classmethod
    def parse(cls, raw: JsonValue) -> RayClusterStatus:
        """Read a status; one that cannot be read counts as empty, since it is written anew anyhow."""
        try:
            return _ADAPTER.validate_python(_without_nulls(raw if isinstance(raw, dict) else {}))
        except ValidationError:
            return cls()

    def to_json(self) -> JsonObject:
        """As the API has it. Like KubeRay's Go types, it leaves out what is zero or empty, but for `head`."""
        return {**_wire(self), "head": self.head.to_json()}


_ADAPTER: Final = TypeAdapter(RayClusterStatus)


def _without_nulls(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _wire(value: Condition | HeadInfo | RayClusterStatus) -> JsonObject:
    """All fields that are set, under the names of the API."""
    given = {wire_name(f.name): getattr(value, f.name) for f in fields(value)}
    return {name: _json(item) for name, item in given.items() if item not in (None, "", 0, (), {})}


def _json(value: object) -> JsonValue:
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, Condition | HeadInfo | WorkerGroupStatus):
        return value.to_json()
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _json(item) for key, item in value.items()}
    return str(value) if isinstance(value, str) else cast("int", value)
