"""Every kind of child but pods. A new kind is a file with its builder and an entry here; the rest follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from tpu_operator.api import names
from tpu_operator.resources import gcs_storage, ingress, network_policy, redis_cleanup, route
from tpu_operator.resources.pod_groups import (
    PLUGINS_VERSION,
    VOLCANO_VERSION,
    plugins_pod_group_names,
    plugins_pod_groups,
    volcano_pod_group_names,
    volcano_pod_groups,
)
from tpu_operator.resources.pods.autoscaler import own_service_account
from tpu_operator.resources.rbac import RBAC_VERSION, rbac_name, role_bindings, roles, service_accounts
from tpu_operator.resources.services import is_own_head_service, service_names, services
from tpu_operator.resources.token_secret import has_token, token_secret_names, token_secrets
from tpu_operator.resources.tree import mapping

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig

Build: TypeAlias = "Callable[[RayCluster, OperatorConfig], tuple[JsonObject, ...]]"
PossibleNames: TypeAlias = "Callable[[RayCluster], tuple[str, ...]]"
When: TypeAlias = "Callable[[OperatorConfig, frozenset[str] | None], bool]"
Recognise: TypeAlias = "Callable[[JsonObject], bool]"

_READ: Final = ("get", "list", "watch")
_APPLY: Final = ("create", "patch", "delete")


class Update(StrEnum):
    """What happens to an object of ours that is there already."""

    APPLY = "apply"
    """It is brought to what we mean, by server-side apply."""
    CREATE_ONLY = "create-only"
    """Nothing, unless something is missing in it."""
    KEEP_SPEC = "keep-spec"
    """Its spec is left alone; what else has changed is applied."""


class Stage(IntEnum):
    """What must be there before what: a stage that failed holds back the later ones only."""

    BEFORE_PODS = 0
    WITH_PODS = 1


class ChildKey(NamedTuple):
    """Kind and name of a child other than a pod; its namespace is the cluster's."""

    kind: str
    name: str


def _always(_: OperatorConfig, __: frozenset[str] | None) -> bool:
    return True


def _never(_: JsonObject) -> bool:
    return False


def _complete(_: JsonObject) -> bool:
    return True


def _served(api_version: str, served: frozenset[str] | None) -> bool:
    """Whether an API is served; where that is not known, the administrator is believed."""
    return served is None or api_version in served


def _uses_routes(config: OperatorConfig, served: frozenset[str] | None) -> bool:
    """Whether a route takes the place of an ingress: on OpenShift, unless the administrator wants it otherwise."""
    return not config.ingress_on_openshift and route.is_openshift(served) and _served(route.API_VERSION, served)


@dataclass(frozen=True, slots=True)
class ChildKind:
    """A kind of child.

    `build` makes the objects that should be there, `possible_names` gives every name that `build` could use for that
    cluster whatever is switched on, by which objects of a feature that was turned off are found; `is_leftover` finds,
    by their labels, those whose name can no longer be told. `selectors` are label selectors, each for a watch of its
    own, which together see all children of the kind; a kind without any is not watched, its objects are looked up by
    name. `verbs` is what the operator needs to do with the kind. `when` tells from the configuration and from the
    API versions that are served (None: not known) whether there is anything to do with the kind at all.
    `is_complete` tells whether an object that is only created still has what makes it useful.
    `removable` is False where objects go with the cluster only, because data or running pods depend on them.
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
    is_leftover: Recognise = _never
    is_complete: Recognise = _complete
    removable: bool = True

    @property
    def watched(self) -> bool:
        """Whether all objects of the kind are watched."""
        return bool(self.selectors)

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
        is_leftover=is_own_head_service,
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
    ChildKind(
        kind="Secret",
        api_version="v1",
        plural="secrets",
        build=token_secrets,
        possible_names=token_secret_names,
        # Whoever may list Secrets can read all of them: looked up one by one, and only where one is needed (quirk 11).
        selectors=(),
        update=Update.CREATE_ONLY,
        is_complete=has_token,
        verbs=("get", "create", "patch"),
        removable=False,
    ),
    ChildKind(
        kind=gcs_storage.KIND,
        api_version="v1",
        plural="persistentvolumeclaims",
        build=gcs_storage.claims,
        possible_names=gcs_storage.claim_names,
        update=Update.KEEP_SPEC,
        verbs=(*_READ, "create", "patch"),
        removable=False,
    ),
    ChildKind(
        kind=network_policy.KIND,
        api_version=network_policy.API_VERSION,
        plural="networkpolicies",
        build=network_policy.network_policies,
        possible_names=network_policy.network_policy_names,
        is_leftover=network_policy.is_own_policy,
    ),
    ChildKind(
        kind=redis_cleanup.KIND,
        api_version=redis_cleanup.API_VERSION,
        plural="jobs",
        # Only a cluster that is being deleted has one, of which planning/deletion.py decides.
        build=redis_cleanup.no_jobs,
        possible_names=redis_cleanup.cleanup_job_names,
        selectors=(f"{names.CLUSTER},{names.NODE_TYPE}={names.REDIS_CLEANUP}",),
        update=Update.CREATE_ONLY,
        verbs=(*_READ, "create"),
        removable=False,
    ),
    ChildKind(
        kind=ingress.KIND,
        api_version=ingress.API_VERSION,
        plural="ingresses",
        build=ingress.ingresses,
        possible_names=ingress.ingress_names,
        when=lambda config, served: not _uses_routes(config, served),
        stage=Stage.WITH_PODS,
    ),
)


# Kinds of APIs that not every Kubernetes serves; each for a configuration of its own, so at most one of a name at a time.
OPTIONAL_KINDS: Final[tuple[ChildKind, ...]] = (
    ChildKind(
        kind=route.KIND,
        api_version=route.API_VERSION,
        plural="routes",
        build=route.routes,
        possible_names=route.route_names,
        when=_uses_routes,
        stage=Stage.WITH_PODS,
    ),
    ChildKind(
        kind="PodGroup",
        api_version=VOLCANO_VERSION,
        plural="podgroups",
        build=volcano_pod_groups,
        possible_names=volcano_pod_group_names,
        when=lambda config, served: config.batch_scheduler == "volcano" and _served(VOLCANO_VERSION, served),
    ),
    ChildKind(
        kind="PodGroup",
        api_version=PLUGINS_VERSION,
        plural="podgroups",
        build=plugins_pod_groups,
        possible_names=plugins_pod_group_names,
        when=lambda config, served: config.batch_scheduler == "scheduler-plugins" and _served(PLUGINS_VERSION, served),
    ),
)


def child_kinds(config: OperatorConfig, served: frozenset[str] | None = None) -> tuple[ChildKind, ...]:
    """The kinds that there is anything to do with, under this configuration and where these API versions are served."""
    return tuple(kind for kind in (*CHILD_KINDS, *OPTIONAL_KINDS) if kind.when(config, served))


def desired_children(
    cluster: RayCluster, config: OperatorConfig, served: frozenset[str] | None = None
) -> tuple[JsonObject, ...]:
    """Every child but pods that the cluster should have, in order of the stages."""
    kinds = sorted(child_kinds(config, served), key=lambda kind: kind.stage)
    return tuple(manifest for kind in kinds for manifest in kind.build(cluster, config))


def possible_children(
    cluster: RayCluster, config: OperatorConfig | None = None, served: frozenset[str] | None = None
) -> frozenset[ChildKey]:
    """Every child but pods that the cluster could have, whatever is switched on now; optional kinds only with `config`."""
    kinds = CHILD_KINDS if config is None else child_kinds(config, served)
    return frozenset(ChildKey(kind.kind, name) for kind in kinds for name in kind.possible_names(cluster))


def looked_up(cluster: RayCluster, config: OperatorConfig) -> frozenset[ChildKey]:
    """Objects that no watch shows and that a plan must know of: children of unwatched kinds, and what users promise."""
    kinds = (kind for kind in child_kinds(config) if not kind.watched)
    own = (ChildKey(kind.kind, name_of(manifest)) for kind in kinds for manifest in kind.build(cluster, config))
    promised = {
        "ServiceAccount": own_service_account(cluster) if cluster.spec.autoscaling else "",
        gcs_storage.KIND: gcs_storage.users_claim(cluster),
    }
    return frozenset((*own, *(ChildKey(kind, name) for kind, name in promised.items() if name)))


def name_of(manifest: JsonObject) -> str:
    """metadata.name."""
    return str(mapping(manifest["metadata"])["name"])
