"""A real admission webhook in the way of our pods: down, slow, refusing (case AD-11)."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import ipaddress
import json
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bed import Bed, alive, condition, group, label, raycluster, workers
from tpu_operator.api import names
from tpu_operator.errors import Gone
from tpu_operator.kube.resource import Resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

pytestmark = pytest.mark.apiserver

WEBHOOKS = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"
)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and self-signed certificate for the loopback address, one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhook")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("webhook") / "webhook.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return file


class Webhook:
    """The webhook's server. `judge` takes a pod and tells why it is refused, None if it is not."""

    def __init__(self, certificate: Path) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        self.asked = 0
        self.judge: Callable[[dict[str, Any]], Awaitable[str | None]] = welcome
        self.port = 0

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._context, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked += 1
        review = await request.json()
        refusal = await self.judge(review["request"]["object"])
        response = {"uid": review["request"]["uid"], "allowed": refusal is None, "status": {"message": refusal or ""}}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})


async def welcome(_: dict[str, Any]) -> str | None:
    return None


def bundle_of(certificate: Path) -> str:
    text = certificate.read_bytes()
    return base64.b64encode(text[text.index(b"-----BEGIN CERTIFICATE") :]).decode()


@asynccontextmanager
async def registered(b: Bed, webhook: Webhook, certificate: Path) -> AsyncIterator[None]:
    """Ask the webhook about every pod of the bed's namespace."""
    name = f"{b.namespace}.example.com"
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    await b.client.create(
        WEBHOOKS,
        None,
        {
            "metadata": {"name": name},
            "webhooks": [
                {
                    "name": "pods.example.com",
                    "rules": [rule],
                    "clientConfig": {"url": f"https://127.0.0.1:{webhook.port}/", "caBundle": bundle_of(certificate)},
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": b.namespace}},
                    "failurePolicy": "Fail",
                    "sideEffects": "None",
                    "timeoutSeconds": 1,
                    "admissionReviewVersions": ["v1"],
                }
            ],
        },
    )
    try:
        await in_force(b, webhook)
        yield
    finally:
        await b.client.delete(WEBHOOKS, None, name)


async def in_force(b: Bed, webhook: Webhook) -> None:
    """The API server takes a moment to hear of it: try without creating anything until it asks."""
    from tpu_operator.kube.resource import PODS

    pod = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "c", "image": "c"}]}}

    async def ask() -> int:
        await b.client.create(PODS, b.namespace, pod, dry_run=True)
        return webhook.asked

    await b.until_async("the webhook is asked", ask, lambda asked: asked > 0)
    with pytest.raises(Gone):
        await b.client.get(PODS, b.namespace, "probe")


@pytest.fixture
async def webhook(certificate: Path, operator: Bed) -> AsyncIterator[Webhook]:
    made = Webhook(certificate)
    await made.start()
    async with registered(operator, made, certificate):
        yield made
    await made.stop()


def live_workers(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [p for p in workers(pods) if alive(p)]


async def test_pods_come_in_the_right_number_after_the_webhook_was_down(operator: Bed, webhook: Webhook) -> None:
    await webhook.stop()
    await operator.create(raycluster("demo", group("g", 2, 2)))
    await operator.until_true("a create has failed", lambda: operator.made() >= 2)
    seen = await operator.until_cluster(
        "demo", "told", lambda c: condition(c, "ReplicaFailure").get("status") == "True"
    )
    assert "failed calling webhook" in condition(seen, "ReplicaFailure")["message"]
    tries = operator.made()
    await operator.watch_for(1.0)
    assert operator.made() - tries <= 4
    await webhook.start()
    await operator.until_live(5)
    await operator.settled()
    assert len(await operator.pods()) == 5
    assert operator.killed() == 0


async def test_a_webhook_that_is_too_slow_for_some_pods_leaves_no_pod_twice(operator: Bed, webhook: Webhook) -> None:
    slow = 3

    async def judge(_: dict[str, Any]) -> str | None:
        nonlocal slow
        slow -= 1
        if slow >= 0:
            await asyncio.sleep(2)
        return None

    webhook.judge = judge
    await operator.create(raycluster("demo", group("g", 2, 2)))
    pods = await operator.until_live(5)
    await operator.settled()
    slots = {(label(p, names.REPLICA_INDEX), label(p, names.HOST_INDEX)) for p in live_workers(pods)}
    assert len(slots) == 4
    assert len(await operator.pods()) == 5


async def test_a_host_that_is_refused_leaves_no_half_slice(operator: Bed, webhook: Webhook) -> None:
    async def judge(pod: dict[str, Any]) -> str | None:
        return "no host three here" if label(pod, names.HOST_INDEX) == "3" else None

    webhook.judge = judge
    await operator.create(raycluster("demo", group("g", 2, 4), group("h", 1)))
    seen = await operator.until_cluster(
        "demo", "told", lambda c: condition(c, "ReplicaFailure").get("status") == "True"
    )
    assert "no host three here" in condition(seen, "ReplicaFailure")["message"]
    await operator.settled()
    pods = await operator.until_live(2)
    assert {label(p, names.NODE_GROUP) for p in pods if alive(p)} == {"headgroup", "h"}
    assert operator.made() <= 2 + 2 * 8
    told = [e for e in await operator.events() if e["reason"] == "FailedToCreateWorkerPod"]
    assert len(told) == 1, json.dumps([e["note"] for e in told])
