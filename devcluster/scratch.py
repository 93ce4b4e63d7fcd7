"""The temporary folder of one control plane, and the removal of those whose owner died without cleaning up."""

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from devcluster.locks import locked, try_lock

OWNER = "owner.lock"


@dataclass(frozen=True, slots=True)
class Scratch:
    """A folder that lives as long as `lock` is held: by us, so until `remove` or until our process ends."""

    path: Path
    lock: IO[bytes]

    def remove(self) -> None:
        """Delete the folder with all it holds."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.lock.close()


def default_root() -> Path:
    """Return where the folders of this user's planes are: short, because some clients put sockets there."""
    return Path(tempfile.gettempdir()) / f"devcluster-{os.getuid()}"


def claim(root: Path) -> Scratch:
    """Make a fresh folder under `root` and own it; folders whose owner has died are removed on the way."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    # One starter at a time, else a folder could be swept between its creation and its lock.
    with locked(root / ".starting"):
        sweep(root)
        path = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=root))
        lock = try_lock(path / OWNER)
        assert lock is not None, "a lock on a new file is free"
        return Scratch(path, lock)


def sweep(root: Path) -> list[Path]:
    """Remove the folders under `root` that nobody owns any more and return their paths."""
    return [path for path in root.iterdir() if path.is_dir() and _swept(path)]


def _swept(path: Path) -> bool:
    lock = try_lock(path / OWNER)
    if lock is None:
        return False
    with lock:
        shutil.rmtree(path, ignore_errors=True)
    return True
