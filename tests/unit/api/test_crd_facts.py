"""The CRD that we generate against the facts about KubeRay's, path by path.

`data/raycluster_paths.tsv`: path, type and attributes of every path of KubeRay v1.7's CRD. Where a schema is one of
Kubernetes' own types (`core=`), the fact is its size as JSON, which is as good as a checksum here.
"""

from __future__ import annotations

import importlib.util
import json
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from tpu_operator.api.crd import ADDITIONS, build_crd
from tpu_operator.api.structural import core_schema

ROOT = Path(__file__).parents[3]
FACTS = Path(__file__).parent / "data" / "raycluster_paths.tsv"
CRD_FILE = ROOT / "crds" / "ray.io_rayclusters.yaml"
ATTRIBUTES = (
    ("format", "format"),
    ("default", "default"),
    ("enum", "enum"),
    ("nullable", "nullable"),
    ("pattern", "pattern"),
    ("minimum", "minimum"),
    ("minLength", "minLength"),
    ("maxLength", "maxLength"),
    ("x-kubernetes-int-or-string", "int-or-string"),
    ("x-kubernetes-list-map-keys", "list-map-keys"),
    ("x-kubernetes-list-type", "list-type"),
    ("x-kubernetes-map-type", "map-type"),
)


@cache
def generator():
    spec = importlib.util.spec_from_file_location("generate_crd", ROOT / "scripts" / "generate_crd.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def crd():
    return build_crd(generator().core_schemas())


def versions():
    return {v["name"]: v for v in crd()["spec"]["versions"]}


def facts():
    """Path to (type, set of attributes)."""
    found = {}
    for line in FACTS.read_text().splitlines():
        path, kind, attributes = (*line.split("\t"), "")[:3]
        found[path] = (kind, frozenset(re.findall(r'(?:CEL )?[\w-]+=(?:\[.*?\]|"(?:[^"\\]|\\.)*"|\S+)', attributes)))
    return found


def attributes(schema):
    for key, name in ATTRIBUTES:
        if key in schema:
            yield f"{name}={json.dumps(schema[key])}"
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"CEL rule={json.dumps(rule['rule'])}"
    if "required" in schema:
        yield f"required={','.join(schema['required'])}"


def size(schema):
    return len(json.dumps({key: value for key, value in schema.items() if key != "description"}))


def rows(path, schema, known):
    """What `facts()` has, for a schema; it ends where the facts tell of a type of Kubernetes."""
    kind = "int-or-string" if schema.get("x-kubernetes-int-or-string") else schema["type"]
    core = next((a for a in known.get(path, ("", ()))[1] if a.startswith("core=")), None)
    if core:
        yield path, (kind, frozenset((core, f"bytes={size(schema)}")))
        return
    yield path, (kind, frozenset(attributes(schema)))
    for name, item in schema.get("properties", {}).items():
        yield from rows(f"{path}.{name}", item, known)
    if "items" in schema:
        yield from rows(f"{path}[]", schema["items"], known)
    if "additionalProperties" in schema:
        yield from rows(path + "{}", schema["additionalProperties"], known)


def ours():
    known = facts()
    return {
        path: row
        for name, version in versions().items()
        for path, row in rows(name, version["schema"]["openAPIV3Schema"], known)
    }


def is_addition(path):
    return path in ADDITIONS or path.startswith(tuple(f"{added}{mark}" for added in ADDITIONS for mark in ".[{"))


def test_every_path_of_kuberay_is_there_with_the_same_type_and_attributes():
    mine = ours()
    different = {path: (fact, mine.get(path)) for path, fact in facts().items() if mine.get(path) != fact}
    assert different == {}


def test_nothing_is_added_but_what_is_listed_with_a_reason():
    added = [path for path in ours() if path not in facts() and not is_addition(path)]
    assert added == []
    assert all(reason for reason in ADDITIONS.values())


def test_listed_additions_are_there():
    assert ADDITIONS.keys() <= ours().keys()


def test_the_facts_are_complete():
    assert len(facts()) > 400
    assert sum(any(a.startswith("core=") for a in attributes) for _, attributes in facts().values()) == 18


def test_the_file_is_what_the_models_say():
    assert CRD_FILE.read_text() == generator().render(crd()), "run `python scripts/generate_crd.py`"


def test_the_yaml_reads_as_what_was_generated():
    assert yaml.load(CRD_FILE.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) == crd()


def test_the_file_has_no_anchors_and_stays_small():
    text = CRD_FILE.read_text()
    assert not re.search(r": [&*]id\d+", text)
    assert len(text) < 700_000
    assert len(json.dumps(crd(), separators=(",", ":"))) < 350_000


def test_names_of_the_resource():
    assert crd()["metadata"]["name"] == "rayclusters.ray.io"
    assert crd()["spec"]["names"] == {
        "categories": ["all"],
        "kind": "RayCluster",
        "listKind": "RayClusterList",
        "plural": "rayclusters",
        "singular": "raycluster",
    }


def test_both_versions_are_served_and_v1_is_stored():
    told = {name: (v["served"], v["storage"], v.get("deprecated", False)) for name, v in versions().items()}
    assert told == {"v1": (True, True, False), "v1alpha1": (True, False, True)}
    assert all(v["subresources"] == {"status": {}} for v in versions().values())


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_columns_are_those_that_kubectl_users_know(version):
    told = [
        (c["name"], c["type"], c["jsonPath"], c.get("priority", 0))
        for c in versions()[version]["additionalPrinterColumns"]
    ]
    assert told == [
        ("desired workers", "integer", ".status.desiredWorkerReplicas", 0),
        ("available workers", "integer", ".status.availableWorkerReplicas", 0),
        ("cpus", "string", ".status.desiredCPU", 0),
        ("memory", "string", ".status.desiredMemory", 0),
        ("gpus", "string", ".status.desiredGPU", 0),
        ("tpus", "string", ".status.desiredTPU", 1),
        ("status", "string", ".status.state", 0),
        ("age", "date", ".metadata.creationTimestamp", 0),
        ("head pod IP", "string", ".status.head.podIP", 1),
        ("head service IP", "string", ".status.head.serviceIP", 1),
    ]


def schemas(schema):
    yield schema
    for item in schema.get("properties", {}).values():
        yield from schemas(item)
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from schemas(schema[key])


def everything():
    return [s for v in versions().values() for s in schemas(v["schema"]["openAPIV3Schema"])]


def test_schemas_are_structural():
    for schema in everything():
        assert schema.keys().isdisjoint({"$ref", "oneOf", "allOf", "not", "patternProperties"})
        assert isinstance(schema.get("type", ""), str)
        assert ("type" in schema) != bool(schema.get("x-kubernetes-int-or-string"))


def test_keys_of_associative_lists_are_required_or_defaulted():
    lists = [s for s in everything() if s.get("x-kubernetes-list-type") == "map"]
    assert lists
    for schema in lists:
        item = schema["items"]
        for key in schema["x-kubernetes-list-map-keys"]:
            assert key in item.get("required", ()) or "default" in item["properties"][key]


def test_every_field_of_ours_is_explained():
    spec = versions()["v1"]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    group = spec["workerGroupSpecs"]["items"]["properties"]
    assert all(field["description"] for field in (*spec.values(), *group.values()))


def test_a_type_that_kubernetes_does_not_have_is_an_error():
    with pytest.raises(KeyError):
        core_schema({}, "api.core.v1.PodTemplateSpec")
