"""The story: a list of acts, each with what is done and what must then become true."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console

from demo.world import GROUP, Host, World

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence

ACT_SECONDS = 60.0
LOOK_SECONDS = 0.1
SIZE = 4
MARKS = {
    "Ready": "[green]#[/]",
    "Running": "[yellow]+[/]",
    "Pending": "[yellow].[/]",
    "Failed": "[red]x[/]",
    "Terminating": "[red]-[/]",
}

console = Console(highlight=False)


class StoryError(Exception):
    """Something did not come out as it must."""


@dataclass(slots=True)
class Stage:
    """Shows what changes, and waits for what must come."""

    world: World
    operator: subprocess.Popen[bytes]
    started: float = field(default_factory=time.monotonic)
    _shown: str = ""

    def say(self, text: str) -> None:
        console.print(f"\n[bold]{text}[/]")

    def until(self, what: str, true: Callable[[list[Host]], bool]) -> list[Host]:
        """Watch until `true` holds; StoryError if it does not within a minute."""
        deadline = time.monotonic() + ACT_SECONDS
        while time.monotonic() < deadline:
            if self.operator.poll() is not None:
                raise StoryError(f"the operator has ended with code {self.operator.returncode}")
            hosts = self.world.hosts()
            self._show(hosts)
            if true(hosts):
                return hosts
            time.sleep(LOOK_SECONDS)
        raise StoryError(f"not within {ACT_SECONDS:.0f} s: {what}; there are {self.world.hosts()}")

    def _show(self, hosts: list[Host]) -> None:
        """A line for each change: the head, then each slice with a mark per host."""
        slices = "   ".join(
            f"{GROUP}-{i} \\[{_marks(hosts, i)}] {_slice_state(hosts, i)}" for i in sorted({h.index for h in hosts})
        )
        line = f"head {self.world.head() or '-':8} {slices}"
        if line != self._shown:
            self._shown = line
            console.print(f"  {time.monotonic() - self.started:6.1f} s  {line}")


def _marks(hosts: Sequence[Host], index: int) -> str:
    mine = [h for h in hosts if h.index == index]
    return "".join(MARKS.get(h.state, "?") for h in mine).ljust(SIZE)


def _slice_state(hosts: Sequence[Host], index: int) -> str:
    states = {h.state for h in hosts if h.index == index}
    if "Failed" in states:
        return "degraded"
    if states == {"Terminating"}:
        return "going"
    return "ready" if whole(hosts, index) else "forming"


def whole(hosts: Sequence[Host], index: int) -> bool:
    """Exactly the hosts 0..3 of the slice, all ready."""
    mine = [h for h in hosts if h.index == index]
    return sorted(h.host for h in mine) == list(range(SIZE)) and all(h.state == "Ready" for h in mine)


def uids(hosts: Sequence[Host], index: int) -> set[str]:
    """Which pods make up the slice now."""
    return {h.uid for h in hosts if h.index == index}


def play(world: World, operator: subprocess.Popen[bytes]) -> None:
    """Four acts; StoryError at the first thing that is not as it must be."""
    stage = Stage(world, operator)
    stage.say("1. kubectl apply: a head and two slices of v6e 4x4, that is 2 x 4 hosts")
    world.apply_sample()
    first = stage.until(
        "two slices ready", lambda hosts: len(hosts) == 2 * SIZE and whole(hosts, 0) and whole(hosts, 1)
    )

    victim = next(h for h in first if (h.index, h.host) == (1, 2))
    stage.say(f"2. host 2 of slice 1 fails ({victim.name}): the whole slice is made anew, slice 0 is not touched")
    world.fail(victim)
    healed = stage.until(
        "slice 1 recreated",
        lambda hosts: len(hosts) == 2 * SIZE and whole(hosts, 1) and not uids(hosts, 1) & uids(first, 1),
    )
    if uids(healed, 0) != uids(first, 0):
        raise StoryError("slice 0 was touched although only slice 1 had failed")

    named = next(h for h in healed if (h.index, h.host) == (0, 3))
    stage.say(f"3. workersToDelete names one host ({named.name}), replicas 1: exactly its slice goes")
    world.scale(1, [named.name])
    left = stage.until("slice 0 gone", lambda hosts: len(hosts) == SIZE and whole(hosts, 1))
    if uids(left, 1) != uids(healed, 1):
        raise StoryError("slice 1 was touched although only slice 0 was named")

    stage.say("4. replicas 2 again: the free index 0 is taken by a new slice")
    world.scale(2, [])
    stage.until("slice 0 back", lambda hosts: len(hosts) == 2 * SIZE and whole(hosts, 0) and whole(hosts, 1))
    _check_status(world)
    console.print("\n[bold green]All came out right.[/]")


def _check_status(world: World) -> None:
    """The status must tell what the pods show."""
    deadline = time.monotonic() + ACT_SECONDS
    while time.monotonic() < deadline:
        status = world.status()
        if status.get("state") == "ready" and status.get("readyWorkerReplicas") == 2 * SIZE:
            return
        time.sleep(LOOK_SECONDS)
    raise StoryError(f"the status does not tell that all is ready: {world.status()}")
