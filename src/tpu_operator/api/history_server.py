"""spec.historyServerOptions: the sidecar that collects logs and events for Ray's history server."""

from __future__ import annotations

from typing import Annotated

from tpu_operator.api.fields import ApiObject, Manifest, Text
from tpu_operator.api.schema import Core, Crd


class CollectorOptions(ApiObject):
    """The collector container that every pod of the cluster gets."""

    image: Annotated[Text | None, Crd("Image of the collector.")] = None
    image_pull_policy: Annotated[Text | None, Crd("Pull policy of the collector's image.")] = None
    resources: Annotated[
        Manifest | None, Core("api.core.v1.ResourceRequirements"), Crd("Resources of the collector.")
    ] = None
    env: Annotated[
        tuple[Annotated[Manifest, Core("api.core.v1.EnvVar")], ...],
        Crd("Environment of the collector; STORAGE_BACKEND tells where it stores."),
    ] = ()


class HistoryServerOptions(ApiObject):
    """Options of the history server."""

    collector_options: Annotated[CollectorOptions | None, Crd("The collector container.")] = None
