"""The table for people and the JSON for programs."""

from collections.abc import Iterable

from rich.table import Table

from bench.rows import Measurement, Row, met, row

_DIGITS = {"s": 2, "CPU s": 2, "MiB": 0, "writes": 0}
_ANSWERS = {True: "[green]yes", False: "[red]no", None: "-"}


def number(value: float | None, unit: str) -> str:
    """Return the value with as many digits as mean something, or a dash."""
    return "-" if value is None else f"{value:,.{_DIGITS[unit]}f} {unit}"


def cells(line: Row, measurement: Measurement, *, comparable: bool) -> tuple[str, ...]:
    """Return one line of the table. Without `comparable` sizes no target is judged."""
    measured = measurement.note if measurement.value is None else number(measurement.value, line.unit)
    ratio = "-" if measurement.ratio is None else f"{measurement.ratio:.2f}"
    target = "-" if line.target is None else line.target.words
    answer = _ANSWERS[met(line.target, measurement) if comparable else None]
    return line.work, measured, number(measurement.floor, line.unit), ratio, line.kuberay, target, answer


def line(of: Row, measurement: Measurement) -> str:
    """Return what came out for a row as one line of text."""
    floors = " and ".join(number(floor, of.unit) for floor in measurement.floors)
    parts = [
        f"{of.name}: {number(measurement.value, of.unit)}",
        f"floor {floors}, ratio {measurement.ratio:.2f}" if measurement.ratio else "",
        measurement.note,
    ]
    return "; ".join(part for part in parts if part)


def table(measurements: Iterable[Measurement], *, comparable: bool) -> Table:
    """Build the table."""
    built = Table(title=None if comparable else "small sizes: not comparable with KubeRay's figures or the targets")
    built.add_column("work", overflow="fold")
    for heading in ("measured", "floor", "ratio"):
        built.add_column(heading, justify="right")
    for heading in ("KubeRay 1.7", "target", "met"):
        built.add_column(heading)
    for measurement in measurements:
        built.add_row(*cells(row(measurement.row), measurement, comparable=comparable))
    return built


def document(measurements: Iterable[Measurement], *, comparable: bool) -> list[dict[str, object]]:
    """Return the measurements for JSON."""
    return [_entry(row(measurement.row), measurement, comparable=comparable) for measurement in measurements]


def _entry(line: Row, measurement: Measurement, *, comparable: bool) -> dict[str, object]:
    return {
        "row": line.name,
        "work": line.work,
        "unit": line.unit,
        "value": measurement.value,
        "floors": list(measurement.floors),
        "ratio": measurement.ratio,
        "kuberay": line.kuberay,
        "target": None if line.target is None else line.target.words,
        "met": met(line.target, measurement) if comparable else None,
        "note": measurement.note,
    }
