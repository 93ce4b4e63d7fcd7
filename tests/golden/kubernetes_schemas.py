"""Kubernetes' own JSON schemas, from the kubernetes-validate wheel: no unknown field, no wrong type."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

OLDEST, NEWEST = "1.30", "1.36"


def schema_faults(manifest: dict, minor: str) -> list[str]:
    """What the schema of that minor version says against a manifest; nothing about custom resources."""
    group = manifest["apiVersion"].rpartition("/")[0]
    if "." in group and not re.fullmatch(r"[^.]+(\.authorization)?\.k8s\.io", group):
        return []  # scheduling.volcano.sh, scheduling.x-k8s.io, cert-manager.io: not Kubernetes' own
    api_version = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", manifest["apiVersion"])
    validator = _validator(minor, f"{manifest['kind'].lower()}-{api_version}")
    return [f"{'.'.join(map(str, error.path))}: {error.message[:300]}" for error in validator.iter_errors(manifest)]


@cache
def _validator(minor: str, name: str) -> Draft202012Validator:
    definitions = Resource.from_contents(_read(minor, "_definitions"))
    schema = Resource.from_contents(_read(minor, name))
    registry = schema @ (definitions @ Registry())
    return Draft202012Validator(schema.contents, registry=registry)


@cache
def _read(minor: str, name: str) -> dict:
    folder = files("kubernetes_validate") / "kubernetes-json-schema" / f"v{minor}.0-local-strict"
    return json.loads((folder / f"{name}.json").read_text())
