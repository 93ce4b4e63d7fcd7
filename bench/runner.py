"""Runs scenarios, one after the other, none for longer than it may."""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Iterable

import aiohttp

from bench.errors import BenchError
from bench.report import line
from bench.rows import Measurement, missing, row
from bench.scenarios import Scenario
from bench.stage import Setting, open_stage


async def run_all(scenarios: Iterable[Scenario], setting: Setting) -> list[Measurement]:
    """Run each scenario on a stage of its own and return the measurements of all their rows.

    SIGTERM ends the run as Ctrl-C does: whatever was started is ended first.
    """
    task = asyncio.current_task()
    assert task is not None, "a coroutine that runs is run by a task"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    found: list[Measurement] = []
    for scenario in scenarios:
        found += await _undisturbed(scenario, setting)
    return found


async def _undisturbed(scenario: Scenario, setting: Setting) -> list[Measurement]:
    """Run again if the floors before and after differ too much: then somebody else was using the machine."""
    for number in range(1, setting.tries + 1):
        _say(f"{', '.join(scenario.rows)}" + (f" (again, {number})" if number > 1 else ""))
        start = time.perf_counter()
        measured = await run(scenario, setting)
        for measurement in measured:
            _say("  " + line(row(measurement.row), measurement))
        _say(f"  ({time.perf_counter() - start:.0f} s)")
        if not any(measurement.disturbed for measurement in measured):
            break
    return measured


async def run(scenario: Scenario, setting: Setting) -> list[Measurement]:
    """Run a scenario once. A row that nothing came out for tells why: timeout, or what went wrong."""
    measured: list[Measurement] = []
    note = "not measured"
    try:
        async with (
            asyncio.timeout(scenario.deadline),
            open_stage(setting, scenario.rows[0]) as stage,
            contextlib.aclosing(scenario.play(stage)) as measurements,
        ):
            async for measurement in measurements:
                measured.append(measurement)  # noqa: PERF401  what was measured before a timeout is kept
    except TimeoutError:
        note = f"timeout after {scenario.deadline:g} s"
    except (BenchError, aiohttp.ClientError) as error:
        _say(str(error))
        note = str(error).strip().splitlines()[-1][:80]
    return measured + missing(scenario.rows, measured, note)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
