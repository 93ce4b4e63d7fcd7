"""What a scenario is."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from bench.rows import Measurement
from bench.stage import Stage

Play = Callable[[Stage], AsyncGenerator[Measurement, None]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """How rows are measured together: on one fresh stage, within `deadline` seconds, start-up included.

    `full` ones take long and run when asked for only.
    """

    play: Play
    rows: tuple[str, ...]
    deadline: float
    full: bool = False
