"""`tpu-operator plan`: the planner's answer for a manifest, offline or against a cluster, without acting."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import msgspec
import typer
import yaml

from tpu_operator.api import names
from tpu_operator.api.raycluster import RayCluster
from tpu_operator.cli.settings import read_config
from tpu_operator.controller.observer import new_nonce, utc_now
from tpu_operator.errors import InvalidInput
from tpu_operator.planning.children import child_key
from tpu_operator.planning.memory import Memory
from tpu_operator.planning.plan import (
    Action,
    Apply,
    CreateHead,
    CreateSlice,
    DeleteChild,
    DeleteHead,
    DeleteSlice,
    PatchFinalizers,
    Plan,
    StampPod,
)
from tpu_operator.planning.planner import plan
from tpu_operator.planning.pod import Pod
from tpu_operator.planning.snapshot import Observed, Snapshot
from tpu_operator.resources.registry import looked_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tpu_operator.api.json import JsonObject


def print_plans(file: Path, observed: Path | None, *, server: bool, output: str) -> bool:
    """Print the plan of every RayCluster in `file`; True if a mistake in one of them stands in the way."""
    if output not in ("text", "json"):
        raise InvalidInput(f"output {output!r}: write text or json")
    if server and observed:
        raise InvalidInput("--server and --observed are two sources of the same thing: give one of them")
    clusters = list(read_clusters(file))
    if not clusters:
        raise InvalidInput(f"{file} has no RayCluster of {names.API_VERSION}")
    if server:
        from tpu_operator.controller.look import look_at_server  # noqa: PLC0415

        seen = look_at_server(clusters, read_config())
    else:
        objects = list(_documents(sorted(observed.iterdir()))) if observed else []
        seen = [(_live(cluster, objects), _observed(cluster, objects)) for cluster in clusters]
    plans = [(cluster, _plan(cluster, what)) for cluster, what in seen]
    if output == "json":
        typer.echo(json.dumps([as_json(c, p) for c, p in plans], indent=2))
    else:
        typer.echo("\n\n".join("\n".join(as_text(c, p)) for c, p in plans))
    return any(p.blockers for _, p in plans)


def read_clusters(file: Path) -> Iterator[RayCluster]:
    """The RayClusters of a manifest; other objects in it are passed over."""
    for raw in _documents([file]):
        if raw.get("kind") == names.KIND and str(raw.get("apiVersion", "")).startswith(f"{names.GROUP}/"):
            metadata = raw.get("metadata")
            given = metadata if isinstance(metadata, dict) else {}
            if not given.get("name"):
                raise InvalidInput(f"{file}: a RayCluster without metadata.name")
            filled = {"namespace": "default", "uid": f"offline-{given['name']}", "generation": 1, **given}
            yield RayCluster.parse({**raw, "metadata": filled})


def _documents(files: Iterable[Path]) -> Iterator[JsonObject]:
    for file in files:
        try:
            text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
            for document in yaml.safe_load_all(text):
                yield from _items(document)
        except (OSError, yaml.YAMLError) as error:
            raise InvalidInput(f"cannot read {file}: {error}") from error


def _items(document: object) -> Iterator[JsonObject]:
    """A document, or the items of a List."""
    if isinstance(document, dict):
        items = document.get("items")
        if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
            yield from (i for i in items if isinstance(i, dict))
        else:
            yield document


def _live(cluster: RayCluster, objects: list[JsonObject]) -> RayCluster:
    """The cluster with uid and status of its stored object, if the folder has that."""
    for raw in objects:
        metadata = raw.get("metadata")
        if (
            raw.get("kind") == names.KIND
            and isinstance(metadata, dict)
            and (metadata.get("namespace", "default"), metadata.get("name")) == (cluster.namespace, cluster.name)
        ):
            return RayCluster.parse({**cluster.raw, "metadata": metadata, "status": raw.get("status") or {}})
    return cluster


def _observed(cluster: RayCluster, objects: list[JsonObject]) -> Observed:
    """Offline, an object belongs to the cluster if a RayCluster of its name controls it."""
    pods, children = [], {}
    for raw in objects:
        metadata = raw.get("metadata")
        owners = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
        owned = any(
            isinstance(o, dict) and o.get("controller") and (o.get("kind"), o.get("name")) == (names.KIND, cluster.name)
            for o in (owners if isinstance(owners, list) else ())
        )
        if owned and raw.get("kind") == "Pod":
            pods.append(msgspec.convert(json.loads(json.dumps(raw, default=str)), Pod))
        elif owned:
            children[child_key(raw)] = raw
    absent = looked_up(cluster, read_config()) - children.keys()
    return Observed(pods=tuple(pods), children=children, absent=absent)


def _plan(cluster: RayCluster, observed: Observed) -> Plan:
    return plan(Snapshot(cluster, observed, Memory(), read_config(), utc_now(), new_nonce()))


def as_text(cluster: RayCluster, plan_: Plan) -> Iterator[str]:
    """The plan for people, a line an action."""
    yield f"RayCluster {cluster.namespace}/{cluster.name}"
    if plan_.hold:
        yield f"  left alone: {plan_.hold}"
    for blocker in plan_.blockers:
        yield f"  mistake: {blocker}"
    for action in plan_.actions:
        yield f"  {describe(action)}  [{action.reason}]"
    for wait in plan_.waiting:
        yield f"  later: {wait.what}, {wait.why} ({wait.seconds:.0f} s)"
    for notice in plan_.notices:
        yield f"  note: {notice.message}"
    if not (plan_.actions or plan_.blockers or plan_.hold):
        yield "  nothing to do"


def describe(action: Action) -> str:  # noqa: PLR0911  (one a kind)
    """One line on an action."""
    match action:
        case CreateHead(name=name):
            return f"create head {name}"
        case CreateSlice(group=group, index=index, size=size, hosts=hosts):
            verb = "create" if len(hosts) == size else "top up"
            return f"{verb} slice {group}-{index}: {len(hosts)} of {size} hosts ({', '.join(h.pod for h in hosts)})"
        case DeleteHead(pod=pod, detail=detail):
            return f"delete head {pod.name}: {detail}"
        case DeleteSlice(group=group, index=index, pods=pods, detail=detail):
            where = f"slice {group}-{index}" if index is not None else f"pods of group {group}"
            return f"delete {where}: {detail} ({', '.join(p.name for p in pods)})"
        case Apply(key=key):
            return f"apply {key.kind} {key.name}"
        case DeleteChild(key=key):
            return f"delete {key.kind} {key.name}"
        case StampPod(pod=pod):
            return f"stamp pod {pod.name}"
        case PatchFinalizers(finalizers=finalizers):
            return f"set finalizers to {list(finalizers)}"


def as_json(cluster: RayCluster, plan_: Plan) -> JsonObject:
    """The plan for machines."""
    return {
        "namespace": cluster.namespace,
        "name": cluster.name,
        "hold": str(plan_.hold) if plan_.hold else None,
        "blockers": [
            {"reason": b.reason, "field": b.field, "message": b.message, "fix": b.fix, "group": b.group}
            for b in plan_.blockers
        ],
        "actions": [
            {"action": type(a).__name__, "reason": str(a.reason), "description": describe(a)} for a in plan_.actions
        ],
        "waiting": [{"what": w.what, "why": w.why, "seconds": w.seconds} for w in plan_.waiting],
        "notices": [{"reason": n.reason, "message": n.message} for n in plan_.notices],
    }
