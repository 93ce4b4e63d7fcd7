"""Fixtures: `pytest_plugins = ["devcluster.pytest_plugin"]` in a conftest.py or a test module.

`apiserver`  bare plane (etcd and kube-apiserver) with our CRD, one a session and worker process
`cluster`    full plane with our CRD and fake TPU nodes, one a session and worker process
`namespace`  `namespace(plane)` makes a namespace of its own for the test and returns its name

What they start with is `apiserver_options` and `cluster_options`: override these in the
top-level conftest.py to change it (a plane is started once: an override in a module would come too late or hit others).
"""

import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from devcluster.binaries import BARE, FULL, ensure
from devcluster.options import AuditLevel, Options
from devcluster.plane import ControlPlane
from devcluster.pools import parse_pool

CRD = Path(__file__).parents[1] / "crds" / "ray.io_rayclusters.yaml"
POOLS = ("tpu-v6e-slice:4x4:2", "tpu-v6e-slice:2x2:2")

NamespaceFactory = Callable[[ControlPlane], str]


@pytest.fixture(scope="session")
def apiserver_options() -> Options:
    """What the `apiserver` plane is started with."""
    return Options(bare=True, crds=(CRD,), audit=AuditLevel.METADATA)


@pytest.fixture(scope="session")
def cluster_options() -> Options:
    """What the `cluster` plane is started with."""
    return Options(pools=tuple(map(parse_pool, POOLS)), crds=(CRD,), audit=AuditLevel.METADATA)


@pytest.fixture(scope="session")
def apiserver(apiserver_options: Options, pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """A bare control plane: etcd and kube-apiserver, our CRD installed."""
    yield from _plane(apiserver_options, pytestconfig)


@pytest.fixture(scope="session")
def cluster(cluster_options: Options, pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """A whole control plane with fake nodes, our CRD installed."""
    yield from _plane(cluster_options, pytestconfig)


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> Iterator[NamespaceFactory]:
    """Make namespaces for this test alone: `namespace(plane)` returns the name; deleted after the test."""
    stem = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].rstrip("-")

    with ExitStack() as undo:

        def make(plane: ControlPlane) -> str:
            name = f"{stem}-{secrets.token_hex(4)}"
            plane.create_namespace(name)
            undo.callback(plane.delete_namespace, name)
            return name

        yield make


def _plane(options: Options, config: pytest.Config) -> Iterator[ControlPlane]:
    _show_build(BARE if options.bare else FULL, config)
    with ControlPlane.start(options) as plane:
        yield plane


def _show_build(names: tuple[str, ...], config: pytest.Config) -> None:
    """Build what is missing with its progress shown: minutes of silence would look like a hang."""
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is None:
        ensure(names)
        return
    with capture.global_and_fixture_disabled():
        ensure(names)
