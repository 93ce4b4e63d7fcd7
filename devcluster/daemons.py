"""The running programs of one control plane."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from devcluster import mortal
from devcluster.errors import PortTakenError, StartError

TAIL_LINES = 15
TAIL_BYTES = 64_000


def mortal_command(command: Sequence[str], death: signal.Signals = signal.SIGKILL) -> list[str]:
    """Return `command` in a wrapping that has the kernel send it `death` when the thread that starts it ends."""
    wrapper = [sys.executable, "-I", "-S", mortal.__file__, str(os.getpid()), str(int(death))]
    return [*wrapper, *command]


def tail(log: Path) -> str:
    """Return the last lines of a log file, for an error message."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-TAIL_LINES:])


@dataclass(frozen=True, slots=True)
class Daemon:
    """One running program and the file with its output."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise StartError if the program has ended, PortTakenError if because of its port."""
        if self.process.poll() is None:
            return
        end = tail(self.log)
        error = PortTakenError if "address already in use" in end else StartError
        raise error(f"{self.name} ended with code {self.process.returncode}:\n{end}")


@dataclass(frozen=True, slots=True)
class Daemons:
    """Starts programs, watches them, and stops them.

    PR_SET_PDEATHSIG fires when the *thread* that forked ends, so all are started by one thread that lives as long as
    this object: a caller may start a plane from a short-lived thread.
    """

    home: Path
    logs: Path
    _running: dict[str, Daemon] = field(default_factory=dict)
    _starter: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "devcluster"))

    def start(self, name: str, command: Sequence[str]) -> Daemon:
        """Start `command` in a session of its own, so that Ctrl-C in a terminal reaches the launcher only."""
        daemon = self._starter.submit(self._start, name, command).result()
        self._running[name] = daemon
        return daemon

    def _start(self, name: str, command: Sequence[str]) -> Daemon:
        log = self.logs / f"{name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                mortal_command(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                cwd=self.home,
                start_new_session=True,
            )
        return Daemon(name, process, log)

    def _environment(self) -> Mapping[str, str]:
        # Nothing of the user's: etcd reads ETCD_*, kwok reads ~/.kwok, klog and Go read more.
        return {"PATH": os.defpath, "HOME": str(self.home), "TMPDIR": str(self.home)}

    def check(self) -> None:
        """Raise StartError if any of the programs has ended."""
        for daemon in self._running.values():
            daemon.check()

    def pids(self) -> dict[str, int]:
        """Return the process id of each program, by name."""
        return {name: daemon.process.pid for name, daemon in self._running.items()}

    def stop(self, names: Sequence[str], grace: float) -> None:
        """Ask the named programs to end, all at once; after `grace` seconds, end them."""
        daemons = [self._running.pop(name) for name in names if name in self._running]
        for daemon in daemons:
            daemon.process.terminate()
        for daemon in daemons:
            _reap(daemon.process, grace)

    def close(self) -> None:
        """End whatever still runs, and the starting thread."""
        self.stop(list(self._running), grace=0)
        self._starter.shutdown()


def _reap(process: subprocess.Popen[bytes], grace: float) -> None:
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
