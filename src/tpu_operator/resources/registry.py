"""Every kind of child but pods. A new kind is a file with its builder and an entry here; the rest follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from tpu_operator.api import names
from tpu_operator.resources.pod_groups import (
    PLUGINS_VERSION,
    VOLCANO_VERSION,
    plugins_pod_group_names,
    plugins_pod_groups,
    volcano_pod_group_names,
    volcano_pod_groups,
)
from tpu_operator.resources.rbac import RBAC_VERSION, rbac_name, role_bindings, roles, service_accounts
from tpu_operator.resources.services import service_names, services

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig

Build: TypeAlias = "Callable[[RayCluster, OperatorConfig], tuple[JsonObject, ...]]"
PossibleNames: TypeAlias = "Callable[[RayCluster], tuple[str, ...]]"
When: TypeAlias = "Callable[[OperatorConfig], bool]"

_READ: Final = ("get", "list", "watch")
_APPLY: Final = ("create", "patch", "delete")


class Update(StrEnum):
    """What happens to an object that is there already."""

    APPLY = "apply"
    CREATE_ONLY = "create-only"


class Stage(IntEnum):
    """What must be there before what: a stage that failed holds back the later ones only."""

    BEFORE_PODS = 0
    WITH_PODS = 1


class ChildKey(NamedTuple):
    """Kind and name of a child other than a pod; its namespace is the cluster's."""

    kind: str
    name: str


def _always(_: OperatorConfig) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ChildKind:
    """A kind of child.

    `build` makes the objects that should be there, `possible_names` gives every name that `build` could use for that
    cluster whatever is switched on, by which objects of a feature that was turned off are found. `selectors` are label
    selectors, each for a watch of its own, which together see all children of the kind. `verbs` is what the operator
    needs to do with the kind. `when` tells from the configuration whether there is anything to do with the kind at all.
    """

    kind: str
    api_version: str
    plural: str
    build: Build
    possible_names: PossibleNames
    selectors: tuple[str, ...] = (names.CLUSTER,)
    stage: Stage = Stage.BEFORE_PODS
    update: Update = Update.APPLY
    verbs: tuple[str, ...] = (*_READ, *_APPLY)
    when: When = _always

    @property
    def api_group(self) -> str:
        """Group of the API, empty for core."""
        return self.api_version.rpartition("/")[0]


def _rbac_names(cluster: RayCluster) -> tuple[str, ...]:
    return (rbac_name(cluster),)


CHILD_KINDS: Final[tuple[ChildKind, ...]] = (
    ChildKind(
        kind="Service",
        api_version="v1",
        plural="services",
        build=services,
        possible_names=service_names,
        # The headless and the serve service have none of the usual labels, in KubeRay neither.
        selectors=(names.CLUSTER, names.HEADLESS_WORKER_SVC, f"{names.ORIGINATED_FROM_CRD}={names.KIND}"),
    ),
    ChildKind(
        kind="ServiceAccount",
        api_version="v1",
        plural="serviceaccounts",
        build=service_accounts,
        possible_names=_rbac_names,
    ),
    ChildKind(kind="Role", api_version=RBAC_VERSION, plural="roles", build=roles, possible_names=_rbac_names),
    ChildKind(
        kind="RoleBinding",
        api_version=RBAC_VERSION,
        plural="rolebindings",
        build=role_bindings,
        possible_names=_rbac_names,
    ),
)

# Kinds of APIs that not every Kubernetes serves; each for a configuration of its own, so at most one of a name at a time.
OPTIONAL_KINDS: Final[tuple[ChildKind, ...]] = (
    ChildKind(
        kind="PodGroup",
        api_version=VOLCANO_VERSION,
        plural="podgroups",
        build=volcano_pod_groups,
        possible_names=volcano_pod_group_names,
        when=lambda config: config.batch_scheduler == "volcano",
    ),
    ChildKind(
        kind="PodGroup",
        api_version=PLUGINS_VERSION,
        plural="podgroups",
        build=plugins_pod_groups,
        possible_names=plugins_pod_group_names,
        when=lambda config: config.batch_scheduler == "scheduler-plugins",
    ),
)


def child_kinds(config: OperatorConfig) -> tuple[ChildKind, ...]:
    """The kinds that this configuration has anything to do with."""
    return tuple(kind for kind in (*CHILD_KINDS, *OPTIONAL_KINDS) if kind.when(config))


def desired_children(cluster: RayCluster, config: OperatorConfig) -> tuple[JsonObject, ...]:
    """Every child but pods that the cluster should have, in order of the stages."""
    kinds = sorted(child_kinds(config), key=lambda kind: kind.stage)
    return tuple(manifest for kind in kinds for manifest in kind.build(cluster, config))


def possible_children(cluster: RayCluster, config: OperatorConfig | None = None) -> frozenset[ChildKey]:
    """Every child but pods that the cluster could have, whatever is switched on now; optional kinds only with `config`."""
    kinds = CHILD_KINDS if config is None else child_kinds(config)
    return frozenset(ChildKey(kind.kind, name) for kind in kinds for name in kind.possible_names(cluster))
