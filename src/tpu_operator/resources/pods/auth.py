"""Token authentication: every container that talks to Ray gets the token, by reference to its Secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.api import names
from tpu_operator.resources.pods import autoscaler, init_containers
from tpu_operator.resources.pods.variables import fill_in, literal, secret_key
from tpu_operator.resources.pods.volumes import mount

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject
    from tpu_operator.api.raycluster import AuthOptions, RayCluster
    from tpu_operator.resources.pods.draft import Draft, RayNode

SECRET_KEY: Final = "auth_token"  # noqa: S105  (the name of a key)
_TOKEN_PATH: Final = "/var/run/secrets/ray.io/serviceaccount"  # noqa: S105  (a directory)


def token_options(cluster: RayCluster) -> AuthOptions | None:
    """The options if tokens are on, which needs the explicit mode."""
    options = cluster.spec.auth_options
    return options if options is not None and options.mode == "token" else None


def token_secret(cluster: RayCluster) -> str:
    """Secret with the token: the user's, else the one that the operator makes."""
    options = cluster.spec.auth_options
    return (options and options.secret_name) or names.child_name(cluster.name)


def token(node: RayNode, draft: Draft) -> None:
    """Give the token to the Ray container, to the one that waits for the GCS and to the autoscaler."""
    options = token_options(node.cluster)
    if options is None:
        return
    for container in (draft.ray, *_helpers(draft)):
        fill_in(container, literal("RAY_AUTH_MODE", "token"))
        if options.enable_k8s_token_auth:
            fill_in(container, literal("RAY_ENABLE_K8S_TOKEN_AUTH", "true"))
            mount(draft, container, _projected_token(), _TOKEN_PATH, readOnly=True)
        else:
            fill_in(container, secret_key("RAY_AUTH_TOKEN", token_secret(node.cluster), SECRET_KEY))


def _helpers(draft: Draft) -> list[JsonObject]:
    found = (draft.container(name) for name in (init_containers.WAIT_FOR_GCS, autoscaler.CONTAINER))
    return [container for container in found if container is not None]


def _projected_token() -> JsonObject:
    return {"name": "ray-token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
