"""Objects that are looked up by name because no watch shows them: Secrets, and what users promise to make."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Final

import structlog

from tpu_operator.controller.resources import resource_of
from tpu_operator.errors import ApiError, Gone
from tpu_operator.resources.owned import owner_uid
from tpu_operator.resources.registry import CHILD_KINDS, ChildKey
from tpu_operator.resources.token_secret import without_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.kube.client import Client

log = structlog.get_logger()

FRESH: Final = 60.0
"""Seconds for which it is believed that what was found is still there."""

NEWS: Final = 2.0
"""Seconds for which it is believed that what pods wait for is as it was."""

_KINDS: Final = {kind.kind: kind for kind in CHILD_KINDS}


@dataclass(frozen=True, slots=True)
class _Look:
    """What was found, None if nothing was; `until` when it is worth another look."""

    found: JsonObject | None
    until: float


@dataclass(slots=True)
class Lookups:
    """What was found by name, per uid of the cluster. A request for each object now and then, none in most passes."""

    client: Client
    clock: Callable[[], float] = monotonic
    _looks: dict[str, dict[ChildKey, _Look]] = field(default_factory=dict)

    async def refresh(self, cluster: RayCluster, keys: Iterable[ChildKey]) -> None:
        """Look for what is not known or not known any more. What cannot be found out is unknown afterwards."""
        looks = self._looks.get(cluster.uid, {})
        fresh = {key: looks[key] for key in keys if key in looks and looks[key].until > self.clock()}
        for key in sorted(set(keys) - fresh.keys()):
            try:
                fresh[key] = await self._look(cluster, key)
            except ApiError as error:
                log.warning("cannot look up", kind=key.kind, name=key.name, error=error.message)
        if fresh:
            self._looks[cluster.uid] = fresh
        else:
            self.forget(cluster.uid)

    async def _look(self, cluster: RayCluster, key: ChildKey) -> _Look:
        try:
            found = await self.client.get(resource_of(_KINDS[key.kind]), cluster.namespace, key.name)
        except Gone:
            return _Look(None, self.clock() + NEWS)
        # A Secret of somebody else is in the way: how that stands matters as much as what is missing.
        in_the_way = key.kind == "Secret" and owner_uid(found.get("metadata")) != cluster.uid
        return _Look(_reduced(key, found), self.clock() + (NEWS if in_the_way else FRESH))

    def found(self, uid: str) -> dict[ChildKey, JsonObject]:
        """What is there."""
        return {key: look.found for key, look in self._looks.get(uid, {}).items() if look.found is not None}

    def absent(self, uid: str) -> frozenset[ChildKey]:
        """What is not there."""
        return frozenset(key for key, look in self._looks.get(uid, {}).items() if look.found is None)

    def written(self, uid: str, key: ChildKey) -> None:
        """The operator has written it: what was known is void."""
        self._looks.get(uid, {}).pop(key, None)

    def forget(self, uid: str) -> None:
        """The cluster is gone, or nothing of it is looked up."""
        self._looks.pop(uid, None)


def _reduced(key: ChildKey, found: JsonObject) -> JsonObject:
    """The values of Secrets are nobody's business."""
    return without_values(found) if key.kind == "Secret" else found
