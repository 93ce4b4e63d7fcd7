"""`python -m bench`: measure an operator for RayClusters from outside."""

import argparse
import asyncio
import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop
from rich.console import Console

from bench.report import document, table
from bench.rows import TABLE, Measurement, met, row
from bench.runner import run_all
from bench.scenarios import SCENARIOS, Scenario
from bench.stage import QUICK, Setting, Sizes

TRIES = 3
INTERRUPTED = 130
# Wide enough for a line a row where nothing tells how wide the output is.
WIDTH = 170

ROOT = Path(__file__).parents[1]
CRD = ROOT / "crds" / "ray.io_rayclusters.yaml"


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    built = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    built.add_argument("--operator", metavar="CMD", help="command that runs the operator; default: ours")
    built.add_argument("--crd", type=Path, default=CRD, metavar="FILE", help="its RayCluster CRD; default: ours")
    built.add_argument("--rows", nargs="+", metavar="ROW", choices=[line.name for line in TABLE], help="only these")
    built.add_argument("--quick", action="store_true", help="small sizes: does it work at all?")
    built.add_argument("--full", action="store_true", help="also the rows that take minutes")
    built.add_argument("--json", type=Path, metavar="FILE", help="write the measurements there too")
    built.add_argument("--logs", type=Path, metavar="FOLDER", help="keep the output of all processes there")
    built.add_argument("--strict", action="store_true", help="exit with code 1 if a target is missed")
    return built


def own_operator() -> list[str]:
    """Return the command of our operator, from the environment that runs the bench."""
    return [str(Path(sys.executable).parent / "tpu-operator"), "run"]


def found(command: str) -> list[str]:
    """Split a command as a shell would and find its program; exit with a message if there is none."""
    name, *arguments = shlex.split(command)
    program = shutil.which(name)
    if program is None:
        raise SystemExit(f"{name}: command not found")
    return [program, *arguments]


def chosen(rows: Sequence[str] | None, *, full: bool) -> list[Scenario]:
    """Return the scenarios that measure these rows, or all; the long ones only if named or `full`."""
    if rows:
        return [scenario for scenario in SCENARIOS if set(rows) & set(scenario.rows)]
    return [scenario for scenario in SCENARIOS if full or not scenario.full]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    options = parser().parse_args(arguments)
    setting = Setting(
        command=found(options.operator) if options.operator else own_operator(),
        crd=options.crd,
        sizes=QUICK if options.quick else Sizes(),
        tries=1 if options.quick else TRIES,
        log_folder=options.logs,
    )
    try:
        measurements = uvloop.run(run_all(chosen(options.rows, full=options.full), setting))
    except (asyncio.CancelledError, KeyboardInterrupt):
        return INTERRUPTED
    comparable = not options.quick
    Console(width=None if sys.stdout.isatty() else WIDTH).print(table(measurements, comparable=comparable))
    if options.json:
        options.json.write_text(json.dumps(document(measurements, comparable=comparable), indent=2) + "\n")
    return int(_failed(measurements, strict=options.strict and comparable))


def _failed(measurements: Sequence[Measurement], *, strict: bool) -> bool:
    """Whether a row has no value, or (if `strict`) a target was missed."""
    return any(
        measurement.value is None or (strict and met(row(measurement.row).target, measurement) is False)
        for measurement in measurements
    )


if __name__ == "__main__":
    sys.exit(main())
