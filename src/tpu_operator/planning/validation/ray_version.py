"""`spec.rayVersion` against the first Ray version that has a feature."""

from __future__ import annotations

import re

Version = tuple[int, int, int]

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:[-+.]?[0-9A-Za-z].*)?")


def parse(text: str) -> Version | None:
    """Major, minor and patch of `2.52.0`, `v2.52`, `2.52.0rc1` or `3.0.0.dev0`; None for anything else.

    Pre-releases count as the release, because they have its features.
    """
    match = _VERSION.fullmatch(text.strip())
    if not match:
        return None
    major, minor, patch = match.groups()
    return int(major), int(minor), int(patch or 0)


def version_problem(text: str | None, least: Version) -> str | None:
    """Why `spec.rayVersion` does not prove a Ray of version `least` or newer, as the rest of a sentence; else None."""
    if not text:
        return "is not set"
    version = parse(text)
    if version is None:
        return f"is {text!r}, which is no version number"
    return f"is {text}" if version < least else None
