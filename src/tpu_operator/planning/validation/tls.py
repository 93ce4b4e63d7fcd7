"""Rules of mutual TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpu_operator.config import Gate
from tpu_operator.planning.validation.containers import (
    env_entry,
    env_path,
    objects,
    occupied_mounts,
    ray_container_path,
)
from tpu_operator.planning.validation.mistake import AUTOSCALER, gate_off, spec_mistake
from tpu_operator.planning.validation.node_groups import node_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tpu_operator.api.raycluster import RayCluster
    from tpu_operator.config import OperatorConfig
    from tpu_operator.planning.plan import Blocker

TLS_ENV: Final = ("RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")
TLS_VOLUME: Final = "ray-tls"
TLS_PATH: Final = "/etc/ray/tls"


def tls_gate(cluster: RayCluster, config: OperatorConfig) -> Iterator[Blocker]:
    """Rule 20: even with `enabled: false`."""
    if cluster.spec.tls_options is not None and not config.gate(Gate.MTLS):
        yield gate_off("spec.tlsOptions", Gate.MTLS)


def tls_collisions(cluster: RayCluster, _: OperatorConfig) -> Iterator[Blocker]:
    """Rule 21: with TLS on, variables and mounts of TLS are the operator's."""
    options = cluster.spec.tls_options
    if options is None or not options.enabled:
        return
    for path, container in _containers(cluster):
        env = list(objects(container.get("env")))
        for name in TLS_ENV:
            if env_entry(env, name):
                yield spec_mistake(env_path(path, name), "is set by the operator itself while TLS is on", "remove it")
        for mount in occupied_mounts(container, path, TLS_VOLUME, TLS_PATH):
            message = f"collides with the operator's mount {TLS_VOLUME} at {TLS_PATH}"
            yield spec_mistake(mount, message, "use another name and path")


def _containers(cluster: RayCluster) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The containers that get the certificates, the autoscaler's given by its options."""
    for path, group in node_groups(cluster):
        yield ray_container_path(path), group.ray_container or {}
    options = cluster.spec.autoscaler_options
    if options is not None:
        yield AUTOSCALER, {"env": list(options.env), "volumeMounts": list(options.volume_mounts)}
