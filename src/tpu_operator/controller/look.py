"""A look at a cluster through the API server, for `tpu-operator plan --server`: reads only."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from tpu_operator.api import names
from tpu_operator.api.raycluster import RayCluster
from tpu_operator.controller.executor import RAYCLUSTERS
from tpu_operator.controller.resources import resource_of
from tpu_operator.errors import Gone
from tpu_operator.kube.client import Client
from tpu_operator.kube.credentials import load_credentials
from tpu_operator.kube.resource import PODS
from tpu_operator.planning.pod import Pod
from tpu_operator.planning.snapshot import Observed
from tpu_operator.resources.owned import owner_uid
from tpu_operator.resources.registry import ChildKey, child_kinds, looked_up, possible_children
from tpu_operator.resources.token_secret import without_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tpu_operator.api.json import JsonObject
    from tpu_operator.config import OperatorConfig

_POD = msgspec.json.Decoder(Pod)


def look_at_server(clusters: Iterable[RayCluster], config: OperatorConfig) -> list[tuple[RayCluster, Observed]]:
    """Each cluster as the manifest would leave it, with what is there for it now."""
    return asyncio.run(_look(list(clusters), config))


async def _look(clusters: list[RayCluster], config: OperatorConfig) -> list[tuple[RayCluster, Observed]]:
    async with Client(await load_credentials()) as client:
        return [await _look_at(client, cluster, config) for cluster in clusters]


async def _look_at(client: Client, cluster: RayCluster, config: OperatorConfig) -> tuple[RayCluster, Observed]:
    try:
        live = await client.get(RAYCLUSTERS, cluster.namespace, cluster.name)
    except Gone:
        return cluster, Observed()
    merged = RayCluster.parse({**cluster.raw, "metadata": live["metadata"], "status": live.get("status") or {}})
    selector = f"{names.CLUSTER}={cluster.name},{names.NODE_TYPE} in ({names.HEAD},{names.WORKER})"
    listing = await client.list(PODS, cluster.namespace, decode=_POD.decode, label_selector=selector)
    own: list[Pod] = []
    foreign: list[Pod] = []
    for pod in listing.items:
        owner = pod.controller()
        (own if owner is not None and owner.uid == merged.uid else foreign).append(pod)
    return merged, await _seen(client, merged, config, Observed(tuple(own), tuple(foreign)))


async def _seen(client: Client, cluster: RayCluster, config: OperatorConfig, pods: Observed) -> Observed:
    """`pods` with the children beside them."""
    kinds = {kind.kind: kind for kind in child_kinds(config)}
    own: dict[ChildKey, JsonObject] = {}
    foreign: dict[ChildKey, JsonObject] = {}
    absent: set[ChildKey] = set()
    watched = {key for key in possible_children(cluster, config) if kinds[key.kind].watched}
    for key in sorted(watched | looked_up(cluster, config)):
        try:
            raw = await client.get(resource_of(kinds[key.kind]), cluster.namespace, key.name)
        except Gone:
            absent.add(key)
            continue
        raw = without_values(raw) if key.kind == "Secret" else raw
        (own if owner_uid(raw.get("metadata")) == cluster.uid else foreign)[key] = raw
    return replace(pods, children=own, foreign_children=foreign, absent=frozenset(absent))
