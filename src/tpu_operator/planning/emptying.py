"""All pods of a cluster go: it is suspended, made anew, or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.planning.heads import heads_of
from tpu_operator.planning.plan import DeleteHead, DeleteSlice
from tpu_operator.planning.slices import partition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.planning.plan import Action, Reason
    from tpu_operator.planning.pod import Pod
    from tpu_operator.planning.snapshot import Snapshot


def delete_all(snapshot: Snapshot, reason: Reason, detail: str) -> tuple[Action, ...]:
    """Delete every own pod that is not on its way out, slice by slice."""
    heads = tuple(DeleteHead(h, reason, detail) for h in heads_of(snapshot) if h.uid and not h.terminating)
    return (*heads, *delete_workers(snapshot, reason, detail))


def delete_workers(snapshot: Snapshot, reason: Reason, detail: str) -> Iterator[DeleteSlice]:
    """Delete every own worker that is not on its way out, slice by slice."""
    by_group: dict[str, list[Pod]] = {}
    for pod in sorted(snapshot.observed.pods, key=lambda p: p.name):
        if pod.node_type == names.WORKER and pod.uid and not pod.terminating:
            by_group.setdefault(pod.group, []).append(pod)
    specs = {g.group_name: g for g in snapshot.cluster.spec.worker_group_specs}
    for group, pods in sorted(by_group.items()):
        if group in specs:
            for s in partition(specs[group], pods):
                yield DeleteSlice(group, s.index, s.name, s.pods, reason, detail)
        else:
            yield DeleteSlice(group, None, group, tuple(pods), reason, detail)
