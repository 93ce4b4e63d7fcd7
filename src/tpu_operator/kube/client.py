"""Requests to the API server: ready bytes out, typed values or typed errors in.

The typed models of the `kubernetes` package cost 2-3 ms of CPU a request; here a request is an aiohttp call and what
comes back goes through the caller's own decoder. Nothing is retried: whoever asks knows whether asking again is right.
"""

# ruff: noqa: PLR0913  (the options of the Kubernetes API are keyword arguments)
from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeAlias

import aiohttp
import msgspec
from aiohttp.connector import NEEDS_CLEANUP_CLOSED
from msgspec import Struct, field
from typing_extensions import TypeVar

from tpu_operator.errors import AnswerLost, ApiError, Transient
from tpu_operator.kube.answers import WRITES, error_of, event_error
from tpu_operator.kube.lines import lines
from tpu_operator.kube.objects import Decode, JsonDict, decode_json

if TYPE_CHECKING:
    from types import TracebackType

    from tpu_operator.kube.credentials import Credentials
    from tpu_operator.kube.resource import Resource

T = TypeVar("T")
A = TypeVar("A", default=JsonDict)
"""What the caller's decoder returns; without one, a dict."""

Body: TypeAlias = bytes | Mapping[str, Any]
Observer: TypeAlias = Callable[[str, "Resource", int, float], None]
"""Called after each request with verb, resource, HTTP status (0: no answer) and seconds."""

JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

CONNECT_TIMEOUT: Final = 10.0
SERVER_MARGIN: Final = 5.0
"""Seconds that the server gives up before we do: an answer that it gave up is better than none."""
IDLE_CONNECTION: Final = 60.0
"""Seconds that an unused connection is kept. API servers keep theirs for 3 minutes, load balancers often for one."""
READ_BUFFER: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """All pages of a list, and the resourceVersion at which it is true."""

    items: list[T]
    resource_version: str


class WatchEvent(Struct, frozen=True, gc=False):
    """One line of a watch. `type` is ADDED, MODIFIED, DELETED or BOOKMARK (an ERROR is raised instead)."""

    type: str
    object: msgspec.Raw


class _ListMeta(Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    next_page: str = field(name="continue", default="")


class _Page(Struct, frozen=True):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_AS_DICT: Final[Decode[Any]] = decode_json
_decode_page = msgspec.json.Decoder(_Page).decode
_decode_event = msgspec.json.Decoder(WatchEvent).decode
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class _Request:
    """One HTTP request; `verb` is what the errors and the observer call it."""

    verb: str
    method: str
    path: str
    resource: Resource | None = None
    query: Mapping[str, str] = dataclass_field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON
    timeout: aiohttp.ClientTimeout | None = None


class Client:
    """The API server over one pool of kept-alive connections. Use it as an async context manager, or call `close`."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        timeout: float = 30.0,
        silence: float = 90.0,
        connections: int = 128,
        field_manager: str = "tpu-operator",
        observer: Observer | None = None,
    ) -> None:
        self._credentials = credentials
        self._limits = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT)
        self._server_timeout = f"{max(1, int(timeout - SERVER_MARGIN))}s"
        self._silence = silence
        self._connections = connections
        self._field_manager = field_manager
        self._observer = observer
        self._open_session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections. A later request opens new ones."""
        session, self._open_session = self._open_session, None
        if session:
            await session.close()
            await asyncio.sleep(0)  # the transports are told, now they do it

    async def get(self, resource: Resource, namespace: str | None, name: str, *, decode: Decode[A] = _AS_DICT) -> A:
        """Read one object from etcd (no cache in between). Raises Gone if it is not there."""
        return decode(await self._send(_Request("get", "GET", resource.path(namespace, name), resource)))

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        decode: Decode[A] = _AS_DICT,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = 500,
    ) -> Listing[A]:
        """Read all objects, `limit` a request, as they were at one moment not before the call.

        resourceVersion is left out on purpose: `0` would allow an API server with an old cache to take us back in
        time. Raises Expired if the pages took longer than etcd keeps history (5 minutes): begin again.
        """
        query = {"limit": str(limit)} | _selectors(label_selector, field_selector)
        items: list[A] = []
        while True:
            answer = await self._send(_Request("list", "GET", resource.path(namespace), resource, query))
            page = _decode_page(answer)
            items += [decode(item) for item in page.items or ()]
            if not page.metadata.next_page:
                return Listing(items, page.metadata.resource_version)
            query["continue"] = page.metadata.next_page

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str | None = None,
        timeout: float = 290.0,  # noqa: ASYNC109  (the server's, it ends the stream)
        silence: float | None = None,
        on_open: Callable[[], None] | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield what happens after `resource_version`, until the server ends the stream after `timeout` seconds.

        A stream on which nothing arrives for `silence` seconds (without it the client's own) is taken for dead, because
        API servers send a bookmark about once a minute; it ends with Transient. `on_open` is called once the server has
        let us in, which may be long before the first event. Raises Expired if the version is too old.
        """
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, int(timeout))),
        } | _selectors(label_selector, None)
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=silence or self._silence)
        request = _Request("watch", "GET", resource.path(namespace), resource, query, timeout=limits)
        async with self._answer(request) as response:
            if on_open:
                on_open()
            async for line in lines(response.content.iter_any()):
                event = _decode_event(line)
                if event.type == "ERROR":
                    raise event_error(event.object)
                yield event

    async def create(
        self,
        resource: Resource,
        namespace: str | None,
        body: Body,
        *,
        dry_run: bool = False,
        metadata_only: bool = False,
        decode: Decode[A] = _AS_DICT,
    ) -> A:
        """POST an object. With `metadata_only` the answer is a PartialObjectMetadata, much smaller than a pod.

        Raises Conflict with reason `AlreadyExists` if the name is taken (and with reason `Conflict` if two requests
        raced for a quota: try again), Refused, or AnswerLost if the object may be there all the same. The server
        gives up before we do, so that a GET after AnswerLost tells the truth.
        """
        request = _Request(
            "create",
            "POST",
            resource.path(namespace),
            resource,
            self._write_query(dry_run=dry_run),
            _bytes(body),
            accept=METADATA_ONLY if metadata_only else JSON,
        )
        return decode(await self._send(request))

    async def apply(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Body,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        force: bool = True,
        decode: Decode[A] = _AS_DICT,
    ) -> A:
        """Server-side apply: create the object or change the fields that stand in `body`; only those become ours.

        With `force` a field owned by somebody else becomes ours too; without, it is a Conflict.
        """
        path = resource.path(namespace, name, subresource)
        query = self._write_query(dry_run=dry_run) | {"force": "true" if force else "false"}
        request = _Request("apply", "PATCH", path, resource, query, _bytes(body), content_type=APPLY_PATCH)
        return decode(await self._send(request))

    async def patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: bytes | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        decode: Decode[A] = _AS_DICT,
    ) -> A:
        """Patch an object: a list of operations is a JSON patch (RFC 6902), an object a merge patch (RFC 7386).

        A merge patch that contains `metadata.resourceVersion` raises Conflict if the object is not at that version; a
        JSON patch whose `test` fails raises Refused (422).
        """
        content = _bytes(body)
        kind = JSON_PATCH if content.lstrip()[:1] == b"[" else MERGE_PATCH
        path = resource.path(namespace, name, subresource)
        query = self._write_query(dry_run=dry_run)
        return decode(await self._send(_Request("patch", "PATCH", path, resource, query, content, content_type=kind)))

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
        propagation: str | None = None,
        dry_run: bool = False,
    ) -> None:
        """Ask for the deletion of one object. Raises Gone if it is not there or has another uid than `uid`.

        `propagation` is Background, Foreground or Orphan; without, the resource's own default holds.
        """
        request = _Request(
            "delete",
            "DELETE",
            resource.path(namespace, name),
            resource,
            {"timeout": self._server_timeout},
            _delete_options(uid, resource_version, grace_seconds, propagation, dry_run=dry_run),
            accept=METADATA_ONLY,
        )
        await self._send(request)

    async def raw(
        self, method: str, path: str, *, body: Body | None = None, query: Mapping[str, str] | None = None
    ) -> bytes:
        """Anything else: `/version`, `/apis`, a SelfSubjectAccessReview. The path is below the server's root."""
        verb = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}.get(method, method.lower())
        return await self._send(_Request(verb, method, path, None, query or {}, _bytes(body) if body else None))

    def _write_query(self, *, dry_run: bool) -> dict[str, str]:
        query = {"timeout": self._server_timeout, "fieldManager": self._field_manager}
        return query | {"dryRun": "All"} if dry_run else query

    async def _send(self, request: _Request) -> bytes:
        async with self._answer(request) as response:
            return await response.read()

    @asynccontextmanager
    async def _answer(self, request: _Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield a successful response. Whatever goes wrong, here or while it is read, leaves as an ApiError."""
        begin = time.perf_counter()
        status = 0
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self._request(request)
            status = response.status
            if status >= HTTPStatus.MULTIPLE_CHOICES:
                raise error_of(request.verb, status, await response.read(), response.headers.get("Retry-After"))
            yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            status = 0
            raise _no_answer(request.verb, error) from error
        finally:
            if response is not None:
                response.release()
            if self._observer and request.resource:
                self._observer(request.verb, request.resource, status, time.perf_counter() - begin)

    async def _request(self, request: _Request) -> aiohttp.ClientResponse:
        """Send it, and once more with a renewed token if the answer is a 401: no other answer is tried again."""
        response = await self._request_once(request)
        if response.status != HTTPStatus.UNAUTHORIZED:
            return response
        response.release()
        await self._credentials.renew()
        return await self._request_once(request)

    async def _request_once(self, request: _Request) -> aiohttp.ClientResponse:
        headers = await self._credentials.headers()
        headers["Accept"] = request.accept
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return await self._session().request(
            request.method,
            self._credentials.server + request.path,
            params=request.query,
            data=request.body,
            headers=headers,
            timeout=request.timeout or self._limits,
            proxy=self._credentials.proxy,
            server_hostname=self._credentials.server_name,
            allow_redirects=False,
        )

    def _session(self) -> aiohttp.ClientSession:
        if self._open_session is None:
            connector = aiohttp.TCPConnector(
                limit=0,
                limit_per_host=self._connections,
                keepalive_timeout=IDLE_CONNECTION,
                ssl=self._credentials.ssl_context or True,
                enable_cleanup_closed=NEEDS_CLEANUP_CLOSED,  # a leak of TLS connections in older Pythons
            )
            self._open_session = aiohttp.ClientSession(
                connector=connector,
                read_bufsize=READ_BUFFER,
                # Compressed lists cost more CPU at both ends than they save on the way.
                headers={"User-Agent": self._field_manager, "Accept-Encoding": "identity"},
            )
        return self._open_session


def _no_answer(verb: str, error: Exception) -> ApiError:
    """Tell "never sent" from "sent, but no answer": only the second leaves a write in doubt."""
    message = f"{verb}: no answer from the API server: {str(error) or type(error).__name__}"
    never_sent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.InvalidURL)
    return AnswerLost(message) if verb in WRITES and not never_sent else Transient(message)


def _selectors(labels: str | None, fields: str | None) -> dict[str, str]:
    return {key: value for key, value in (("labelSelector", labels), ("fieldSelector", fields)) if value}


def _bytes(body: Body | Sequence[Mapping[str, Any]]) -> bytes:
    return body if isinstance(body, bytes) else _encode(body)


def _delete_options(
    uid: str | None, resource_version: str | None, grace_seconds: int | None, propagation: str | None, *, dry_run: bool
) -> bytes:
    preconditions = {
        key: value for key, value in (("uid", uid), ("resourceVersion", resource_version)) if value is not None
    }
    options: JsonDict = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if preconditions:
        options["preconditions"] = preconditions
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if propagation is not None:
        options["propagationPolicy"] = propagation
    if dry_run:
        options["dryRun"] = ["All"]
    return _encode(options)
