"""The floor: a client with nothing to decide, 64 requests in flight, in a process of its own.

`python -m bench.bare KUBECONFIG REQUESTS` says "ready", waits for a line, sends all requests of the file (JSON: a list of
[method, path, body or null]) and prints the number of answers by status as JSON.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import uvloop

from bench.api import Api
from bench.connection import Connection

IN_FLIGHT = 64


class BareRequest(msgspec.Struct, array_like=True):
    """One request, body ready to send."""

    method: str
    path: str
    body: msgspec.Raw


async def _send_all(api: Api, requests: Iterator[BareRequest], answers: Counter[int]) -> None:
    for request in requests:
        async with api.session.request(
            request.method, request.path, data=bytes(request.body), headers={"Content-Type": "application/json"}
        ) as response:
            await response.read()
            answers[response.status] += 1


async def _main(connection: Connection, requests: Iterator[BareRequest]) -> None:
    answers: Counter[int] = Counter()
    async with Api(connection, IN_FLIGHT) as api:
        # An operator that has run for a while has its connections; 64 TLS handshakes are no part of the work.
        await asyncio.gather(*(api.call("GET", "/version") for _ in range(IN_FLIGHT)))
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await asyncio.gather(*(_send_all(api, requests, answers) for _ in range(IN_FLIGHT)))
    print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    requests = msgspec.json.decode(Path(sys.argv[2]).read_bytes(), type=list[BareRequest])
    uvloop.run(_main(Connection.from_kubeconfig(Path(sys.argv[1])), iter(requests)))
