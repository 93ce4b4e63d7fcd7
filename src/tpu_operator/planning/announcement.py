"""What one Event says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Announcement:
    """One Event about the RayCluster; reasons and actions are KubeRay's."""

    reason: str
    action: str
    note: str
    warning: bool = False
