"""What an operator wrote, by the API server's audit log: no client has to be believed."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

import msgspec

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True, order=True)
class Write:
    """One kind of write: verb and resource, a subresource after a slash."""

    verb: str
    resource: str

    @property
    def words(self) -> str:
        return f"{self.verb} {self.resource}"


class _User(msgspec.Struct):
    username: str = ""


class _Object(msgspec.Struct):
    name: str = ""
    resource: str = ""
    subresource: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Line(msgspec.Struct):
    stage: str = ""
    verb: str = ""
    user: _User = msgspec.field(default_factory=_User)
    objectRef: _Object | None = None  # noqa: N815  the name in audit.k8s.io/v1
    responseStatus: _Status | None = None  # noqa: N815
    stageTimestamp: datetime = datetime.min.replace(tzinfo=UTC)  # noqa: N815


_decode = msgspec.json.Decoder(_Line).decode


def writes(lines: Iterable[bytes], user: str) -> Counter[Write]:
    """Count the answered writes of `user`, refused ones too, in lines of an audit.k8s.io/v1 log.

    Leases are left out: they are the price of leader election and not of the work. A line cut short is skipped.
    """
    found: Counter[Write] = Counter()
    for line in lines:
        # Most lines are of other users, and decoding is what costs.
        if user.encode() not in line:
            continue
        if write := _write(line, user):
            found[write] += 1
    return found


def _write(line: bytes, user: str) -> Write | None:
    entry = _answered(line, user)
    if entry is None or entry.verb not in WRITES or entry.objectRef is None or entry.objectRef.resource == "leases":
        return None
    target = entry.objectRef
    return Write(entry.verb, f"{target.resource}/{target.subresource}" if target.subresource else target.resource)


def _answered(line: bytes, user: str) -> _Line | None:
    try:
        entry = _decode(line)
    except msgspec.DecodeError:
        return None
    return entry if entry.stage == "ResponseComplete" and entry.user.username == user else None


def pods_created(lines: Iterable[bytes], user: str) -> list[tuple[str, float]]:
    """Return name and time (seconds since the epoch) of each pod that `user` created, in the order of the answers.

    This is when the API server had answered, however far behind a watch may be on a busy machine. The name is empty if
    the client let the server make it.
    """
    entries = (_answered(line, user) for line in lines if user.encode() in line)
    return sorted(
        (
            (entry.objectRef.name, entry.stageTimestamp.timestamp())
            for entry in entries
            if entry and entry.objectRef and _creates_pod(entry)
        ),
        key=lambda pod: pod[1],
    )


def _creates_pod(entry: _Line) -> bool:
    target, status = entry.objectRef, entry.responseStatus
    created = entry.verb == "create" and status is not None and status.code == HTTPStatus.CREATED
    return created and target is not None and target.resource == "pods" and not target.subresource


def total(found: Counter[Write], *, resource: str | None = None, verbs: Iterable[str] = WRITES) -> int:
    """Return how many of the writes have this resource (subresources apart) and one of these verbs."""
    wanted = frozenset(verbs)
    return sum(n for write, n in found.items() if write.verb in wanted and resource in (None, write.resource))


def summary(found: Counter[Write]) -> str:
    """Return the counts as words, the largest first."""
    largest_first = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{number} {write.words}" for write, number in largest_first)


@dataclass(frozen=True, slots=True)
class AuditLog:
    """The growing file. A mark is a place in it."""

    path: Path

    def mark(self) -> int:
        return self.path.stat().st_size

    def since(self, mark: int) -> list[bytes]:
        """Return the whole lines written after `mark`."""
        with self.path.open("rb") as file:
            file.seek(mark)
            *lines, _cut = file.read().split(b"\n")
        return lines
