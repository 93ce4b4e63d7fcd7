"""Which worker a pod is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Host `host` (from 0) of the `hosts` of one slice: replica `index` of its group, named `slice_name`.

    The name is new for each incarnation of a slice, the index is used again.
    """

    slice_name: str
    index: int
    host: int
    hosts: int
