"""A fresh control plane with an operator on it, and what a scenario does there."""

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from bench.api import JSON_PATCH, METADATA_LIST, PODS, RAYCLUSTERS, SERVICES, Api
from bench.audit import AuditLog, Write, pods_created, writes
from bench.child import Child
from bench.connection import Connection
from bench.errors import OperatorError, RequestRefusedError
from bench.ledger import Pod
from bench.manifests import NAMESPACE, TPU_HOSTS, Bodies, Object, as_created, ray_cluster, scale_down
from bench.watch import Condition, PodWatch
from devcluster import AuditLevel, ControlPlane, Options, User

OPERATOR = "bench-operator"
ADMINS = ("system:masters",)
QUIET = 1.5
SETTLE_POLL = 0.25
START_DEADLINE = 60.0
# Set to something else by the parent: the operator must find nothing but its kubeconfig.
OWN_VARIABLES = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the rows are. Only the full sizes can be compared with the targets."""

    slices: int = 256
    big_slices: int = 512
    deleted_slices: int = 128
    repaired_slices: int = 16
    clusters: int = 300
    small_clusters: int = 10
    huge_slices: int = 2500
    idle_seconds: float = 20.0


QUICK = Sizes(
    slices=32,
    big_slices=64,
    deleted_slices=16,
    repaired_slices=16,
    clusters=30,
    small_clusters=5,
    huge_slices=128,
    idle_seconds=5.0,
)


@dataclass(slots=True)
class Stage:
    """What a scenario works with. The operator may be ended and started again."""

    plane: ControlPlane
    command: Sequence[str]
    api: Api
    pods: PodWatch
    audit: AuditLog
    folder: Path
    sizes: Sizes
    following: asyncio.Task[None]
    operator: Child | None = None
    _children: list[Child] = field(default_factory=list)
    _floors: int = 0

    # -- processes -----------------------------------------------------------------------------------------------------

    async def start_operator(self) -> Child:
        environment = {key: value for key, value in os.environ.items() if key not in OWN_VARIABLES}
        environment["KUBECONFIG"] = str(self.plane.kubeconfig_for(OPERATOR))
        self.operator = await Child.start("operator", self.command, environment, self.folder)
        self._children.append(self.operator)
        return self.operator

    async def start_kubelet(self, termination: float) -> None:
        """Play all nodes from now on; terminating pods end after `termination` seconds."""
        await self.helper("kubelet", [str(self.plane.kubeconfig_for("bench-kubelet")), str(termination)])

    async def helper(self, module: str, arguments: Sequence[str]) -> Child:
        child = await Child.helper(module, arguments, self.folder)
        self._children.append(child)
        return child

    async def stop(self) -> None:
        for child in reversed(self._children):
            await child.stop()

    # -- waiting -------------------------------------------------------------------------------------------------------

    async def until(self, condition: Condition) -> float:
        """Wait for a condition on the pods seen and return when it came true; raise BenchError if in vain."""
        seen = asyncio.ensure_future(self.pods.until(condition))
        died = asyncio.ensure_future(self._died())
        try:
            await asyncio.wait({seen, died, self.following}, return_when=asyncio.FIRST_COMPLETED)
            if not seen.done():
                await (died if died.done() else self.following)
            return await seen
        finally:
            for task in (seen, died):
                task.cancel()
            await asyncio.gather(seen, died, return_exceptions=True)

    async def _died(self) -> None:
        operator = self.operator
        if operator is None:
            await asyncio.Event().wait()
        assert operator is not None
        code = await operator.process.wait()
        raise OperatorError(f"the operator ended with code {code}:\n{operator.tail()}")

    async def all_running(self) -> None:
        """Wait until no pod is left that is not running, as the API server has it."""
        path = f"{PODS}?fieldSelector=status.phase!=Running&limit=1"
        while (await self.api.call("GET", path, accept=METADATA_LIST))["items"]:  # noqa: ASYNC110  on the server
            await asyncio.sleep(SETTLE_POLL)

    async def quiet(self) -> None:
        """Wait until the operator has not written for a while."""
        mark, since = self.audit.mark(), time.perf_counter()
        while time.perf_counter() < since + QUIET:
            await asyncio.sleep(SETTLE_POLL)
            if self.writes(mark).total():
                mark, since = self.audit.mark(), time.perf_counter()

    def writes(self, mark: int) -> Counter[Write]:
        """Count what the operator wrote since `mark`."""
        return writes(self.audit.since(mark), OPERATOR)

    def pods_created(self, mark: int) -> list[tuple[str, float]]:
        """Return the pods that the operator created since `mark`, with the time of the answer."""
        return pods_created(self.audit.since(mark), OPERATOR)

    # -- clusters ------------------------------------------------------------------------------------------------------

    async def apply(self, cluster: Object) -> float:
        """Create a RayCluster and return when (perf_counter) the request was sent."""
        sent = time.perf_counter()
        await self.api.call("POST", RAYCLUSTERS, cluster)
        return sent

    async def scale_down(self, cluster: str, replicas: int, victims: Sequence[Pod]) -> float:
        """Patch a cluster as the autoscaler does and return when the request was sent."""
        sent = time.perf_counter()
        patch = scale_down(replicas, [pod.name for pod in victims])
        await self.api.call("PATCH", f"{RAYCLUSTERS}/{cluster}", patch, content=JSON_PATCH)
        return sent

    async def remove(self, cluster: str) -> None:
        """Delete a RayCluster and its children: a bare control plane has nobody who would."""
        with contextlib.suppress(RequestRefusedError):
            await self.api.call("DELETE", f"{RAYCLUSTERS}/{cluster}")
        await self.delete_pods(f"ray.io/cluster={cluster}")
        await self.api.send("DELETE", f"{SERVICES}?labelSelector=ray.io/cluster={cluster}")
        await self.until(lambda ledger: not ledger.count(cluster))

    async def delete_pods(self, selector: str) -> None:
        await self.api.send("DELETE", f"{PODS}?labelSelector={selector}&gracePeriodSeconds=0")

    async def warm_up(self) -> Bodies:
        """Have a first small cluster made, so that everybody is awake; return the pods as the operator creates them."""
        await self.apply(ray_cluster("warmup", 1))
        try:
            async with asyncio.timeout(START_DEADLINE):
                await self.until(lambda ledger: ledger.count("warmup") >= TPU_HOSTS + 1)
        except TimeoutError as error:
            output = self.operator.tail() if self.operator else ""
            raise OperatorError(f"no pods of a first small cluster in {START_DEADLINE:g} s:\n{output}") from error
        listing = await self.api.call("GET", f"{PODS}?labelSelector=ray.io/cluster=warmup")
        pods = [as_created(pod) for pod in listing["items"]]
        await self.remove("warmup")
        await self.quiet()
        heads = [pod for pod in pods if pod["metadata"]["labels"].get("ray.io/node-type") == "head"]
        return Bodies(heads[0], next(pod for pod in pods if pod not in heads))

    # -- the bare client -----------------------------------------------------------------------------------------------

    async def floor_creates(self, pods: Sequence[Object], *, keep: bool = False) -> float:
        """Have the bare client create `pods` and return the seconds until all were seen; `keep` leaves them there."""
        cluster = pods[0]["metadata"]["labels"]["bar.io/cluster"]
        client = await self._bare([["POST", PODS, pod] for pod in pods])
        start = time.perf_counter()
        await client.say(b"go")
        end = await self.until(lambda ledger: ledger.count(cluster) >= len(pods))
        await client.hear()
        if not keep:
            await self.delete_pods(f"bar.io/cluster={cluster}")
            await self.until(lambda ledger: not ledger.count(cluster))
        return end - start

    async def floor_deletes(self, pods: Sequence[Pod]) -> float:
        """Have the bare client delete pods and return the seconds until all were seen terminating or gone."""
        client = await self._bare(
            [["DELETE", f"{PODS}/{pod.name}", {"preconditions": {"uid": pod.uid}}] for pod in pods]
        )
        uids = [pod.uid for pod in pods]
        start = time.perf_counter()
        await client.say(b"go")
        end = await self.until(lambda ledger: ledger.all_lost(uids))
        await client.hear()
        return end - start

    async def _bare(self, requests: list[list[Any]]) -> Child:
        self._floors += 1
        file = self.folder / f"requests-{self._floors}.json"
        file.write_text(json.dumps(requests))
        return await self.helper("bare", [str(self.plane.kubeconfig_for("bench-bare")), str(file)])


@dataclass(frozen=True, slots=True)
class Setting:
    """What does not change from stage to stage."""

    command: Sequence[str]
    crd: Path
    sizes: Sizes
    tries: int = 1
    """Most runs of a scenario whose floors tell that the machine was disturbed."""
    log_folder: Path | None = None


@contextlib.asynccontextmanager
async def open_stage(setting: Setting, name: str) -> AsyncIterator[Stage]:
    """Start a bare control plane with the CRD, a watch and the operator; end all of it."""
    users = tuple(User(user, ADMINS) for user in (OPERATOR, "bench-kubelet", "bench-bare"))
    options = Options(bare=True, crds=(setting.crd,), audit=AuditLevel.METADATA, users=users)
    async with contextlib.AsyncExitStack() as exits:
        folder = _folder(setting, name, exits)
        plane = await asyncio.to_thread(ControlPlane.start, options)
        exits.push_async_callback(asyncio.to_thread, plane.stop)
        if setting.log_folder and plane.audit_log:
            exits.callback(shutil.copy, plane.audit_log, folder / "audit.log")
        await asyncio.to_thread(plane.create_namespace, NAMESPACE)
        api = await exits.enter_async_context(Api(Connection.from_kubeconfig(plane.kubeconfig)))
        assert plane.audit_log is not None, "asked for in the options"
        watch = PodWatch(api)
        following = asyncio.create_task(watch.run())
        exits.push_async_callback(_end, following)
        audit = AuditLog(plane.audit_log)
        stage = Stage(plane, setting.command, api, watch, audit, folder, setting.sizes, following)
        exits.push_async_callback(stage.stop)
        await _served(api)
        await stage.start_operator()
        yield stage


async def _served(api: Api) -> None:
    """Wait until RayClusters can be listed: for a moment after the CRD is established the answer is still 429."""
    while (await api.send("GET", RAYCLUSTERS))[0] != HTTPStatus.OK:  # noqa: ASYNC110  on the server
        await asyncio.sleep(SETTLE_POLL)


def _folder(setting: Setting, name: str, exits: contextlib.AsyncExitStack) -> Path:
    """Return a fresh folder for output: kept where the setting says, else removed at the end."""
    if setting.log_folder is None:
        return Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
    setting.log_folder.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=setting.log_folder))


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
