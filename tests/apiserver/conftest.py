"""The operator of this process in a namespace of the test's own, with and without a proxy that does damage."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest
from proxy import Proxy

from bed import Bed, bed

if TYPE_CHECKING:
    from devcluster.plane import ControlPlane
    from devcluster.pytest_plugin import NamespaceFactory


@pytest.fixture
def no_failed_pass(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever the API server does, a pass never ends with an exception: that would be a bug of ours."""
    yield
    failed = [r for when in ("setup", "call") for r in caplog.get_records(when) if r.name == "tpu_operator.kube.queue"]
    assert not [f"{r.getMessage()}: {r.exc_info and r.exc_info[1]!r}" for r in failed if r.levelno >= logging.ERROR]


@pytest.fixture
async def operator(apiserver: ControlPlane, namespace: NamespaceFactory, no_failed_pass: None) -> AsyncIterator[Bed]:
    """An operator that runs. Pods that hang in termination hold nothing back longer than their grace period."""
    async with bed(apiserver, namespace(apiserver), stuck_pod_slack=0, status_interval=0.1) as made:
        yield made


@pytest.fixture
async def proxy(apiserver: ControlPlane) -> AsyncIterator[Proxy]:
    async with Proxy(apiserver.server, apiserver.ca_file, apiserver.tokens["admin"]) as made:
        yield made


@pytest.fixture
async def proxied(
    apiserver: ControlPlane, namespace: NamespaceFactory, proxy: Proxy, no_failed_pass: None
) -> AsyncIterator[Bed]:
    """An operator that runs behind `proxy`; the user and the looks of the test go around it."""
    settings = {"stuck_pod_slack": 0, "status_interval": 0.1}
    async with bed(apiserver, namespace(apiserver), server=proxy.url, **settings) as made:
        yield made
        proxy.heal()
