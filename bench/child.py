"""A process that the driver starts and ends, always by its own process id."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bench.errors import HelperError
from bench.usage import Usage, usage_of
from devcluster.daemons import mortal_command, tail

GRACE = 5.0
READY = "ready"


@dataclass(slots=True)
class Child:
    """A running process; standard error goes to `log`, standard output too unless it talks with the driver."""

    name: str
    process: Process
    log: Path
    greeting: str = ""
    """What a helper said when it was ready."""

    @classmethod
    async def start(
        cls, name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path, *, talks: bool = False
    ) -> Self:
        """Start `command`; the kernel ends it if the driver dies."""
        log = folder / f"{name}.log"
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *mortal_command(command),
                stdin=PIPE if talks else asyncio.subprocess.DEVNULL,
                stdout=PIPE if talks else output,
                stderr=output if talks else STDOUT,
                env=dict(environment),
                start_new_session=True,
            )
        return cls(name, process, log)

    @classmethod
    async def helper(cls, module: str, arguments: Sequence[str], folder: Path) -> Self:
        """Start one of the bench's own modules and wait until it says that it is ready."""
        command = [sys.executable, "-m", f"bench.{module}", *arguments]
        child = await cls.start(module, command, os.environ, folder, talks=True)
        child.greeting = (await child.hear()).decode()
        if not child.greeting.startswith(READY):
            await child.stop()
            raise HelperError(f"{module} did not start:\n{child.tail()}")
        return child

    async def hear(self) -> bytes:
        assert self.process.stdout is not None, "only a process that talks is heard"
        return await self.process.stdout.readline()

    async def say(self, line: bytes) -> None:
        assert self.process.stdin is not None, "only a process that talks is told"
        self.process.stdin.write(line + b"\n")
        await self.process.stdin.drain()

    def usage(self) -> Usage:
        """Return memory and CPU of the process and its descendants."""
        return usage_of(self.process.pid)

    def tail(self) -> str:
        return tail(self.log)

    async def kill(self) -> None:
        """End it at once, as a node failure would."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def stop(self) -> None:
        """Ask it to end; after a grace period, end it."""
        if self.process.returncode is not None:
            return
        self.process.terminate()
        try:
            async with asyncio.timeout(GRACE):
                await self.process.wait()
        except TimeoutError:
            await self.kill()
