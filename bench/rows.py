"""The rows of the table: what is measured, what KubeRay 1.7 needs for it, and what we aim at."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.stats import disturbed


@dataclass(frozen=True, slots=True)
class AtMost:
    """The value itself is limited."""

    limit: float

    @property
    def words(self) -> str:
        return f"<= {self.limit:g}"


@dataclass(frozen=True, slots=True)
class AtMostFloor:
    """The value is limited to so many times the floor."""

    ratio: float

    @property
    def words(self) -> str:
        return f"<= {self.ratio:g} x floor"


Target = AtMost | AtMostFloor | None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `kuberay` is what KubeRay 1.7 was measured to need on such a machine, as words."""

    name: str
    work: str
    unit: str
    kuberay: str
    target: Target


@dataclass(frozen=True, slots=True)
class Measurement:
    """What came out for a row: a value in the row's unit, or None and a note that tells why.

    `floors` are the times the bare client took for the same work, before and after.
    """

    row: str
    value: float | None
    floors: tuple[float, ...] = ()
    note: str = ""

    @property
    def floor(self) -> float | None:
        return sum(self.floors) / len(self.floors) if self.floors else None

    @property
    def ratio(self) -> float | None:
        return self.value / self.floor if self.value is not None and self.floor else None

    @property
    def disturbed(self) -> bool:
        return bool(self.floors) and disturbed(self.floors)


def met(target: Target, measurement: Measurement) -> bool | None:
    """Whether the target is met; None if there is none, or no floor to compare with. No value meets no target."""
    if target is None:
        return None
    if measurement.value is None:
        return False
    if isinstance(target, AtMost):
        return measurement.value <= target.limit
    return None if measurement.ratio is None else measurement.ratio <= target.ratio


def missing(rows: Iterable[str], measured: Sequence[Measurement], note: str) -> list[Measurement]:
    """Return a measurement without a value for each of the rows that nothing was measured for."""
    done = {measurement.row for measurement in measured}
    return [Measurement(row, None, note=note) for row in rows if row not in done]


TABLE: tuple[Row, ...] = (
    Row("create", "apply -> 1,025 pods exist (256 slices x 4 + head)", "s", "8.4 s = 5.4 x floor", AtMostFloor(1.3)),
    Row("create-writes", "writes for these 1,025 pods", "writes", "1,032-1,033", AtMost(1033)),
    Row("create-webhook", "same, a webhook adds 20 ms to each create", "s", "31.6 s = 13.7 x floor", AtMostFloor(1.3)),
    Row("fair-max", "2,049-pod scale-up: slowest first pod of ten small clusters", "s", "18.4 s", AtMost(0.3)),
    Row("fair-median", "same, the median of the ten", "s", "0.03 s", AtMost(0.3)),
    Row("delete", "workersToDelete for 128 slices: 512 deletions accepted", "s", "3.8 s", AtMostFloor(1.3)),
    Row("failed", "a host failed in each of 8 slices: all 16 whole again", "s", "5.5 s", AtMost(5.5)),
    Row("deleted-mates", "a host deleted in each of 8 slices: mates' deletion sent", "s", "40.5 s", AtMost(0.5)),
    Row("deleted-whole", "same: all 16 slices whole again", "s", "45.9 s", AtMost(6)),
    Row("clusters", "300 clusters of 1 head + 3 workers: 1,200 pods exist", "s", "16.8 s", AtMost(8.4)),
    Row("clusters-events", "same: event POSTs and patches", "writes", "904 + 300", AtMost(1203)),
    Row("ready-memory", "2,049 pods all Ready: memory", "MiB", "157", AtMost(150)),
    Row("ready-cpu", "same: CPU so far", "CPU s", "6.6", AtMost(13.2)),
    Row("idle-cpu", "idle with 2,049 pods for 20 s: CPU", "CPU s", "0.23", AtMost(0.25)),
    Row("idle-writes", "same: writes", "writes", "0", AtMost(0)),
    Row("restart", "restart with 2,049 pods: to the first deletion it decides", "s", "0.79 s", AtMost(2)),
    Row("restart-10000", "same with 10,001 pods", "s", "-", None),
)


def row(name: str) -> Row:
    """Return the row of that name; raise KeyError."""
    return {row.name: row for row in TABLE}[name]
