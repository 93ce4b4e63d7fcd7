"""What became of the actions of a plan: input of the status, of Events and of the memory of the next pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.planning.plan import Action
    from tpu_operator.planning.pod import Pod


class Result(StrEnum):
    """How an action ended."""

    DONE = "done"
    REFUSED = "refused"
    """The API server will not have it now (quota, admission, invalid): tell, and try again slowly."""
    FAILED = "failed"
    """It may work next time: overload, lost connection, conflict."""
    UNSETTLED = "unsettled"
    """The answer was lost: it may have been carried out."""
    SKIPPED = "skipped"
    """Not tried, because something before it did not work or the spec has changed meanwhile."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one action. `message` is stable text (no generated names) when it did not work.

    `created` and `deleted` are the pods for which the API server said yes; of a slice that is rolled back, none are left.
    `applied` is the child as the API server has it now, Secrets excepted. `uncreated` are host indices of a slice that
    certainly were not created. `cause` is the API server's own name for why, where it gave one.
    """

    action: Action
    result: Result
    message: str = ""
    created: tuple[Pod, ...] = ()
    deleted: tuple[Pod, ...] = ()
    uncreated: tuple[int, ...] = ()
    applied: JsonObject | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcomes of a pass, in the order of the plan's actions."""

    items: tuple[Outcome, ...] = field(default=())

    @property
    def troubles(self) -> tuple[Outcome, ...]:
        return tuple(o for o in self.items if o.result in (Result.REFUSED, Result.FAILED))

    @property
    def retry(self) -> bool:
        """Something may work on another try."""
        return any(o.result in (Result.FAILED, Result.UNSETTLED, Result.SKIPPED) for o in self.items)
