"""Field types of the models: strict where a mistake would matter, tolerant where an untyped or older CRD lets more through.

Where KubeRay's CRD is installed the API server has checked all this already. Where it is not, a number in a map of
texts is meant as text (PT-14), and null means that the field is not set (OC-12).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Final, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Strict, model_validator
from pydantic_core import PydanticCustomError, core_schema

from tpu_operator.api.schema import Core, Crd

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler

    from tpu_operator.api.json import JsonObject

INT32_MAX: Final = 2**31 - 1
INT32_MIN: Final = -(2**31)
_ACRONYMS: Final = {"cpu": "CPU", "gpu": "GPU", "ip": "IP", "tpu": "TPU"}


def wire_name(name: str) -> str:
    """Name of an attribute in the API: `desired_cpu` is `desiredCPU`."""
    first, *rest = name.split("_")
    return first + "".join(_ACRONYMS.get(word) or word.capitalize() for word in rest)


def _wrong_type(expected: str) -> PydanticCustomError:
    return PydanticCustomError("wrong_type", "{expected}", {"expected": expected})


def scalar_text(value: object) -> object:
    """Text as the user would have quoted it; `true` and `false` for booleans."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _map_of_texts(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {str(key): scalar_text(item) for key, item in value.items() if item is not None}


def _whole_number(value: object) -> object:
    """A number in digits is text in JSON, and no number (PT-14): only real numbers pass."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_whole(value):
        raise _wrong_type("a whole number")
    return int(value)


def _is_whole(value: float) -> bool:
    return isinstance(value, int) or value.is_integer()


def _int32(value: int) -> int:
    if not INT32_MIN <= value <= INT32_MAX:
        raise _wrong_type(f"a whole number from {INT32_MIN} to {INT32_MAX}")
    return value


class _RawObject:
    """Pydantic takes a JSON object as it is: neither looked into nor copied."""

    def __get_pydantic_core_schema__(self, _: object, __: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(_raw_object)


def _raw_object(value: object) -> object:
    if not isinstance(value, dict):
        raise _wrong_type("an object")
    return value


Text: TypeAlias = Annotated[str, BeforeValidator(scalar_text)]
TextMap: TypeAlias = Annotated[dict[str, str], BeforeValidator(_map_of_texts)]
Flag: TypeAlias = Annotated[bool, Strict()]
Int32: TypeAlias = Annotated[int, BeforeValidator(_whole_number), AfterValidator(_int32), Crd(format="int32")]
Int64: TypeAlias = Annotated[int, BeforeValidator(_whole_number), Crd(format="int64")]
QuantityText: TypeAlias = Annotated[str, BeforeValidator(scalar_text), Core("apimachinery.pkg.api.resource.Quantity")]

if TYPE_CHECKING:
    Manifest: TypeAlias = JsonObject
else:
    Manifest: TypeAlias = Annotated[dict, _RawObject()]


class ApiObject(BaseModel):
    """Base of the models of what users write: frozen, null is unset, fields unknown to us are kept."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        extra="allow",
        alias_generator=wire_name,
        validate_by_name=True,
        validate_by_alias=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_unset(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {key: item for key, item in value.items() if item is not None}
