"""Building a program from the pinned go.mod into the cache."""

import hashlib
import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from devcluster.errors import BuildError
from devcluster.locks import locked
from devcluster.toolchain import Go, find_go, wanted_version

MODULE = Path(__file__).parent
KUBERNETES_MINOR = 36
KUBERNETES_VERSION = f"v1.{KUBERNETES_MINOR}.1"
VERSION_PACKAGE = "k8s.io/component-base/version"
# Without a version stamped in, clients see v0.0.0 and some refuse to talk.
LINKER_FLAGS = (
    f"-s -w -X {VERSION_PACKAGE}.gitVersion={KUBERNETES_VERSION}"
    f" -X {VERSION_PACKAGE}.gitMajor=1 -X {VERSION_PACKAGE}.gitMinor={KUBERNETES_MINOR}"
)
BUILD_FLAGS = ("-trimpath", "-ldflags", LINKER_FLAGS)
BUILD_ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}

PACKAGES: Mapping[str, str] = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "helm": "helm.sh/helm/v4/cmd/helm",
}
# Measured on two cores with empty caches, in this order: whoever comes first pays for what all share.
COLD_SECONDS: Mapping[str, int] = {
    "etcd": 90,
    "kube-apiserver": 230,
    "kube-controller-manager": 75,
    "kube-scheduler": 5,
    "kwok": 15,
    "kubectl": 20,
    "helm": 25,
}
REPORT_SECONDS = 15.0

Say = Callable[[str], None]


def build_key() -> str:
    """Return the name of the cache folder: whatever changes the programs changes it."""
    digest = hashlib.sha256()
    for part in ((MODULE / "go.mod").read_bytes(), (MODULE / "go.sum").read_bytes()):
        digest.update(part)
    facts = [*BUILD_FLAGS, *BUILD_ENVIRONMENT.values(), platform.system(), platform.machine()]
    digest.update("\0".join(facts).encode())
    return digest.hexdigest()[:16]


def build(names: list[str], target: Path, cache: Path, say: Say) -> None:
    """Build the named programs into the folder `target`, one after the other; those already there are left.

    Two processes take turns. Raises BuildError with the end of the compiler's output.
    """
    waiting = lambda: say("another process is building; waiting for it")  # noqa: E731
    with locked(target / ".lock", waiting):
        missing = [name for name in PACKAGES if name in names and not (target / name).exists()]
        if not missing:
            return
        say(f"building {', '.join(missing)} from Go source into {target}")
        say(f"with Go's caches empty this takes about {_minutes(missing)} on two cores, with them warm seconds")
        go = find_go(cache, wanted_version((MODULE / "go.mod").read_text()), say)
        for number, name in enumerate(missing, 1):
            _build_one(go, name, target, lambda text, n=number: say(f"[{n}/{len(missing)}] {text}"))  # type: ignore[misc]


def _minutes(names: list[str]) -> str:
    seconds = sum(COLD_SECONDS[name] for name in names)
    return f"{seconds} s" if seconds < 100 else f"{seconds / 60:.0f} min"  # noqa: PLR2004


def _build_one(go: Go, name: str, target: Path, say: Say) -> None:
    unfinished = target / f".{name}.{os.getpid()}"
    command = [str(go.program), "build", *BUILD_FLAGS, "-o", str(unfinished), PACKAGES[name]]
    say(f"{name} ...")
    start = time.monotonic()
    try:
        _run(command, go, lambda: say(f"{name} ... {time.monotonic() - start:.0f} s"))
        unfinished.replace(target / name)
    finally:
        unfinished.unlink(missing_ok=True)
    say(f"{name} built in {time.monotonic() - start:.0f} s")


def _run(command: list[str], go: Go, still_running: Callable[[], None]) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in ("GOOS", "GOARCH", "GOROOT")}
    environment |= BUILD_ENVIRONMENT | go.environment()
    with subprocess.Popen(
        command, cwd=MODULE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            output = _output(process, still_running)
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        raise BuildError(f"{' '.join(command)} failed:\n{output[-4000:]}")


def _output(process: subprocess.Popen[str], still_running: Callable[[], None]) -> str:
    while True:
        try:
            return process.communicate(timeout=REPORT_SECONDS)[0]
        except subprocess.TimeoutExpired:
            still_running()
