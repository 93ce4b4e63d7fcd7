"""What is wrong with a slice, in words a person can act on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from typing_extensions import override


class Severity(StrEnum):
    """An error cannot work; a warning may."""

    ERROR = "error"
    WARNING = "warning"


class About(StrEnum):
    """What of a worker group is at fault, so that whoever shows the finding can point at the field."""

    ACCELERATOR = "accelerator"
    TOPOLOGY = "topology"
    CHIPS = "chips"
    HOSTS = "hosts"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: `message` in one line, what was `expected` and what was `got`, and how to `fix` it."""

    severity: Severity
    about: About
    message: str
    expected: str
    got: str
    fix: str

    @override
    def __str__(self) -> str:
        return f"{self.message}; {self.fix}"


def error(about: About, message: str, *, expected: str, got: str, fix: str) -> Finding:
    """Make a finding that cannot work."""
    return Finding(Severity.ERROR, about, message, expected, got, fix)


def warning(about: About, message: str, *, expected: str, got: str, fix: str) -> Finding:
    """Make a finding that may work, but that a person should look at."""
    return Finding(Severity.WARNING, about, message, expected, got, fix)
