"""Where the nodes of a cluster find each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.api import names
from tpu_operator.resources.tree import mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig


def head_service_name(cluster: RayCluster) -> str:
    """Name of the head service: the one in headService, else the usual one."""
    metadata = mapping(mapping(cluster.spec.head_group_spec.head_service).get("metadata"))
    name = metadata.get("name")
    return name if isinstance(name, str) and name else names.head_service(cluster.name)


def head_fqdn(cluster: RayCluster, config: OperatorConfig) -> str:
    """Full name of the head service (FQ_RAY_IP)."""
    return names.fqdn(head_service_name(cluster), cluster.namespace, config.cluster_domain)


def head_port(cluster: RayCluster) -> str:
    """Port of the GCS as in rayStartParams `port`, which may be a shell reference, hence text."""
    return cluster.spec.head_group_spec.ray_start_params.get("port") or str(names.GCS_PORT)


def port_number(params: Mapping[str, str], name: str, default: int) -> int:
    """A port in rayStartParams, or the default where it is none."""
    given = params.get(name, "").strip().strip("\"'")
    return int(given) if given.isascii() and given.isdigit() and 0 < int(given) < 1 << 16 else default
