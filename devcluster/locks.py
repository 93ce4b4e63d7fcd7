"""Advisory file locks: the kernel drops them when their holder ends, however it ends."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def try_lock(path: Path) -> IO[bytes] | None:
    """Take the lock on `path` and return the open file that holds it, or None if another process has it."""
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


@contextmanager
def locked(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock on `path`; `waiting` is called once if somebody else has it at first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = try_lock(path)
    if file is None:
        waiting()
        file = path.open("ab")
        fcntl.flock(file, fcntl.LOCK_EX)
    with file:
        yield
