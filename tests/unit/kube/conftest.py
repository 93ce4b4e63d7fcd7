"""An event loop whose clock jumps to the next timer: minutes of pauses pass in no time, and always the same way."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class _Jump(selectors.DefaultSelector):
    """Where a loop would sleep until its next timer, move the clock there."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            pytest.fail("the loop would wait for ever")
        self.passed += timeout
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.passed


@pytest.fixture
def in_virtual_time() -> Callable[[Coroutine[Any, Any, T]], T]:
    """Run a coroutine to its end in a loop with a jumping clock."""

    def run(coroutine: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=JumpingLoop) as runner:
            return runner.run(coroutine)

    return run
