"""Waiting for a condition that only the outside world can make true."""

import time
from collections.abc import Callable

from devcluster.errors import StartError

PAUSE = 0.05


def wait_until(condition: Callable[[], bool], what: str, *, timeout: float, check: Callable[[], None]) -> None:
    """Ask `condition` every 50 ms until it holds; `check` raises if waiting has become pointless.

    Raises StartError after `timeout` seconds: the message names `what` was waited for.
    """
    deadline = time.monotonic() + timeout
    while not condition():
        check()
        if time.monotonic() > deadline:
            raise StartError(f"{what}: not so after {timeout:.0f} s")
        time.sleep(PAUSE)
