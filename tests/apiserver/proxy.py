"""A reverse proxy in front of a real API server that does damage on demand.

Nothing is made up but the faults: what passes through is what the API server says. A fault is chosen by a predicate over
requests and holds for a number of them:

    async with Proxy(plane.server, plane.ca_file, plane.tokens["admin"]) as proxy:
        proxy.fail(writes("pods"), 500, times=2)        # answered by the proxy, never carried out
        proxy.cut(writes("pods"))                        # connection lost before it was carried out
        proxy.lose_answer(writes("pods"))                # carried out, connection lost before the answer
        proxy.delay(reads("pods"), 1.5)                  # carried out late
        proxy.delay_events(watches("pods"), 5.0)         # each event of streams opened from now on comes late
        proxy.hold_events(watches("pods"))               # events of such streams are kept back (open ones too) ...
        proxy.release_events()                           # ... until now
        proxy.swallow_events(watches("pods"))            # what open streams would tell from now on is lost
        proxy.cut_streams(); proxy.end_streams(); proxy.inject(event); proxy.requests; proxy.heal()

Point a client at `proxy.url`, or at the kubeconfig that `proxy.write_kubeconfig(path)` writes.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import aiohttp
from aiohttp import web
from aiohttp.connector import NEEDS_CLEANUP_CLOSED

if TYPE_CHECKING:
    from pathlib import Path

HOP_BY_HOP = frozenset({"host", "connection", "transfer-encoding", "content-length", "keep-alive"})
FOR_EVER = 10**9
PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as predicates see it."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes = b""

    @property
    def watch(self) -> bool:
        return self.query.get("watch") in {"1", "true"}

    def of(self, plural: str) -> bool:
        """Tell whether it is about this resource: the collection, an object or a subresource of it."""
        return f"/{plural}/" in self.path + "/"


Match = Callable[[Seen], bool]


def writes(plural: str, *methods: str) -> Match:
    return lambda seen: seen.of(plural) and seen.method in (methods or ("POST", "PUT", "PATCH", "DELETE"))


def reads(plural: str) -> Match:
    return lambda seen: seen.of(plural) and seen.method == "GET" and not seen.watch


def watches(plural: str) -> Match:
    return lambda seen: seen.of(plural) and seen.watch


def everything(_: Seen) -> bool:
    return True


@dataclass(slots=True, eq=False)
class _Fault:
    matches: Match
    times: int
    answer: Callable[[], web.Response] | None = None
    delay: float = 0.0
    cut_before: bool = False
    cut_after: bool = False


@dataclass(slots=True, eq=False)
class Stream:
    """An open watch."""

    seen: Seen
    task: asyncio.Task[Any]
    delay: float
    deaf: bool = False
    lines: asyncio.Queue[tuple[float, bytes | None]] = field(default_factory=asyncio.Queue)
    flowing: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, line: bytes | None) -> None:
        self.lines.put_nowait((asyncio.get_running_loop().time() + self.delay, line))


class Proxy:
    """The proxy; an async context manager."""

    def __init__(self, server: str, ca_file: Path | str, token: str) -> None:
        self._server = server
        self._ssl = ssl.create_default_context(cafile=str(ca_file))
        self._token = token
        self._faults: list[_Fault] = []
        self._event_delays: list[tuple[Match, float]] = []
        self._held: list[Match] = []
        self.streams: list[Stream] = []
        self.requests: list[Seen] = []
        self._news = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._ssl, enable_cleanup_closed=NEEDS_CLEANUP_CLOSED),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = "http://{}:{}".format(*self._runner.addresses[0][:2])
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut_streams()
        await self._runner.cleanup()
        await self._session.close()
        await asyncio.sleep(0)

    def write_kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig that leads here. The token is the one that the proxy was given."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "proxy", "cluster": {"server": self.url}}],
            "users": [{"name": "user", "user": {"token": self._token}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "user"}}],
            "current-context": "proxy",
        }
        path.write_text(json.dumps(document))
        return path

    # -- faults --------------------------------------------------------------------------------------------------------

    def fail(
        self,
        matches: Match,
        status: int,
        *,
        times: int = 1,
        message: str = "injected",
        reason: str = "",
        retry_after: int | None = None,
    ) -> None:
        """Answer with a Status instead of asking the API server."""
        body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        body |= {"code": status, "reason": reason, "message": message}
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        self._faults.append(
            _Fault(matches, times, answer=lambda: web.json_response(body, status=status, headers=headers))
        )

    def delay(self, matches: Match, seconds: float, *, times: int = FOR_EVER) -> None:
        """Pass the request on late."""
        self._faults.append(_Fault(matches, times, delay=seconds))

    def cut(self, matches: Match, *, times: int = 1) -> None:
        """Lose the connection before the request is carried out."""
        self._faults.append(_Fault(matches, times, cut_before=True))

    def lose_answer(self, matches: Match, *, times: int = 1) -> None:
        """Carry the request out and lose the connection before the answer."""
        self._faults.append(_Fault(matches, times, cut_after=True))

    def heal(self) -> None:
        """Take back all faults, the delays of events and what holds them too; open streams stay delayed."""
        self._faults.clear()
        self._event_delays.clear()
        self.release_events()

    def delay_events(self, matches: Match, seconds: float) -> None:
        """Deliver each event of matching streams late, those that are opened from now on."""
        self._event_delays.append((matches, seconds))

    def hold_events(self, matches: Match) -> None:
        """Keep the events of matching streams back: they go silent, though connected."""
        self._held.append(matches)
        for stream in self.streams:
            if matches(stream.seen):
                stream.flowing.clear()

    def release_events(self) -> None:
        """Deliver what was held back, and what comes."""
        self._held.clear()
        for stream in self.streams:
            stream.flowing.set()

    def swallow_events(self, matches: Match) -> None:
        """Throw away what the API server tells matching streams that are open now; later ones are not concerned."""
        for stream in self.streams:
            stream.deaf = stream.deaf or matches(stream.seen)

    def cut_streams(self, matches: Match = everything) -> int:
        """Lose the connection of open watches; return of how many."""
        doomed = [stream for stream in self.streams if matches(stream.seen)]
        for stream in doomed:
            stream.task.cancel()
        return len(doomed)

    def end_streams(self, matches: Match = everything) -> int:
        """End open watches as a server does whose time is over; return how many."""
        ended = [stream for stream in self.streams if matches(stream.seen)]
        for stream in ended:
            stream.put(None)
        return len(ended)

    def inject(self, event: Mapping[str, Any], matches: Match = everything) -> int:
        """Put an event into open watches; return into how many."""
        chosen = [stream for stream in self.streams if matches(stream.seen)]
        for stream in chosen:
            stream.put(json.dumps(event).encode() + b"\n")
        return len(chosen)

    def count(self, matches: Match) -> int:
        """Return how many requests have come that match."""
        return sum(map(matches, self.requests))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition over `requests` and `streams` holds; TimeoutError if it never does."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._news.clear()
                await self._news.wait()

    # -- serving -------------------------------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        seen = Seen(request.method, request.path, dict(request.query), await request.read())
        self.requests.append(seen)
        self._news.set()
        fault = self._take(seen)
        if fault.answer is not None:
            return fault.answer()
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.cut_before:
            return self._hang_up(request)
        headers = {key: value for key, value in request.headers.items() if key.lower() not in HOP_BY_HOP}
        async with self._session.request(
            seen.method, self._server + request.raw_path, headers=headers, data=seen.body or None
        ) as answer:
            if seen.watch and answer.status == 200:
                return await self._stream(request, seen, answer)
            body = await answer.read()
        if fault.cut_after:
            return self._hang_up(request)
        kept = {key: value for key, value in answer.headers.items() if key.lower() not in HOP_BY_HOP}
        return web.Response(status=answer.status, body=body, headers=kept)

    def _take(self, seen: Seen) -> _Fault:
        for fault in self._faults:
            if fault.times > 0 and fault.matches(seen):
                fault.times -= 1
                return fault
        return _Fault(everything, 0)

    @staticmethod
    def _hang_up(request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _stream(self, request: web.Request, seen: Seen, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        delay = max((seconds for matches, seconds in self._event_delays if matches(seen)), default=0.0)
        stream = Stream(seen, task, delay)
        if not any(matches(seen) for matches in self._held):
            stream.flowing.set()
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        self.streams.append(stream)
        self._news.set()
        reader = asyncio.create_task(self._read(answer, stream))
        try:
            await self._deliver(stream, response)
        except asyncio.CancelledError:
            self._hang_up(request)
        finally:
            self.streams.remove(stream)
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        return response

    @staticmethod
    async def _read(answer: aiohttp.ClientResponse, stream: Stream) -> None:
        rest = b""
        async for chunk in answer.content.iter_any():
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole if not stream.deaf else ():
                stream.put(line + b"\n")
        stream.put(None)

    @staticmethod
    async def _deliver(stream: Stream, response: web.StreamResponse) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due, line = await stream.lines.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            await stream.flowing.wait()
            if line is None:
                return
            with suppress(ConnectionError):
                await response.write(line)
