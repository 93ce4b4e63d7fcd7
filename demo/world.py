"""The cluster as the demo sees and touches it: through the API server only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from devcluster.client import ApiClient

NAMESPACE = "default"
GROUP = "v6e"
INDEX = "ray.io/worker-group-replica-index"
HOST = "ray.io/replica-host-index"


@dataclass(frozen=True, slots=True)
class Host:
    """A worker pod, as much of it as the story needs."""

    name: str
    uid: str
    index: int
    host: int
    state: str
    node: str


@dataclass(frozen=True, slots=True)
class World:
    """What is there, and the ways in which the story changes it."""

    client: ApiClient
    sample: Path

    @property
    def _cluster(self) -> str:
        return f"/apis/ray.io/v1/namespaces/{NAMESPACE}/rayclusters/demo"

    def apply_sample(self) -> None:
        document = yaml.safe_load(self.sample.read_text(encoding="utf-8"))
        self.client.apply(self._cluster, document)

    def hosts(self) -> list[Host]:
        """The worker pods, by slice and host."""
        pods = self._pods("worker")
        found = [
            Host(
                name=pod["metadata"]["name"],
                uid=pod["metadata"]["uid"],
                index=int(pod["metadata"]["labels"][INDEX]),
                host=int(pod["metadata"]["labels"][HOST]),
                state=_state(pod),
                node=pod["spec"].get("nodeName", ""),
            )
            for pod in pods
        ]
        return sorted(found, key=lambda h: (h.index, h.host, h.state))

    def head(self) -> str:
        """State of the head, "" if there is none."""
        heads = self._pods("head")
        return _state(heads[0]) if heads else ""

    def status(self) -> Mapping[str, object]:
        status = self.client.get(self._cluster).get("status") or {}
        assert isinstance(status, dict)
        return status

    def fail(self, host: Host) -> None:
        """Let the pod's container end with an error, as if the process on that TPU host had died."""
        self._patch(
            f"/api/v1/namespaces/{NAMESPACE}/pods/{host.name}", {"metadata": {"labels": {"devcluster/fail": "true"}}}
        )

    def scale(self, replicas: int, workers_to_delete: list[str]) -> None:
        """What the Ray autoscaler does: replicas and workersToDelete of the group by list index, in one JSON patch."""
        path = "/spec/workerGroupSpecs/0"
        self._patch(
            self._cluster,
            [
                {"op": "replace", "path": f"{path}/replicas", "value": replicas},
                {"op": "add", "path": f"{path}/scaleStrategy", "value": {"workersToDelete": workers_to_delete}},
            ],
        )

    def _pods(self, node_type: str) -> list[dict]:  # type: ignore[type-arg]  # pods as the API server writes them
        selector = f"ray.io%2Fcluster%3Ddemo%2Cray.io%2Fnode-type%3D{node_type}"
        items = self.client.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={selector}")["items"]
        assert isinstance(items, list)
        return items

    def _patch(self, path: str, body: object) -> None:
        kind = "json-patch" if isinstance(body, list) else "merge-patch"
        self.client.patch(path, body, f"application/{kind}+json")


def _state(pod: dict) -> str:  # type: ignore[type-arg]
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    conditions = {c["type"]: c["status"] for c in pod.get("status", {}).get("conditions", [])}
    phase = pod.get("status", {}).get("phase", "Pending")
    return "Ready" if phase == "Running" and conditions.get("Ready") == "True" else str(phase)
