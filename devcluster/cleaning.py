"""Emptying a namespace where no controller does it."""

from collections.abc import Iterator
from typing import NotRequired, TypedDict, cast

from devcluster.client import ApiClient


class _Resource(TypedDict):
    name: str
    namespaced: bool
    verbs: list[str]


class _Resources(TypedDict):
    resources: list[_Resource]


class _Version(TypedDict):
    groupVersion: str


class _Group(TypedDict):
    preferredVersion: _Version


class _Groups(TypedDict):
    groups: list[_Group]


class _Metadata(TypedDict):
    name: str
    finalizers: NotRequired[list[str]]


class _Object(TypedDict):
    metadata: _Metadata


class _Objects(TypedDict):
    items: list[_Object]


def empty(client: ApiClient, namespace: str) -> None:
    """Delete every object of `namespace`, finalizers or not, without grace periods.

    A bare plane has no namespace controller; what one test left would be seen by the operator of the next.
    """
    for prefix, plural in _kinds(client):
        collection = f"{prefix}/namespaces/{namespace}/{plural}"
        client.delete(f"{collection}?gracePeriodSeconds=0")
        for name in _held(client, collection):
            client.merge(f"{collection}/{name}", {"metadata": {"finalizers": None}})


def _kinds(client: ApiClient) -> Iterator[tuple[str, str]]:
    """Yield (API prefix, plural) of what can be deleted as a collection; custom resources first, they are owners."""
    prefixes = [f"/apis/{version}" for version in sorted(_preferred_versions(client), key=_is_built_in)]
    for prefix in [*prefixes, "/api/v1"]:
        answer = cast("_Resources", client.get(prefix))
        for kind in answer["resources"]:
            if kind["namespaced"] and "deletecollection" in kind["verbs"]:
                yield prefix, kind["name"]


def _preferred_versions(client: ApiClient) -> list[str]:
    answer = cast("_Groups", client.get("/apis"))
    return [group["preferredVersion"]["groupVersion"] for group in answer["groups"]]


def _is_built_in(version: str) -> bool:
    group = version.split("/", maxsplit=1)[0]
    return "." not in group or group.endswith(".k8s.io")


def _held(client: ApiClient, collection: str) -> list[str]:
    """Return the names of the objects that only their finalizers keep."""
    answer = cast("_Objects", client.get(collection))
    return [item["metadata"]["name"] for item in answer["items"] if "finalizers" in item["metadata"]]
