"""One control plane: started, used, stopped, gone."""

import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Self

from devcluster import apiserver, audit, controller_manager, crds, etcd, kwok, pools, scheduler
from devcluster.binaries import BARE, FULL, ensure
from devcluster.certificates import Certificates, write_certificates
from devcluster.cleaning import empty
from devcluster.client import ApiClient
from devcluster.credentials import kubeconfig, write_private, write_tokens
from devcluster.daemons import Daemons
from devcluster.errors import CommandError, PortTakenError
from devcluster.options import ADMIN, CONTROLLER_MANAGER, KWOK, SCHEDULER, Options
from devcluster.ports import free_ports
from devcluster.scratch import Scratch, claim, default_root
from devcluster.waiting import wait_until

START_TRIES = 3
# The clients of the API server keep nothing; etcd and the API server keep what is thrown away.
GRACE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Folders:
    """Where things are inside the plane's temporary folder."""

    root: Path

    def make(self, name: str) -> Path:
        path = self.root / name
        path.mkdir()
        return path


class ControlPlane:
    """A running control plane; use it as a context manager, or call `stop`.

    `kubeconfig` is the admin's, `server` the https URL, `ca_file` what to trust, `tokens` the bearer tokens by user
    name, `audit_log` the JSON lines of the audit log (None unless asked for), `logs` the folder of the programs' logs.
    """

    def __init__(self, options: Options, binaries: Mapping[str, Path], scratch: Scratch) -> None:
        """Prepare; nothing runs yet. Use `ControlPlane.start`."""
        self.options = options
        self._binaries = binaries
        self._scratch = scratch
        folders = _Folders(scratch.path)
        self.logs = folders.make("logs")
        self._configs = folders.make("config")
        self._certificates: Certificates = write_certificates(folders.make("certificates"))
        self._tokens_file = self._configs / "tokens.csv"
        self.tokens = write_tokens(self._tokens_file, options.all_users())
        self.ca_file = self._certificates.ca
        self.audit_log = self.logs / "audit.log" if options.audit else None
        self._etcd_port, self._peer_port, port = free_ports(3)
        self.server = apiserver.url(port)
        self._port = port
        self.kubeconfig = self.kubeconfig_for(ADMIN.name)
        self._daemons = Daemons(home=scratch.path, logs=self.logs)

    @classmethod
    def start(cls, options: Options | None = None) -> Self:
        """Start a control plane and return it when it is ready for use, fake nodes and CRDs included.

        Programs that are not there are built first (minutes). Raises StartError or BuildError; then nothing is left.
        """
        options = options or Options()
        binaries = ensure(BARE if options.bare else FULL)
        for remaining in reversed(range(START_TRIES)):
            try:
                return cls._start(options, binaries)
            except PortTakenError:
                if remaining == 0:
                    raise
        raise AssertionError("the loop returns or raises")

    @classmethod
    def _start(cls, options: Options, binaries: Mapping[str, Path]) -> Self:
        with ExitStack() as undo:
            scratch = claim(default_root())
            undo.callback(scratch.remove)
            plane = cls(options, binaries, scratch)
            undo.callback(plane._daemons.close)
            plane._run()
            undo.pop_all()
        return plane

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop everything and remove the temporary folder; may be called twice."""
        try:
            self._daemons.stop(["kwok", "kube-scheduler", "kube-controller-manager"], GRACE_SECONDS)
            # An API server that loses its etcd first waits for it, for tens of seconds.
            self._daemons.stop(["kube-apiserver"], GRACE_SECONDS)
            self._daemons.stop(["etcd"], GRACE_SECONDS)
        finally:
            self._daemons.close()
            self._scratch.remove()

    # -- what tests and benchmarks use ---------------------------------------------------------------------------------

    def pids(self) -> dict[str, int]:
        """Return the process id of each program, by its name (for measuring, or for killing one)."""
        return self._daemons.pids()

    def client(self, user: str = ADMIN.name) -> ApiClient:
        """Return a small blocking client with the token of `user`; a context manager."""
        return ApiClient(self.server, self.ca_file, self.tokens[user])

    def kubeconfig_for(self, user: str) -> Path:
        """Return the path of a kubeconfig with the token of `user`, one of `tokens`."""
        document = kubeconfig(self.server, self.ca_file.read_bytes(), user, self.tokens[user])
        return write_private(self._configs / f"{user.replace(':', '-')}.kubeconfig", document)

    def environment(self, user: str = ADMIN.name) -> dict[str, str]:
        """Return the environment of a command that is to talk to this plane, kubectl on its PATH."""
        return os.environ | {
            "KUBECONFIG": str(self.kubeconfig_for(user)),
            "KUBECACHEDIR": str(self._scratch.path / "kubectl-cache"),
            "PATH": os.pathsep.join([str(self._kubectl.parent), os.environ.get("PATH", os.defpath)]),
        }

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        """Run kubectl as admin and return what it prints; raise CommandError with its complaint if it fails."""
        command = [str(self._kubectl), *args]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, env=self.environment())
        if done.returncode != 0:
            raise CommandError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def install_crds(self, file: Path) -> list[str]:
        """Install the CRDs of a YAML file, wait until they are served, and return their names."""
        with self.client() as client:
            return crds.install(client, file, self._daemons.check)

    def add_nodes(self, nodes: list[pools.Manifest]) -> None:
        """Create fake nodes and wait until pods can be scheduled on them."""
        with self.client() as client:
            for node in nodes:
                client.post("/api/v1/nodes", node)
            self._wait(f"{len(nodes)} fake nodes ready", lambda: _unready_nodes(client) == 0)

    def create_namespace(self, name: str) -> None:
        """Create a namespace and wait until pods can be created in it."""
        with self.client() as client:
            client.post("/api/v1/namespaces", {"metadata": {"name": name}})
            self._wait_for_account(client, name)

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace without waiting; on a bare plane, what is in it (the namespace itself then stays)."""
        with self.client() as client:
            if self.options.bare:
                empty(client, name)
                return
            # Pods first, so that their chips are free at once rather than when the controller comes by.
            client.delete(f"/api/v1/namespaces/{name}/pods?gracePeriodSeconds=0")
            client.delete(f"/api/v1/namespaces/{name}")

    # -- starting ------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._start_etcd()
        self._start_apiserver()
        if not self.options.bare:
            self._start_controllers()
            self.add_nodes(pools.nodes(self.options.pools, self.options.cpu_nodes))
            with self.client() as client:
                self._wait_for_account(client, "default")
        for file in self.options.crds:
            self.install_crds(file)

    def _start_etcd(self) -> None:
        data = self._scratch.path / "etcd"
        command = etcd.command(
            self._binaries["etcd"], data=data, client_port=self._etcd_port, peer_port=self._peer_port
        )
        self._daemons.start("etcd", command)

    def _start_apiserver(self) -> None:
        command = apiserver.command(
            self._binaries["kube-apiserver"],
            port=self._port,
            etcd_url=etcd.url(self._etcd_port),
            certificates=self._certificates,
            tokens=self._tokens_file,
            audit=self._audit(),
            bare=self.options.bare,
            extra=self.options.apiserver_flags,
        )
        self._daemons.start("kube-apiserver", command)
        with self.client() as client:
            self._wait("kube-apiserver ready", partial(client.answers, "/readyz"))

    def _audit(self) -> apiserver.Audit | None:
        if self.options.audit is None or self.audit_log is None:
            return None
        policy = write_private(self._configs / "audit-policy.yaml", audit.policy(self.options.audit))
        return apiserver.Audit(policy, self.audit_log)

    def _start_controllers(self) -> None:
        self._daemons.start(
            "kube-controller-manager",
            controller_manager.command(
                self._binaries["kube-controller-manager"],
                kubeconfig=self.kubeconfig_for(CONTROLLER_MANAGER.name),
                certificates=self._certificates,
                extra=self.options.controller_manager_flags,
            ),
        )
        configuration = scheduler.configuration(self.kubeconfig_for(SCHEDULER.name))
        config = write_private(self._configs / "scheduler.yaml", configuration)
        self._daemons.start("kube-scheduler", scheduler.command(self._binaries["kube-scheduler"], config=config))
        self._daemons.start("kwok", kwok.command(self._binaries["kwok"], kubeconfig=self.kubeconfig_for(KWOK.name)))

    def _wait(self, what: str, condition: Callable[[], bool]) -> None:
        wait_until(condition, what, timeout=self.options.start_timeout, check=self._daemons.check)

    def _wait_for_account(self, client: ApiClient, namespace: str) -> None:
        if self.options.bare:
            return
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        self._wait(f"service account default of {namespace}", partial(client.answers, path))

    @cached_property
    def _kubectl(self) -> Path:
        return ensure(["kubectl"])["kubectl"]


def _unready_nodes(client: ApiClient) -> int:
    """Count the fake nodes that are not Ready, or still tainted for it (the controller manager takes that off)."""
    items = client.get("/api/v1/nodes?labelSelector=type%3Dkwok")["items"]
    assert isinstance(items, list)
    return sum(not _schedulable(node) for node in items)


def _schedulable(node: Mapping[str, Mapping[str, list[Mapping[str, str]]]]) -> bool:
    conditions = node["status"].get("conditions", [])
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    taints = node["spec"].get("taints", [])
    return ready and not any(taint["key"].startswith("node.kubernetes.io/") for taint in taints)
