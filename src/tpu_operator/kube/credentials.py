"""Where the API server is and who we are there: a kubeconfig, or the service account of the pod we run in.

Reading kubeconfigs and refreshing tokens (exec plugins, OIDC, Google, projected service account tokens) is the
business of the `kubernetes` package; we only take the result.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import yaml

from tpu_operator.errors import InvalidInput
from tpu_operator.lean import without

_SYNCHRONOUS = ("client", "config", "dynamic", "informer", "leaderelection", "stream", "utils", "watch")
_UNUSED = ("dynamic", "leaderelection", "stream", "watch")

with without(*(f"kubernetes.{part}" for part in _SYNCHRONOUS), *(f"kubernetes.aio.{part}" for part in _UNUSED)):
    from kubernetes.aio import config as kube_config
    from kubernetes.aio.client import ApiClient, Configuration

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

TOKEN: Final = "BearerToken"  # noqa: S105  (the name of the slot, not what is in it)
REFRESH_PERIOD: Final = 60.0
"""Seconds after which the source of a token is asked again; client-go re-reads token files as often."""

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_KUBECONFIG: Final = "~/.kube/config"


@dataclass(frozen=True, slots=True)
class Connection:
    """The same in the words of other clients: the fields are those of `kopf.ConnectionInfo`."""

    server: str
    ca_path: str | None
    insecure: bool
    scheme: str | None
    token: str | None
    certificate_path: str | None
    private_key_path: str | None
    default_namespace: str
    proxy_url: str | None


class _Loader(Protocol):
    """What we need of `KubeConfigLoader`."""

    @property
    def current_context(self) -> dict[str, dict[str, str]]: ...
    async def load_and_set(self, client_configuration: Configuration) -> None: ...


class Credentials:
    """A server and the means to be let in.

    `ssl_context` is None for a plain http server. A client certificate is read once, at the start; tokens are
    refreshed each minute and after a 401.
    """

    def __init__(
        self, configuration: Configuration, namespace: str, reload: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._configuration = configuration
        self._reload = reload
        self._loaded = time.monotonic()
        self._lock = asyncio.Lock()
        self.namespace = namespace
        self.server: str = configuration.host.rstrip("/")
        self.ssl_context: ssl.SSLContext | None = None
        if self.server.startswith("https:"):
            self.ssl_context = ApiClient(configuration).rest_client.ssl_context

    @property
    def proxy(self) -> str | None:
        """HTTP proxy to go through (`proxy-url` of a kubeconfig)."""
        return self._configuration.proxy or None

    @property
    def server_name(self) -> str | None:
        """Name to expect in the server's certificate (`tls-server-name` of a kubeconfig)."""
        return self._configuration.tls_server_name or None

    async def headers(self) -> dict[str, str]:
        """Return the headers that authenticate one request."""
        if self._reload and time.monotonic() - self._loaded > REFRESH_PERIOD:
            await self.renew()
        value = await self._configuration.get_api_key_with_prefix(TOKEN)
        return {"Authorization": value} if value else {}

    async def renew(self) -> None:
        """Fetch the token again: the server did not take the one we have."""
        if self._reload is None:
            return
        asked = time.monotonic()
        async with self._lock:
            if self._loaded < asked:  # else somebody renewed it while we waited for the lock
                await self._reload()
                self._loaded = time.monotonic()

    async def connection(self) -> Connection:
        """Return everything that `kopf.ConnectionInfo` takes; the token is the one valid now."""
        scheme, _, token = (await self.headers()).get("Authorization", "").partition(" ")
        configuration = self._configuration
        return Connection(
            server=self.server,
            ca_path=configuration.ssl_ca_cert,
            insecure=not configuration.verify_ssl,
            scheme=scheme.capitalize() or None,
            token=token.strip() or None,
            certificate_path=configuration.cert_file,
            private_key_path=configuration.key_file,
            default_namespace=self.namespace,
            proxy_url=self.proxy,
        )


async def load_credentials(kubeconfig: str | None = None, context: str | None = None) -> Credentials:
    """Find the API server: the file given, else $KUBECONFIG, else the pod's service account, else ~/.kube/config.

    Raises InvalidInput if none of them can be used.
    """
    path = kubeconfig or os.environ.get("KUBECONFIG")
    try:
        if path or not _in_cluster():
            return await _from_kubeconfig(_existing(path or DEFAULT_KUBECONFIG), context)
        return _from_service_account()
    except (kube_config.ConfigException, yaml.YAMLError, OSError) as error:
        raise InvalidInput(f"no access to a Kubernetes cluster: {error}") from error


def _in_cluster() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and (SERVICE_ACCOUNT / "token").exists()


def _existing(paths: str) -> str:
    """$KUBECONFIG may name several files, which are merged; the loader crashes if none of them is there."""
    found = [path for path in paths.split(os.pathsep) if path and Path(path).expanduser().exists()]
    if not found:
        raise InvalidInput(
            f"no kubeconfig: {paths} is not there; set KUBECONFIG or run in a pod with a service account"
        )
    return os.pathsep.join(found)


async def _from_kubeconfig(path: str, context: str | None) -> Credentials:
    configuration = Configuration()
    loader: _Loader = await kube_config.load_kube_config(  # type: ignore[no-untyped-call]
        config_file=path,
        context=context,
        client_configuration=configuration,
        persist_config=False,  # it would write the user's file
    )
    namespace = loader.current_context["context"].get("namespace") or "default"
    return Credentials(configuration, namespace, lambda: loader.load_and_set(configuration))


def _from_service_account() -> Credentials:
    """Its loader installs a hook that reads the token file again each minute, so no reload of ours."""
    configuration = Configuration()
    kube_config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    return Credentials(configuration, (SERVICE_ACCOUNT / "namespace").read_text().strip())
