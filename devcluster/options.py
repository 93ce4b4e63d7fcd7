"""What a control plane is started with."""

import enum
from dataclasses import dataclass
from pathlib import Path

from devcluster.pools import PoolSpec


class AuditLevel(enum.Enum):
    """How much of each request the audit log holds (audit.k8s.io/v1 levels)."""

    METADATA = "Metadata"
    REQUEST_RESPONSE = "RequestResponse"


@dataclass(frozen=True, slots=True)
class User:
    """A user with a token of its own. Without groups it may do nothing until a test binds a role to it."""

    name: str
    groups: tuple[str, ...] = ()


ADMIN = User("admin", ("system:masters",))
CONTROLLER_MANAGER = User("system:kube-controller-manager")
SCHEDULER = User("system:kube-scheduler")
KWOK = User("kwok", ("system:masters",))
OPERATOR = User("operator")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to start a control plane.

    `bare` leaves etcd and kube-apiserver only: no node, no controller, nothing is garbage collected, and a namespace
    stays Terminating for ever. The flags are appended to those of the program, so they win.
    """

    bare: bool = False
    pools: tuple[PoolSpec, ...] = ()
    cpu_nodes: int = 2
    crds: tuple[Path, ...] = ()
    audit: AuditLevel | None = None
    users: tuple[User, ...] = (OPERATOR,)
    apiserver_flags: tuple[str, ...] = ()
    controller_manager_flags: tuple[str, ...] = ()
    start_timeout: float = 60.0

    def __post_init__(self) -> None:
        if self.bare and self.pools:
            raise ValueError("a bare control plane has no nodes: leave out the pools, or bare")

    def all_users(self) -> tuple[User, ...]:
        """Return every user that gets a token."""
        return (ADMIN, CONTROLLER_MANAGER, SCHEDULER, KWOK, *self.users)
