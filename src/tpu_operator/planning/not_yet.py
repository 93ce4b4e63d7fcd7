"""What KubeRay offers and this version does not, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpu_operator.planning.plan import Blocker, Notice
from tpu_operator.planning.validation.mistake import SPEC_REASON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpu_operator.api.raycluster import RayCluster


def not_offered(cluster: RayCluster) -> Iterator[Blocker]:
    """Mutual TLS: without certificates the nodes would talk in the clear although the user asked for the contrary."""
    options = cluster.spec.tls_options
    if options is not None and options.enabled:
        message = "mutual TLS is not implemented in this version of the operator"
        fix = "remove tlsOptions, or set enabled to false, to run the cluster without it"
        yield Blocker(SPEC_REASON, "spec.tlsOptions.enabled", message, fix)


def without_effect(cluster: RayCluster) -> Iterator[Notice]:
    """The history server: the cluster works without it, only its past is not kept."""
    if cluster.spec.history_server_options is not None:
        text = "spec.historyServerOptions has no effect: this version of the operator does not add the collector to the pods"
        yield Notice("history-server", SPEC_REASON, text, action="Validate")
