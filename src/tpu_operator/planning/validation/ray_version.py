"""`spec.rayVersion` against the first Ray version that has a feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.resources.ray_version import parse_version

if TYPE_CHECKING:
    from tpu_operator.resources.ray_version import Version


def version_problem(text: str | None, least: Version) -> str | None:
    """Why `spec.rayVersion` does not prove a Ray of version `least` or newer, as the rest of a sentence; else None."""
    if not text:
        return "is not set"
    version = parse_version(text)
    if version is None:
        return f"is {text!r}, which is no version number"
    return f"is {text}" if version < least else None
