"""Memory and CPU time of a process tree, from /proc (proc(5))."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """Resident memory in MiB now, CPU seconds so far."""

    memory: float
    cpu: float

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.memory + other.memory, self.cpu + other.cpu)


@dataclass(frozen=True, slots=True)
class Process:
    """One line of /proc/PID/stat: the parent's pid and what it uses."""

    parent: int
    usage: Usage


def parse_stat(line: str) -> Process:
    """Read /proc/PID/stat; the command in parentheses may hold anything."""
    fields = line[line.rindex(")") + 2 :].split()
    cpu = (int(fields[11]) + int(fields[12])) / TICKS
    return Process(int(fields[1]), Usage(int(fields[21]) * PAGE / MIB, cpu))


def tree(processes: Mapping[int, Process], root: int) -> Usage:
    """Sum over `root` and its descendants."""
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    found, waiting = Usage(0, 0), [root]
    while waiting:
        pid = waiting.pop()
        if pid in processes:
            found += processes[pid].usage
        waiting += children.get(pid, [])
    return found


def usage_of(root: int) -> Usage:
    """Return what the process tree under `root` uses now."""
    processes = {}
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it may end while we look
                processes[int(folder.name)] = parse_stat((folder / "stat").read_text())
    return tree(processes, root)
