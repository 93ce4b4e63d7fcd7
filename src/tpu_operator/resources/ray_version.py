"""`spec.rayVersion` as numbers."""

from __future__ import annotations

import re
from typing import Final

Version = tuple[int, int, int]

_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?.*", re.DOTALL)


def parse_version(text: str | None) -> Version | None:
    """Major, minor and patch of `2.53.0`, `v2.53` or `2.53.0rc1`; None where there is no such version.

    Lenient like KubeRay: trailing text is ignored, so that a release candidate counts as its release.
    """
    found = _VERSION.fullmatch((text or "").strip())
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def at_least(text: str | None, least: Version) -> bool:
    """Whether the version is known to be `least` or newer."""
    version = parse_version(text)
    return version is not None and version >= least
