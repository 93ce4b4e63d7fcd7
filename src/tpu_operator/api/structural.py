"""Schemas of Kubernetes' own types, made fit for a CRD.

A CRD takes structural schemas only: no references, one type each, no `oneOf` but for int-or-string. The result is
what controller-gen makes of the Go types, without descriptions, so that a pod template is pruned, defaulted and merged
in a RayCluster as KubeRay's CRD does it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from tpu_operator.api.json import JsonObject, JsonValue

CoreSchemas: TypeAlias = Mapping[str, JsonObject]
"""OpenAPI definitions by name, such as `io.k8s.api.core.v1.Container`; `$ref`s end in such a name."""

PREFIX: Final = "io.k8s."
QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
    r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
QUALIFIED_NAME_PATTERN: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
REASON_PATTERN: Final = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
CONDITION_CHECKS: Final[Mapping[str, JsonObject]] = {
    "message": {"maxLength": 32768},
    "observedGeneration": {"minimum": 0},
    "reason": {"maxLength": 1024, "minLength": 1, "pattern": REASON_PATTERN},
    "status": {"enum": ["True", "False", "Unknown"]},
    "type": {"maxLength": 316, "pattern": QUALIFIED_NAME_PATTERN},
}
INT_OR_STRING: Final[JsonObject] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_STRING: Final[JsonObject] = {"type": "string"}
_STRINGS: Final[JsonObject] = {"additionalProperties": _STRING, "type": "object"}

# What is not a plain structure in OpenAPI. An embedded metadata has just the fields that make sense in a template.
_SPECIAL: Final[Mapping[str, JsonObject]] = {
    "apimachinery.pkg.api.resource.Quantity": {**INT_OR_STRING, "pattern": QUANTITY_PATTERN},
    "apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING,
    "apimachinery.pkg.apis.meta.v1.Time": {"format": "date-time", "type": "string"},
    "apimachinery.pkg.apis.meta.v1.ObjectMeta": {
        "properties": {
            "annotations": _STRINGS,
            "finalizers": {"items": _STRING, "type": "array"},
            "labels": _STRINGS,
            "name": _STRING,
            "namespace": _STRING,
        },
        "type": "object",
    },
}

# Defaults in the Go types' markers, which the OpenAPI document does not tell. Those of key fields of associative lists
# are indispensable: without them an item of such a list has no identity.
_DEFAULTS: Final[Mapping[str, Mapping[str, str | bool]]] = {
    "api.core.v1.AzureDiskVolumeSource": {"fsType": "ext4", "readOnly": False},
    "api.core.v1.ConfigMapEnvSource": {"name": ""},
    "api.core.v1.ConfigMapKeySelector": {"name": ""},
    "api.core.v1.ConfigMapProjection": {"name": ""},
    "api.core.v1.ConfigMapVolumeSource": {"name": ""},
    "api.core.v1.ContainerPort": {"protocol": "TCP"},
    "api.core.v1.FileKeySelector": {"optional": False},
    "api.core.v1.GRPCAction": {"service": ""},
    "api.core.v1.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "api.core.v1.LocalObjectReference": {"name": ""},
    "api.core.v1.RBDVolumeSource": {"keyring": "/etc/ceph/keyring", "pool": "rbd", "user": "admin"},
    "api.core.v1.ScaleIOVolumeSource": {"fsType": "xfs", "storageMode": "ThinProvisioned"},
    "api.core.v1.SecretEnvSource": {"name": ""},
    "api.core.v1.SecretKeySelector": {"name": ""},
    "api.core.v1.SecretProjection": {"name": ""},
    "api.core.v1.ServicePort": {"protocol": "TCP"},
}

# Types that embed LocalObjectReference, which is atomic; in OpenAPI the mark gets lost.
_ATOMIC: Final = frozenset(
    {
        "api.core.v1.ConfigMapEnvSource",
        "api.core.v1.ConfigMapProjection",
        "api.core.v1.ConfigMapVolumeSource",
        "api.core.v1.SecretEnvSource",
        "api.core.v1.SecretProjection",
    }
)

# Checks in the Go types' markers, by type and field.
_CHECKS: Final[Mapping[str, Mapping[str, JsonObject]]] = {
    "api.core.v1.PortStatus": {"error": {"maxLength": 316, "pattern": QUALIFIED_NAME_PATTERN}},
    "apimachinery.pkg.apis.meta.v1.Condition": CONDITION_CHECKS,
}

# KubeRay's CRD inherits this mark, although the field is optional in Go and in OpenAPI.
_REQUIRED_TOO: Final[Mapping[str, tuple[str, ...]]] = {"api.core.v1.PortStatus": ("error",)}

_KEPT: Final = (
    "format",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
)


def core_schema(core: CoreSchemas, name: str) -> JsonObject:
    """Structural schema of the type `name` (without `io.k8s.`). Raises KeyError if `core` lacks it or a part of it."""
    if name in _SPECIAL:
        return _SPECIAL[name]
    schema = _structural(core, core[f"{PREFIX}{name}"])
    marks: dict[str, JsonObject] = {key: {"default": value} for key, value in _DEFAULTS.get(name, {}).items()}
    properties = cast("dict[str, JsonObject]", schema.get("properties", {}))
    for key, mark in {**marks, **_CHECKS.get(name, {})}.items():
        properties[key] = {**mark, **properties[key]}
    if name in _REQUIRED_TOO:
        required = cast("list[str]", schema.get("required", []))
        schema["required"] = sorted((*required, *_REQUIRED_TOO[name]))  # type: ignore[assignment]
    if name in _ATOMIC:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def _structural(core: CoreSchemas, schema: JsonObject) -> JsonObject:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return core_schema(core, reference.rpartition("/")[2].removeprefix(PREFIX))
    made: JsonObject = {key: schema[key] for key in _KEPT if key in schema}
    made["type"] = _type(schema["type"])
    for key in ("additionalProperties", "items"):
        if key in schema:
            made[key] = _structural(core, cast("JsonObject", schema[key]))
    if "properties" in schema:
        properties = cast("dict[str, JsonObject]", schema["properties"])
        made["properties"] = {name: _structural(core, item) for name, item in sorted(properties.items())}
    if "required" in schema:
        made["required"] = sorted(cast("list[str]", schema["required"]))  # type: ignore[assignment]
    return made


def _type(value: JsonValue) -> JsonValue:
    """OpenAPI's type; the definitions we read allow null everywhere, by a list of two types."""
    return next(item for item in value if item != "null") if isinstance(value, list) else value
