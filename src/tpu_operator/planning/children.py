"""Children other than pods: what should be there against what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.planning.plan import Apply, DeleteChild, Notice, Part, Reason, Waiting
from tpu_operator.resources.diff import covers, must_be_replaced
from tpu_operator.resources.gcs_storage import as_it_is, drift, may_be_used
from tpu_operator.resources.registry import (
    ChildKey,
    ChildKind,
    Update,
    child_kinds,
    desired_children,
    possible_children,
)
from tpu_operator.resources.tree import mapping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.json import JsonObject
    from tpu_operator.planning.snapshot import Snapshot

LOOK_AGAIN: Final = 5.0
"""Seconds until an object that no watch shows is looked for once more."""


def plan_children(snapshot: Snapshot) -> Part:
    """Apply what is missing or has drifted, delete what is ours and unwanted, leave alone what is somebody else's."""
    desired = {child_key(m): m for m in desired_children(snapshot.cluster, snapshot.config, snapshot.facts.served)}
    kinds = {kind.kind: kind for kind in child_kinds(snapshot.config, snapshot.facts.served)}
    total = Part()
    for key, manifest in desired.items():
        total = total.plus(_child(snapshot, kinds[key.kind], key, manifest))
    unwanted = (DeleteChild(key, uid) for key, uid in _unwanted(snapshot, kinds, frozenset(desired)))
    return total.plus(Part(actions=tuple(unwanted)))


def child_key(manifest: JsonObject) -> ChildKey:
    """Kind and name of a manifest."""
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    return ChildKey(str(manifest["kind"]), str(metadata["name"]))


def _child(snapshot: Snapshot, kind: ChildKind, key: ChildKey, manifest: JsonObject) -> Part:
    observed = snapshot.observed
    if (found := observed.foreign_children.get(key)) is not None:
        return Part(notices=tuple(_foreign(snapshot, kind, key, found)))
    if why := _held_back(snapshot, kind, key):
        return Part(waiting=(why,))
    live = observed.children.get(key)
    if live is None:
        return Part(actions=(Apply(key, manifest, Reason.CHILD_WANTED),))
    match kind.update:
        case Update.APPLY:
            return _changed(key, live, manifest)
        case Update.CREATE_ONLY:
            return Part() if kind.is_complete(live) else Part(actions=(Apply(key, manifest, Reason.CHILD_CHANGED),))
        case Update.KEEP_SPEC:
            return _kept(key, live, manifest)


def _held_back(snapshot: Snapshot, kind: ChildKind, key: ChildKey) -> Waiting | None:
    what, observed = f"{key.kind} {key.name}", snapshot.observed
    refusal = snapshot.memory.refused_children.get(key)
    if refusal is not None and (pause := refusal.waits(snapshot.now)) > 0:
        return Waiting(what, "the API server refused it", pause)
    unknown = not kind.watched and key not in observed.children and key not in observed.absent
    return Waiting(what, "it could not be looked up", LOOK_AGAIN) if unknown else None


def _changed(key: ChildKey, live: JsonObject, manifest: JsonObject) -> Part:
    """What the API server would refuse to change is deleted; its going wakes the pass that makes it anew."""
    if covers(live, manifest):
        return Part()
    if must_be_replaced(live, manifest):
        uid = _uid(live)
        return Part(actions=(DeleteChild(key, uid, Reason.CHILD_CHANGED),) if uid else ())
    return Part(actions=(Apply(key, manifest, Reason.CHILD_CHANGED),))


def _kept(key: ChildKey, live: JsonObject, manifest: JsonObject) -> Part:
    """A claim holds data: that it is not as the spec says is told, not changed."""
    part = Part()
    if different := "; ".join(drift(live, manifest)):
        text = f"PVC {key.name} is kept as it is, which the spec no longer asks for: {different}"
        part = Part(notices=(Notice(f"drift/{key.name}/{different}", "FailedToCreatePVC", text, action="Update"),))
    return part.plus(_changed(key, live, as_it_is(manifest, live)))


def _unwanted(
    snapshot: Snapshot, kinds: dict[str, ChildKind], desired: frozenset[ChildKey]
) -> Iterator[tuple[ChildKey, str]]:
    """Own children of features that are off, and those left under a name that is not used any more."""
    possible = possible_children(snapshot.cluster, snapshot.config, snapshot.facts.served)
    for key, live in sorted(snapshot.observed.children.items()):
        kind = kinds.get(key.kind)
        if kind is None or not kind.removable or key in desired:
            continue
        labels = mapping(mapping(live.get("metadata")).get("labels"))
        if (key in possible or kind.is_leftover(labels)) and (uid := _uid(live)):
            yield key, uid


def _uid(live: JsonObject) -> str:
    """Uid of a child that is not on its way out already."""
    metadata = live.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("deletionTimestamp"):
        return ""
    return str(metadata.get("uid", ""))


def _foreign(snapshot: Snapshot, kind: ChildKind, key: ChildKey, found: JsonObject) -> Iterator[Notice]:
    """An object of somebody else under a name that we would use."""
    if kind.update is Update.KEEP_SPEC and may_be_used(found, snapshot.cluster):
        return
    text = f"{key.kind} {key.name} is there already and belongs to somebody else: it is left alone; rename or delete it"
    yield Notice(f"foreign/{key.kind}/{key.name}", "NameTaken", text, action="Create")
