"""Whether somebody else tells TPU containers the shape of their slice: on GKE the node plugin does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tpu_operator.errors import ApiError

if TYPE_CHECKING:
    from tpu_operator.config import OperatorConfig
    from tpu_operator.kube.client import Client


async def with_known_platform(config: OperatorConfig, client: Client) -> OperatorConfig:
    """The configuration with `tpu_environment: auto` decided by what the API server says of itself, once a process.

    Where that cannot be learnt, `auto` stays, and tells: what it tells is what the plugin would.
    """
    if config.tpu_environment != "auto":
        return config
    try:
        version = str(json.loads(await client.raw("GET", "/version")).get("gitVersion", ""))
    except (ApiError, ValueError):
        return config
    return config.model_copy(update={"tpu_environment": "never" if is_gke(version) else "always"})


def is_gke(version: str) -> bool:
    """GKE's versions look like `v1.34.1-gke.3084001`."""
    return "-gke." in version
