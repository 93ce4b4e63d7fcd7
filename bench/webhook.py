"""A mutating admission webhook that allows everything, late.

`python -m bench.webhook CERTIFICATE KEY SECONDS` prints "ready PORT" and serves until it is ended.
"""

import asyncio
import ssl
import sys

import msgspec
import uvloop
from aiohttp import web

LOOPBACK = "127.0.0.1"


class _Request(msgspec.Struct):
    uid: str


class _Review(msgspec.Struct):
    request: _Request


_decode = msgspec.json.Decoder(_Review).decode


def answer(body: bytes) -> dict[str, object]:
    """Return the AdmissionReview (admission.k8s.io/v1) that lets the reviewed request pass."""
    response = {"uid": _decode(body).request.uid, "allowed": True}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


async def _main(certificate: str, key: str, delay: float) -> None:
    async def review(request: web.Request) -> web.Response:
        body = await request.read()
        await asyncio.sleep(delay)
        return web.json_response(answer(body))

    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    application = web.Application(client_max_size=16 * 1024 * 1024)
    application.router.add_post("/", review)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, LOOPBACK, 0, ssl_context=tls).start()
    print("ready", runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
