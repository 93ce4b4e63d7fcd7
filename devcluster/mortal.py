"""Become a program that the kernel ends when its starter ends (run as a script: PARENT_PID SIGNAL COMMAND...).

A launcher that is killed with SIGKILL cannot clean up, so the kernel has to: PR_SET_PDEATHSIG (prctl(2), Linux)
survives the exec below. A script in between, rather than `preexec_fn`, because code between fork and exec is unsafe in
a process that has threads.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def become(parent: int, signal: int, command: list[str]) -> None:
    """Replace this process by `command`, to be sent `signal` when `parent` ends; exit 1 if it has ended already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606  no shell is wanted


if __name__ == "__main__":
    become(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
