"""Volumes that the operator mounts: shared memory, logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.resources.tree import entries, mapping, objects

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.resources.pods.draft import Draft, RayNode

LOGS: Final = "ray-logs"
LOGS_PATH: Final = "/tmp/ray"  # noqa: S108  (Ray's own directory for sessions)
_SHARED_MEMORY: Final = "shared-mem"
_SHARED_MEMORY_PATH: Final = "/dev/shm"  # noqa: S108


def mount(draft: Draft, container: JsonObject, volume: JsonObject, path: str, **options: str | bool) -> None:
    """Mount a volume at a path. The user wins: what is mounted there stays, a volume of that name is used."""
    if any(m.get("mountPath") == path for m in objects(container.get("volumeMounts"))):
        return
    volumes = entries(draft.spec, "volumes")
    if all(v.get("name") != volume["name"] for v in volumes):
        volumes.append(volume)
    entries(container, "volumeMounts").append({"name": volume["name"], "mountPath": path, **options})


def shared_memory(node: RayNode, draft: Draft) -> None:
    """Ray's object store wants more shared memory than the 64 MB of a container, unless it lives in a directory."""
    if "plasma-directory" in node.params:
        return
    resources = mapping(draft.ray.get("resources"))
    limit = mapping(resources.get("limits")).get("memory") or mapping(resources.get("requests")).get("memory")
    medium: JsonObject = {"medium": "Memory"}
    if limit:
        medium["sizeLimit"] = str(limit)
    mount(draft, draft.ray, {"name": _SHARED_MEMORY, "emptyDir": medium}, _SHARED_MEMORY_PATH)


def share_logs(draft: Draft, sidecar: str) -> None:
    """The Ray container and a sidecar of that name see the same logs."""
    for container in (draft.ray, draft.container(sidecar)):
        if container is not None:
            mount(draft, container, {"name": LOGS, "emptyDir": {}}, LOGS_PATH)
