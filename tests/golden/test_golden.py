"""A folder in, a folder out: every object that is built for a RayCluster, as it goes to the API server.

`input.yaml` is a RayCluster, `config.yaml` (if there) the administrator's settings, `output.yaml` the objects: the head,
a worker of each group (both ends of the first slice and the first host of the second where they differ by more than
their names), then the other children.
Run with GOLDEN_UPDATE=1 to write the output anew, and read the difference.
"""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path

import pytest
import yaml
from kubernetes_schemas import NEWEST, OLDEST, schema_faults

from tpu_operator.api.raycluster import RayCluster
from tpu_operator.config import OperatorConfig
from tpu_operator.resources.pods.head import head_pod
from tpu_operator.resources.pods.place import Place
from tpu_operator.resources.pods.worker import WorkerBlueprint
from tpu_operator.resources.registry import desired_children

HERE = Path(__file__).parent
CASES = sorted(path.parent.name for path in HERE.glob("*/input.yaml"))


def read(path: Path) -> dict:
    return yaml.safe_load(path.read_text()) if path.exists() else {}


def cluster_document(case: str) -> dict:
    raw = read(HERE / case / "input.yaml")
    raw["metadata"] |= {"namespace": "team-a", "uid": "00000000-0000-4000-8000-000000000001"}
    return raw


def build(case: str) -> list[dict]:
    cluster = RayCluster.parse(cluster_document(case))
    assert not cluster.problems
    config = OperatorConfig(**read(HERE / case / "config.yaml"))
    objects = [head_pod(cluster, config, name=f"{cluster.name}-head-bcdfg", recreate_hash="0" * 32)]
    for group in cluster.spec.worker_group_specs:
        blueprint = WorkerBlueprint.of(cluster, group, config)
        different = blueprint.identity is not None or group.hosts > 1
        for index, host in dict.fromkeys([(0, 0), (0, group.hosts - 1), (1, 0)] if different else [(0, 0)]):
            place = Place(f"{group.group_name}-slc{index}x", index, host, group.hosts)
            objects.append(blueprint.pod(place, f"{cluster.name}-{group.group_name}-worker-{index}{host}"))
    objects += desired_children(cluster, config)
    return json.loads(json.dumps(objects))


@pytest.fixture(autouse=True)
def _no_version(monkeypatch):
    for module in ("metadata", "environment"):
        monkeypatch.setattr(f"tpu_operator.resources.pods.{module}.STAMP", "tpu-operator/1.2.3")


@pytest.mark.parametrize("case", CASES)
def test_objects_are_those_in_the_folder(case):
    built = build(case)
    path = HERE / case / "output.yaml"
    if os.environ.get("GOLDEN_UPDATE"):
        path.write_text(yaml.safe_dump_all(built, sort_keys=False, width=120, allow_unicode=True))
    assert built == list(yaml.safe_load_all(path.read_text()))


@pytest.mark.parametrize("minor", [OLDEST, NEWEST])
@pytest.mark.parametrize("case", CASES)
def test_objects_are_valid_in_kubernetes(case, minor):
    faults = {f"{o['kind']}/{o['metadata']['name']}": schema_faults(o, minor) for o in build(case)}
    assert not {name: found for name, found in faults.items() if found}


@pytest.mark.parametrize("case", CASES)
def test_the_users_document_is_never_changed(case):
    raw = cluster_document(case)
    before = copy.deepcopy(raw)
    cluster = RayCluster.parse(raw)
    config = OperatorConfig(**read(HERE / case / "config.yaml"))
    settings = config.model_dump()
    head_pod(cluster, config, name="x", recreate_hash="y")
    for group in cluster.spec.worker_group_specs:
        WorkerBlueprint.of(cluster, group, config).pod(Place("s-1", 0, 0, group.hosts), "x")
    desired_children(cluster, config)
    assert raw == before
    assert config.model_dump() == settings


def test_every_schema_fault_is_seen():
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "imagee": "b"}]}}
    assert [fault for minor in (OLDEST, NEWEST) for fault in schema_faults(pod, minor) if "imagee" in fault]
