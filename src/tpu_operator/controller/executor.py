"""Carries out a plan: bounded, fair between clusters, with slow start, each delete guarded by uid."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, assert_never

import msgspec

from tpu_operator.api import names
from tpu_operator.controller.caches import LostCreate
from tpu_operator.controller.clusters import Key
from tpu_operator.controller.observer import pod_of
from tpu_operator.controller.resources import resource_of
from tpu_operator.controller.secret_values import with_values
from tpu_operator.controller.slow_start import SlowStart
from tpu_operator.errors import AnswerLost, ApiError, Conflict, Gone, Refused, Unauthorized
from tpu_operator.kube.resource import PODS, Resource
from tpu_operator.planning.outcome import Outcome, Outcomes, Result
from tpu_operator.planning.plan import (
    Action,
    Apply,
    CreateHead,
    CreateSlice,
    DeleteChild,
    DeleteHead,
    DeleteSlice,
    PatchFinalizers,
    StampPod,
)
from tpu_operator.planning.pod import OwnerReference
from tpu_operator.planning.slices import pod_gone_by
from tpu_operator.planning.upgrade import recreate_hash
from tpu_operator.resources.owned import owner_uid
from tpu_operator.resources.pods.head import head_pod
from tpu_operator.resources.pods.place import Place
from tpu_operator.resources.pods.worker import WorkerBlueprint
from tpu_operator.resources.registry import Update, child_kinds
from tpu_operator.resources.tree import text_list

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.controller.caches import Caches
    from tpu_operator.kube.client import Client
    from tpu_operator.kube.limiter import FairLimiter
    from tpu_operator.planning.plan import Plan
    from tpu_operator.planning.pod import Pod
    from tpu_operator.planning.snapshot import Snapshot
    from tpu_operator.resources.registry import ChildKey, ChildKind

RAYCLUSTERS = Resource(names.GROUP, names.VERSION, names.PLURAL, names.KIND)
SEND_AGAIN = (0.2, 0.8)
"""Seconds between the tries of a create whose answers were lost."""


class PodAnswerMeta(msgspec.Struct, rename="camel"):
    """`metadata` of the answer to a create."""

    uid: str
    resource_version: str
    deletion_timestamp: datetime | None = None
    owner_references: tuple[OwnerReference, ...] = ()


class PodAnswer(msgspec.Struct):
    """What is read from the answer to a create."""

    metadata: PodAnswerMeta


_POD_ANSWER = msgspec.json.Decoder(PodAnswer)


@dataclass(slots=True)
class Executor:
    """Turns actions into API calls. `may_go_on` says whether the plan still rests on the newest spec and on leadership."""

    client: Client
    limiter: FairLimiter[Key]
    caches: Caches
    config: OperatorConfig

    async def execute(self, snapshot: Snapshot, plan: Plan, may_go_on: Callable[[RayCluster], bool]) -> Outcomes:
        """Carry out `plan`; one outcome an action, in the order of the plan. Never raises for what the API server says."""
        execution = _Execution(self, snapshot, lambda: may_go_on(snapshot.cluster))
        return await execution.run(plan.actions)


@dataclass(slots=True)
class _Execution:
    """One plan being carried out."""

    executor: Executor
    snapshot: Snapshot
    may_go_on: Callable[[], bool]
    results: dict[int, Outcome] = field(default_factory=dict)
    blueprints: dict[str, WorkerBlueprint] = field(default_factory=dict)

    @property
    def cluster(self) -> RayCluster:
        return self.snapshot.cluster

    @property
    def key(self) -> Key:
        return Key(self.cluster.namespace, self.cluster.name)

    async def run(self, actions: tuple[Action, ...]) -> Outcomes:
        """Deletes and everything else at the same time; the head beside the services, the slices after both."""
        async with asyncio.TaskGroup() as tasks:
            for action in actions:
                if isinstance(action, DeleteHead | DeleteSlice | DeleteChild | StampPod | PatchFinalizers):
                    tasks.create_task(self._record(action, self._simple(action)))
            tasks.create_task(self._creates(actions))
        outcomes = (self.results.get(id(a), Outcome(a, Result.SKIPPED)) for a in actions)
        return Outcomes(tuple(outcomes))

    async def _record(self, action: Action, work: Awaitable[Outcome]) -> Outcome:
        try:
            outcome = await work
        except ApiError as error:
            outcome = Outcome(action, result_of(error), self._stable(error.message), cause=error.cause)
        self.results[id(action)] = outcome
        return outcome

    async def _creates(self, actions: Iterable[Action]) -> None:
        by_group: dict[str, list[CreateSlice]] = defaultdict(list)
        heads: list[asyncio.Task[Outcome]] = []
        async with asyncio.TaskGroup() as tasks:
            for action in actions:
                match action:
                    case Apply():
                        tasks.create_task(self._record(action, self._apply(action)))
                    case CreateHead():
                        heads.append(tasks.create_task(self._record(action, self._create_head(action))))
                    case CreateSlice():
                        by_group[action.group].append(action)
                    case _:
                        pass
        if any(head.result().result is not Result.DONE for head in heads):
            return  # workers without a head would only wait for it
        async with asyncio.TaskGroup() as tasks:
            for slices in by_group.values():
                tasks.create_task(self._create_group(slices))

    async def _simple(self, action: Action) -> Outcome:
        match action:
            case DeleteHead(pod=pod):
                return await self._delete_pods(action, (pod,))
            case DeleteSlice(pods=pods):
                return await self._delete_pods(action, pods)
            case DeleteChild():
                return await self._delete_child(action)
            case StampPod():
                return await self._stamp(action)
            case PatchFinalizers():
                return await self._finalizers(action)
            case Apply() | CreateHead() | CreateSlice():
                raise AssertionError(action)
            case _:
                assert_never(action)

    # -- creates -------------------------------------------------------------------------------------------------------

    async def _create_head(self, action: CreateHead) -> Outcome:
        if not self.may_go_on():
            return Outcome(action, Result.SKIPPED)
        manifest = head_pod(
            self.cluster, self.executor.config, name=action.name, recreate_hash=recreate_hash(self.cluster)
        )
        return Outcome(action, Result.DONE, created=(await self._create_pod(manifest),))

    async def _create_group(self, slices: list[CreateSlice]) -> None:
        async def work(action: CreateSlice) -> bool | None:
            if not self.may_go_on():
                return None
            outcome = await self._record(action, self._create_slice(action))
            if outcome.result in (Result.REFUSED, Result.UNSETTLED):
                return None
            return outcome.result is Result.DONE

        limit = self.executor.config.create_parallelism // max(1, slices[0].size)
        await SlowStart(work, limit).run(slices)

    def _blueprint(self, group: str) -> WorkerBlueprint:
        if group not in self.blueprints:
            spec = next(g for g in self.cluster.spec.worker_group_specs if g.group_name == group)
            self.blueprints[group] = WorkerBlueprint.of(self.cluster, spec, self.executor.config)
        return self.blueprints[group]

    async def _create_slice(self, action: CreateSlice) -> Outcome:
        """All hosts at once. If one is refused, those made in this pass go again: no half slice stays behind."""
        blueprint = self._blueprint(action.group)
        places = {h.host: (Place(action.slice_name, action.index, h.host, action.size), h.pod) for h in action.hosts}
        manifests = {host: blueprint.pod(place, name) for host, (place, name) in places.items()}
        answers = await asyncio.gather(*(self._create_pod(m) for m in manifests.values()), return_exceptions=True)
        by_host = dict(zip(manifests, answers, strict=True))
        created = tuple(a for a in answers if not isinstance(a, BaseException))
        errors = {host: a for host, a in by_host.items() if isinstance(a, BaseException)}
        for error in errors.values():
            if not isinstance(error, ApiError):
                raise error
        if not errors:
            return Outcome(action, Result.DONE, created=created)
        return await self._incomplete(action, created, {h: e for h, e in errors.items() if isinstance(e, ApiError)})

    async def _incomplete(
        self, action: CreateSlice, created: tuple[Pod, ...], errors: Mapping[int, ApiError]
    ) -> Outcome:
        worst = max((result_of(e) for e in errors.values()), key=_SEVERITY.index)
        message = self._stable(next(e.message for e in errors.values() if result_of(e) is worst))
        if worst is Result.REFUSED:
            await asyncio.gather(*(self._delete_pod(p) for p in created), return_exceptions=True)
            return Outcome(action, worst, message)
        uncreated = tuple(h for h, e in errors.items() if result_of(e) is Result.FAILED)
        return Outcome(action, worst, message, created=created, uncreated=uncreated)

    async def _create_pod(self, manifest: JsonObject) -> Pod:
        """Create a pod; remember it until the watch shows it, also if it could not be found out whether it was created."""
        async with self.executor.limiter.slot(self.key):
            try:
                answer = await self._settled_create(manifest)
            except AnswerLost:
                lost = LostCreate(pod_of(manifest), manifest, self.cluster.generation)
                writes = self.executor.caches.pod_writes
                writes.unsettled(self.cluster.uid, self.cluster.namespace, _name(manifest), lost)
                raise
        pod = pod_of(
            manifest,
            {"uid": answer.metadata.uid, "resourceVersion": answer.metadata.resource_version},
            self.snapshot.now,
        )
        self.executor.caches.pod_writes.created(self.cluster.uid, pod)
        return pod

    async def _settled_create(self, manifest: JsonObject) -> PodAnswer:
        """POST a pod until it is known what became of it, a few times at most.

        A lost answer is settled by a GET of the name. If nothing is there the same name is sent once more: should the
        first request still arrive, one of the two is a conflict, so that there is one pod whatever happens.
        """
        name = _name(manifest)
        for pause in (*SEND_AGAIN, None):
            try:
                return await self._post(manifest)
            except AnswerLost as error:
                lost = error
                if found := await self._own(name):
                    return found
            except Conflict as error:
                if error.reason != "AlreadyExists" or (found := await self._own(name)) is None:
                    raise
                return found
            if pause is None or not self.may_go_on():
                break
            await asyncio.sleep(pause)
        raise lost

    async def _post(self, manifest: JsonObject) -> PodAnswer:
        body = msgspec.json.encode(manifest)
        return await self.executor.client.create(
            PODS, self.cluster.namespace, body, metadata_only=True, decode=_POD_ANSWER.decode
        )

    async def _own(self, name: str) -> PodAnswer | None:
        """The pod of that name if this very cluster controls it and it is not on its way out (a fixed head name).

        AnswerLost if that cannot be found out.
        """
        try:
            pod = await self.executor.client.get(PODS, self.cluster.namespace, name, decode=_POD_ANSWER.decode)
        except Gone:
            return None
        except ApiError as error:
            raise AnswerLost(error.message) from error
        owned = any(o.controller and o.uid == self.cluster.uid for o in pod.metadata.owner_references)
        return pod if owned and pod.metadata.deletion_timestamp is None else None

    # -- deletes -------------------------------------------------------------------------------------------------------

    async def _delete_pods(self, action: DeleteHead | DeleteSlice, pods: tuple[Pod, ...]) -> Outcome:
        answers = await asyncio.gather(*(self._delete_pod(p) for p in pods), return_exceptions=True)
        deleted = tuple(p for p, a in zip(pods, answers, strict=True) if a is None)
        errors = [a for a in answers if a is not None]
        if not errors:
            return Outcome(action, Result.DONE, deleted=deleted)
        for error in errors:
            if not isinstance(error, ApiError):
                raise error
        worst = max((e for e in errors if isinstance(e, ApiError)), key=lambda e: _SEVERITY.index(result_of(e)))
        return Outcome(action, result_of(worst), self._stable(worst.message), deleted=deleted)

    async def _delete_pod(self, pod: Pod) -> None:
        """DELETE exactly this pod: one of the same name with another uid is not touched. Gone already is done."""
        async with self.executor.limiter.slot(self.key):
            with contextlib.suppress(Gone):
                await self.executor.client.delete(PODS, pod.metadata.namespace, pod.name, uid=pod.uid)
        self.executor.caches.pod_writes.deleted(self.cluster.uid, pod.uid, _deadline(pod, self.snapshot.now))

    async def _delete_child(self, action: DeleteChild) -> Outcome:
        async with self.executor.limiter.slot(self.key):
            with contextlib.suppress(Gone):
                await self.executor.client.delete(
                    resource_of(self._kind(action.key)),
                    self.cluster.namespace,
                    action.key.name,
                    uid=action.uid,
                    propagation="Background",
                )
        return Outcome(action, Result.DONE)

    # -- the rest ------------------------------------------------------------------------------------------------------

    async def _apply(self, action: Apply) -> Outcome:
        """Server-side apply. Before the first one it is made sure that the name is free: foreign objects stay untouched."""
        kind = self._kind(action.key)
        if kind.update is Update.CREATE_ONLY:
            return await self._create_child(action, kind)
        resource, name, namespace = resource_of(kind), action.key.name, self.cluster.namespace
        live = self.snapshot.observed.children.get(action.key)
        async with self.executor.limiter.slot(self.key):
            if live is None:
                live = await self._live(resource, name)
            if live is not None and owner_uid(live.get("metadata")) != self.cluster.uid:
                return _taken(action)
            answer = await self.executor.client.apply(resource, namespace, name, _guarded(action.manifest, live))
        self.executor.caches.applied(answer)
        return Outcome(action, Result.DONE, applied=answer)

    async def _create_child(self, action: Apply, kind: ChildKind) -> Outcome:
        """POST an object that is never changed later, or give one of ours what it lacks.

        Values of a Secret are made here, and nothing keeps them: the answer is asked for without them.
        """
        resource, name, namespace = resource_of(kind), action.key.name, self.cluster.namespace
        body = with_values(action.manifest)
        live = self.snapshot.observed.children.get(action.key)
        async with self.executor.limiter.slot(self.key):
            if live is not None:
                lacking = {"metadata": {"uid": _uid(live)}, "stringData": body.get("stringData")}
                await self.executor.client.patch(resource, namespace, name, lacking, decode=_nothing)
                answer: JsonObject | None = None
            else:
                answer = await self._created_child(kind, name, body)
        if answer is not None and owner_uid(answer.get("metadata")) != self.cluster.uid:
            return _taken(action)
        if answer is not None and kind.watched:
            self.executor.caches.applied(answer)
        self.executor.caches.lookups.written(self.cluster.uid, action.key)
        return Outcome(action, Result.DONE)

    async def _created_child(self, kind: ChildKind, name: str, body: JsonObject) -> JsonObject:
        """The object of that name: new, or the one that is there already, whosever it is."""
        resource, hidden = resource_of(kind), not kind.watched
        try:
            return await self.executor.client.create(resource, self.cluster.namespace, body, metadata_only=hidden)
        except Conflict as error:
            found = await self._live(resource, name)
            if error.reason != "AlreadyExists" or found is None:
                raise
            return found

    def _kind(self, key: ChildKey) -> ChildKind:
        kinds = child_kinds(self.executor.config, self.snapshot.facts.served)
        return next(kind for kind in kinds if kind.kind == key.kind)

    async def _live(self, resource: Resource, name: str) -> JsonObject | None:
        try:
            return await self.executor.client.get(resource, self.cluster.namespace, name)
        except Gone:
            return None

    async def _stamp(self, action: StampPod) -> Outcome:
        body = {"metadata": {"uid": action.pod.uid, "annotations": dict(action.annotations)}}
        async with self.executor.limiter.slot(self.key):
            await self.executor.client.patch(PODS, self.cluster.namespace, action.pod.name, body)
        return Outcome(action, Result.DONE)

    async def _finalizers(self, action: PatchFinalizers) -> Outcome:
        """A JSON patch that applies to the very list that was seen: a finalizer that somebody else adds meanwhile stays.

        The object's version would not do: our own status writes have taught us newer ones than that of the list.
        """
        path, known = "/metadata/finalizers", list(self.cluster.metadata.finalizers)
        body: list[JsonObject] = [
            {"op": "test", "path": "/metadata/uid", "value": self.cluster.uid},
            {"op": "test", "path": path, "value": text_list(known) if known else None},
            {"op": "add", "path": path, "value": text_list(list(action.finalizers))},
        ]
        async with self.executor.limiter.slot(self.key):
            try:
                await self.executor.client.patch(
                    RAYCLUSTERS, self.cluster.namespace, self.cluster.name, body, decode=_nothing
                )
            except Gone:
                pass  # with the last finalizer the object goes
            except Refused as error:
                # A test that failed: look again, then try again.
                return Outcome(action, Result.FAILED, error.message)
        return Outcome(action, Result.DONE)

    def _stable(self, message: str) -> str:
        """The API server's words without generated names, so that a retry does not make a new text (quirk 52)."""
        return re.sub(
            rf"((?:{names.head_prefix(self.cluster.name)}|[a-z0-9.-]+-worker)-)[a-z0-9]{{5}}\b", r"\1*", message
        )


_SEVERITY = (Result.DONE, Result.FAILED, Result.UNSETTLED, Result.REFUSED)


def result_of(error: ApiError) -> Result:
    """Errors map to what follows from them in this one place."""
    match error:
        case Refused() | Unauthorized():
            return Result.REFUSED
        case AnswerLost():
            return Result.UNSETTLED
        case _:
            return Result.FAILED


def _name(manifest: JsonObject) -> str:
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["name"])


def _deadline(pod: Pod, now: datetime) -> datetime:
    """A pod without a node is gone at once."""
    return pod_gone_by(pod, now) if pod.spec.node_name else now + timedelta(seconds=1)


def _taken(action: Apply) -> Outcome:
    """The name belongs to an object of somebody else, which is left alone."""
    return Outcome(action, Result.REFUSED, f"{action.key.kind} {action.key.name} belongs to somebody else")


def _nothing(_: bytes | msgspec.Raw) -> None:
    """Decoder of an answer that nobody wants to read."""


def _uid(live: JsonObject) -> str:
    metadata = live["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["uid"])


def _guarded(manifest: JsonObject, live: JsonObject | None) -> JsonObject:
    """The manifest with the uid of the object that is meant: another one of its name is then a conflict."""
    if live is None:
        return manifest
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    return {**manifest, "metadata": {**metadata, "uid": _uid(live)}}
