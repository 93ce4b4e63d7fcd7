"""How Events call the kinds of children."""

from __future__ import annotations

from typing import Final, NamedTuple


class Noun(NamedTuple):
    """What Events call a kind of child: within the reason, and within the text."""

    word: str
    text: str
    updates: bool = False
    """Whether changes of it are told too."""


NOUNS: Final = {
    "Service": Noun("Service", "service"),
    "ServiceAccount": Noun("ServiceAccount", "service account"),
    "Role": Noun("Role", "role"),
    "RoleBinding": Noun("RoleBinding", "role binding"),
    "Ingress": Noun("Ingress", "ingress", updates=True),
    "Route": Noun("Route", "route", updates=True),
    "NetworkPolicy": Noun("NetworkPolicy", "NetworkPolicy", updates=True),
    "PersistentVolumeClaim": Noun("PVC", "PVC"),
    "Job": Noun("RedisCleanupJob", "Redis cleanup Job"),
}
"""The kinds that KubeRay tells of; of others only failures are told."""


def noun(kind: str) -> Noun:
    """The noun of a kind; of one that KubeRay does not tell of, the kind itself."""
    return NOUNS.get(kind, Noun(kind, kind))
