"""A player of scheduler and kubelet for all pods of the bench: binds, marks Running and Ready, ends after a grace period.

`python -m bench.kubelet KUBECONFIG SECONDS`: terminating pods go SECONDS after their deletion was seen, whatever the pod
says. Metadata is all it asks for, and it sends two requests a pod, so that it takes little from the operator measured.
"""

import asyncio
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from bench.api import JSON, MERGE_PATCH, METADATA_ONLY, PODS, Api
from bench.connection import Connection
from bench.following import follow_pods
from bench.ledger import Metadata, PodEvent

IN_FLIGHT = 16
NODE = "bench-node"


def running_status(now: str, number: int) -> dict[str, object]:
    """Return the status of a pod that runs and is ready, with an address of its own."""
    conditions = [
        {"type": name, "status": "True", "lastTransitionTime": now}
        for name in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    address = f"10.{64 + (number >> 16) % 64}.{(number >> 8) % 256}.{number % 256}"
    return {
        "phase": "Running",
        "conditions": conditions,
        "startTime": now,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}],
    }


@dataclass(slots=True)
class Kubelet:
    """Plays all nodes. `termination` is in seconds."""

    api: Api
    termination: float
    started: set[str] = field(default_factory=set)
    ending: set[str] = field(default_factory=set)
    todo: deque[Metadata] = field(default_factory=deque)
    more: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    def see(self, event: PodEvent) -> None:
        meta = event.object.metadata
        if event.type not in ("ADDED", "MODIFIED") or not meta.uid:
            return
        if meta.deletionTimestamp is None:
            if meta.uid not in self.started:
                self.started.add(meta.uid)
                self._queue(meta)
        elif meta.uid not in self.ending:
            self.ending.add(meta.uid)
            asyncio.get_running_loop().call_later(self.termination, self._queue, meta)

    def _queue(self, meta: Metadata) -> None:
        self.todo.append(meta)
        self.more.release()

    async def work(self) -> None:
        """Do one thing after the other, for ever."""
        while True:
            await self.more.acquire()
            meta = self.todo.popleft()
            await (self._end(meta) if meta.uid in self.ending else self._start(meta))

    async def _start(self, meta: Metadata) -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
        }
        status, answer = await self.api.send("POST", f"{PODS}/{meta.name}/binding", binding)
        _complain(status, answer)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        patch = {"metadata": {"uid": meta.uid}, "status": running_status(now, len(self.started))}
        path = f"{PODS}/{meta.name}/status"
        status, answer = await self.api.send("PATCH", path, patch, content=MERGE_PATCH, accept=METADATA_ONLY)
        _complain(status, answer)

    async def _end(self, meta: Metadata) -> None:
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta.uid}}
        status, answer = await self.api.send("DELETE", f"{PODS}/{meta.name}", body, accept=JSON)
        _complain(status, answer)

    async def follow(self) -> None:
        """Follow the pods, for ever; say when the first are known."""
        ready = False
        async for events in follow_pods(self.api):
            for event in events:
                self.see(event)
            if not ready:
                print("ready", flush=True)
                ready = True


def _complain(status: int, answer: bytes) -> None:
    # A pod may be gone, or be bound already: then there is nothing to do.
    if status >= 400 and status not in (404, 409):
        print(status, answer[:300].decode(errors="replace"), file=sys.stderr, flush=True)


async def _main(kubeconfig: Path, termination: float) -> None:
    async with Api(Connection.from_kubeconfig(kubeconfig), IN_FLIGHT + 1) as api:
        kubelet = Kubelet(api, termination)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(kubelet.follow())
            for _ in range(IN_FLIGHT):
                tasks.create_task(kubelet.work())


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        uvloop.run(_main(Path(sys.argv[1]), float(sys.argv[2])))
