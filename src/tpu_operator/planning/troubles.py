"""Events about what the API server refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.planning.announcement import Announcement
from tpu_operator.planning.nouns import noun
from tpu_operator.planning.outcome import Outcome, Outcomes, Result
from tpu_operator.planning.plan import Apply, CreateHead, CreateSlice, DeleteChild, DeleteHead, DeleteSlice, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tpu_operator.planning.snapshot import Snapshot


def troubles(snapshot: Snapshot, outcomes: Outcomes) -> Iterator[Announcement]:
    """Refusals, each once. Of refused creates the memory holds the text until they go through, for they pause."""
    memory = snapshot.memory
    told = {b.message for b in (*memory.refusals.values(), *memory.refused_children.values())}
    seen = set(memory.announced)
    for outcome in _refused(outcomes):
        key = trouble_key(outcome)
        if outcome.message not in told and key not in seen:
            seen.add(key)
            reason, action = _failure(outcome)
            yield Announcement(reason, action, _failed(snapshot, outcome), warning=True)


def trouble_key(outcome: Outcome) -> str:
    """What identifies a refusal over passes."""
    return f"{_failure(outcome)[0]}/{outcome.message}"


def _refused(outcomes: Outcomes) -> Iterable[Outcome]:
    return (o for o in outcomes.items if o.result is Result.REFUSED)


def _failure(outcome: Outcome) -> tuple[str, str]:
    """Reason and action of the Event."""
    match outcome.action:
        case CreateHead() | CreateSlice():
            return f"FailedToCreate{_pod(outcome)}", "Create"
        case DeleteHead() | DeleteSlice():
            return f"FailedToDelete{_pod(outcome)}", "Delete"
        case Apply(key=key, reason=reason):
            deed = "Create" if reason is Reason.CHILD_WANTED else "Update"
            return f"FailedTo{deed}{noun(key.kind).word}", deed
        case DeleteChild(key=key):
            return f"FailedToDelete{noun(key.kind).word}", "Delete"
        case _:
            return "FailedToUpdate", "Update"


def _pod(outcome: Outcome) -> str:
    return "HeadPod" if isinstance(outcome.action, CreateHead | DeleteHead) else "WorkerPod"


def _failed(snapshot: Snapshot, outcome: Outcome) -> str:
    namespace, error = snapshot.cluster.namespace, outcome.message
    cluster = f"{namespace}/{snapshot.cluster.name}"
    match outcome.action:
        case CreateHead():
            return f"Failed to create head Pod {cluster}-head-*, {error}"
        case CreateSlice(group=group):
            return f"Failed to create worker Pod for the cluster {cluster}, {error} (group {group})"
        case DeleteHead(pod=pod):
            return f"Failed to delete head Pod {namespace}/{pod.name}, {error}"
        case DeleteSlice(group=group):
            return f"Failed to delete worker Pod for the cluster {cluster}, {error} (group {group})"
        case Apply(key=key) | DeleteChild(key=key):
            deed = _failure(outcome)[1].lower()
            return f"Failed to {deed} {noun(key.kind).text} {namespace}/{key.name}, {error}"
        case action:
            return f"Failed to carry out {type(action).__name__} for {cluster}, {error}"
