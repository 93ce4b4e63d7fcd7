"""Where the programs come from: a folder that you name, the cache, PATH (kubectl only, if its version fits), a build."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from devcluster.building import KUBERNETES_MINOR, PACKAGES, Say, build, build_key
from devcluster.errors import BuildError

# The first is ours; the second is what users of envtest have set already.
FOLDER_VARIABLES = ("TPU_OPERATOR_BIN", "KUBEBUILDER_ASSETS")
CACHE_VARIABLE = "TPU_OPERATOR_CACHE"
# Of the others only the pinned version is known to work.
FROM_PATH = frozenset({"kubectl"})
# Kubernetes' version skew policy: kubectl may be one minor version older or newer than the API server.
KUBECTL_SKEW = 1

BARE = ("etcd", "kube-apiserver")
FULL = (*BARE, "kube-controller-manager", "kube-scheduler", "kwok")


@dataclass(frozen=True, slots=True)
class Sources:
    """Where to look, in this order: `folders`, then `built`, then `path` (the value of PATH)."""

    folders: tuple[Path, ...]
    cache: Path
    path: str
    key: str

    @property
    def built(self) -> Path:
        """The cache folder of this go.sum, these flags and this kind of machine."""
        return self.cache / "devcluster" / self.key

    @classmethod
    def of(cls, environ: Mapping[str, str], key: str) -> "Sources":
        """Read the environment variables."""
        folders = tuple(Path(environ[name]) for name in FOLDER_VARIABLES if environ.get(name))
        home = Path(environ.get("HOME") or Path.home())
        cache = Path(environ[CACHE_VARIABLE]) if environ.get(CACHE_VARIABLE) else home / ".cache" / "tpu-operator"
        return cls(folders, cache, environ.get("PATH", os.defpath), key)


def lookup(name: str, sources: Sources) -> Path | None:
    """Return the path of a program that is there, or None if it has to be built."""
    for folder in (*sources.folders, sources.built):
        if os.access(folder / name, os.X_OK):
            return (folder / name).absolute()
    found = shutil.which(name, path=sources.path) if name in FROM_PATH else None
    return Path(found) if found and fits(Path(found)) else None


def fits(kubectl: Path) -> bool:
    """Tell whether a kubectl is close enough in version to our API server; one that does not run is not."""
    command = [str(kubectl), "version", "--client", "--output=json"]
    try:
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    match = re.search(r'"gitVersion": "v1\.(\d+)\.', printed)
    return match is not None and abs(int(match[1]) - KUBERNETES_MINOR) <= KUBECTL_SKEW


def ensure(names: Iterable[str], say: Say | None = None) -> dict[str, Path]:
    """Return the paths of the named programs, building those that are nowhere.

    Raises BuildError if a name is not one of ours, or the build fails.
    """
    wanted = list(names)
    if unknown := sorted(set(wanted) - set(PACKAGES)):
        raise BuildError(f"unknown program {', '.join(unknown)}: there are {', '.join(PACKAGES)}")
    sources = Sources.of(os.environ, build_key())
    missing = [name for name in wanted if lookup(name, sources) is None]
    if missing:
        build(missing, sources.built, sources.cache, say or to_stderr)
    found = {name: lookup(name, sources) for name in wanted}
    return {name: path for name, path in found.items() if path is not None}


def to_stderr(text: str) -> None:
    """Print a line of progress, at once; standard output is for results."""
    print(text, file=sys.stderr, flush=True)
