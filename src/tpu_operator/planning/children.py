"""Children other than pods: what should be there against what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.planning.plan import Apply, DeleteChild, Notice, Part, Reason
from tpu_operator.resources.diff import covers, must_be_replaced
from tpu_operator.resources.registry import ChildKey, desired_children, possible_children

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.planning.plan import Action
    from tpu_operator.planning.snapshot import Snapshot


def plan_children(snapshot: Snapshot) -> Part:
    """Apply what is missing or has drifted, delete what is ours and unwanted, leave alone what is somebody else's."""
    cluster, observed = snapshot.cluster, snapshot.observed
    desired = {child_key(m): m for m in desired_children(cluster, snapshot.config)}
    foreign = [key for key in desired if key in observed.foreign_children]
    actions = [a for key, m in desired.items() if key not in foreign and (a := _action(snapshot, key, m))]
    actions += [
        DeleteChild(key, uid)
        for key in sorted(possible_children(cluster, snapshot.config) - desired.keys())
        if (live := observed.children.get(key)) and (uid := _uid(live))
    ]
    return Part(actions=tuple(actions), notices=tuple(_foreign(key) for key in foreign))


def child_key(manifest: JsonObject) -> ChildKey:
    """Kind and name of a manifest."""
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    return ChildKey(str(manifest["kind"]), str(metadata["name"]))


def _action(snapshot: Snapshot, key: ChildKey, manifest: JsonObject) -> Action | None:
    """What the API server would refuse to change is deleted; its going wakes the pass that makes it anew."""
    live = snapshot.observed.children.get(key)
    if live is None:
        return Apply(key, manifest, Reason.CHILD_WANTED)
    if covers(live, manifest):
        return None
    if must_be_replaced(live, manifest):
        uid = _uid(live)
        return DeleteChild(key, uid, Reason.CHILD_CHANGED) if uid else None
    return Apply(key, manifest, Reason.CHILD_CHANGED)


def _uid(live: JsonObject) -> str:
    """Uid of a child that is not on its way out already."""
    metadata = live.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("deletionTimestamp"):
        return ""
    return str(metadata.get("uid", ""))


def _foreign(key: ChildKey) -> Notice:
    text = f"{key.kind} {key.name} is there already and belongs to somebody else: it is left alone; rename or delete it"
    return Notice(f"foreign/{key.kind}/{key.name}", "NameTaken", text, action="Create")
