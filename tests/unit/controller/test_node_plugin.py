"""`tpu_environment: auto` is decided by what the API server says of itself."""

from __future__ import annotations

import json

import pytest

from tpu_operator.config import OperatorConfig
from tpu_operator.controller.node_plugin import with_known_platform
from tpu_operator.errors import Transient


class Server:
    def __init__(self, answer: bytes | Exception) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def raw(self, method: str, path: str) -> bytes:
        self.asked.append(path)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def version(text: str) -> bytes:
    return json.dumps({"gitVersion": text}).encode()


@pytest.mark.parametrize(
    ("setting", "answer", "decided"),
    [
        ("auto", version("v1.34.1-gke.3084001"), "never"),
        ("auto", version("v1.35.0"), "always"),
        ("auto", version("v1.33.1-eks-1234"), "always"),
        ("auto", b"nonsense", "auto"),
        ("auto", Transient("later", status=503), "auto"),
        ("always", version("v1.34.1-gke.1"), "always"),
        ("never", version("v1.35.0"), "never"),
    ],
)
async def test_auto_leaves_the_shape_to_gke_on_gke(setting, answer, decided):
    server = Server(answer)
    config = OperatorConfig(tpu_environment=setting, cluster_domain="example.local")
    found = await with_known_platform(config, server)
    assert (found.tpu_environment, found.cluster_domain) == (decided, "example.local")
    assert server.asked == (["/version"] if setting == "auto" else [])
