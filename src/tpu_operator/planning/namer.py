"""New names of pods and slices: a function of the pass's nonce and of what the name is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.api import names

if TYPE_CHECKING:
    from collections.abc import Iterable


class Namer:
    """Gives names that are new: not those of pods that are there, nor any that the autoscaler still lists.

    A name in workersToDelete may stay there for hours after its pod is gone; a new pod of that name would be killed at
    once (WD-02). Five characters of 27 make 14 million names, so among thousands of pods two can meet by chance.
    """

    def __init__(self, nonce: str, taken: Iterable[str]) -> None:
        self._nonce = nonce
        self._taken = set(taken)

    def name(self, prefix: str, *purpose: str | int) -> str:
        attempt = 0
        while True:
            name = f"{prefix}-{names.suffix(self._nonce, prefix, *purpose, attempt)}"
            if name not in self._taken:
                self._taken.add(name)
                return name
            attempt += 1
