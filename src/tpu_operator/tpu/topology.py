"""The arrangement of a slice's chips, as in the node selector: `4x4` or `2x2x4`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from typing_extensions import override

from tpu_operator.errors import InvalidInput
from tpu_operator.tpu import gke

# Five digits a side are far beyond any slice; longer ones are a slip, and huge numbers would only cost time.
_SIDE = "[1-9][0-9]{0,4}"
_TOPOLOGY = re.compile(f"{_SIDE}(?:x{_SIDE}){{1,2}}")
_LEGAL = "2 or 3 positive whole numbers joined by 'x', such as 4x4 or 2x2x4"


@dataclass(frozen=True, slots=True)
class Topology:
    """Number of chips along each of 2 or 3 axes. Raises `InvalidInput` for anything else."""

    dims: tuple[int, ...]

    def __post_init__(self) -> None:
        if not _TOPOLOGY.fullmatch(str(self)):
            raise InvalidInput(f"topology {str(self)!r} is not {_LEGAL}")

    @override
    def __str__(self) -> str:
        return "x".join(str(dim) for dim in self.dims)

    @property
    def chips(self) -> int:
        """Chips of the whole slice."""
        return math.prod(self.dims)

    @property
    def axes(self) -> tuple[int, int, int]:
        """The sides on three axes: a flat topology is one chip high."""
        x, y, z = (*self.dims, 1)[:3]
        return x, y, z


def parse_topology(text: str) -> Topology:
    """Read a topology as GKE spells it; raise `InvalidInput`, naming what is legal, if it is none.

    No blanks, signs, leading zeros or capital X: GKE compares the label as text.
    """
    if not text:
        raise InvalidInput(f"topology is missing: set the node selector {gke.TOPOLOGY} to {_LEGAL}")
    if not _TOPOLOGY.fullmatch(text):
        raise InvalidInput(f"topology {text!r} is not {_LEGAL}")
    return Topology(tuple(int(side) for side in text.split("x")))
