"""The few requests that the driver and its helper processes send."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import aiohttp

from bench.connection import Connection
from bench.errors import RequestRefusedError
from bench.manifests import NAMESPACE

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
RAYCLUSTERS = f"/apis/ray.io/v1/namespaces/{NAMESPACE}/rayclusters"

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

Body = bytes | Mapping[str, Any] | Sequence[Mapping[str, Any]] | None


class Api:
    """One session; an asynchronous context manager."""

    def __init__(self, connection: Connection, connections: int = 64) -> None:
        self._connection = connection
        self._connections = connections

    async def __aenter__(self) -> Self:
        self.session = aiohttp.ClientSession(
            self._connection.server,
            headers=self._connection.headers(),
            connector=aiohttp.TCPConnector(ssl=self._connection.tls(), limit=self._connections),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=None),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.close()

    async def send(
        self, method: str, path: str, body: Body = None, *, content: str = JSON, accept: str = JSON
    ) -> tuple[int, bytes]:
        """Send one request and return status and answer, whatever they are."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": content, "Accept": accept}
        async with self.session.request(method, path, data=data, headers=headers) as response:
            return response.status, await response.read()

    async def call(
        self, method: str, path: str, body: Body = None, *, content: str = JSON, accept: str = JSON
    ) -> dict[str, Any]:
        """Send one request and return the answer; raise RequestRefusedError if it is an error."""
        status, answer = await self.send(method, path, body, content=content, accept=accept)
        if status >= 400:
            raise RequestRefusedError(status, f"{method} {path}: {answer[:500].decode(errors='replace')}")
        parsed: dict[str, Any] = json.loads(answer)
        return parsed

    async def lines(self, path: str, accept: str = METADATA_ONLY) -> AsyncIterator[list[bytes]]:
        """Yield the lines of a watch in batches, as they come in."""
        async with self.session.get(path, headers={"Accept": accept}) as response:
            if response.status >= 400:
                raise RequestRefusedError(response.status, f"watch {path}")
            rest = b""
            async for chunk in response.content.iter_any():
                *whole, rest = (rest + chunk).split(b"\n")
                if whole:
                    yield whole
