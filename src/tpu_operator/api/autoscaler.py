"""spec.autoscalerOptions: the sidecar that runs Ray's autoscaler beside the head."""

from __future__ import annotations

from typing import Annotated, Literal

from tpu_operator.api.fields import ApiObject, Int32, Manifest, Text
from tpu_operator.api.schema import Core, Crd


class AutoscalerOptions(ApiObject):
    """Options of the autoscaler. `upscaling_mode` and `idle_timeout_seconds` are read by Ray, not by the operator."""

    version: Annotated[Literal["v1", "v2"] | None, Crd("Generation of Ray's autoscaler: v1 or v2.", v1_only=True)] = (
        None
    )
    image: Annotated[Text | None, Crd("Image of the sidecar; that of the Ray container if absent.")] = None
    image_pull_policy: Annotated[Text | None, Crd("Pull policy of the sidecar's image.")] = None
    resources: Annotated[
        Manifest | None, Core("api.core.v1.ResourceRequirements"), Crd("Resources of the sidecar.")
    ] = None
    security_context: Annotated[
        Manifest | None, Core("api.core.v1.SecurityContext"), Crd("Security context of the sidecar.")
    ] = None
    env: Annotated[tuple[Annotated[Manifest, Core("api.core.v1.EnvVar")], ...], Crd("Environment of the sidecar.")] = ()
    env_from: Annotated[
        tuple[Annotated[Manifest, Core("api.core.v1.EnvFromSource")], ...],
        Crd("Sources of the sidecar's environment."),
    ] = ()
    volume_mounts: Annotated[
        tuple[Annotated[Manifest, Core("api.core.v1.VolumeMount")], ...], Crd("Volumes mounted in the sidecar.")
    ] = ()
    command: Annotated[
        tuple[Text, ...], Crd("Command of the sidecar, instead of the generated one.", v1_only=True)
    ] = ()
    args: Annotated[tuple[Text, ...], Crd("Arguments of the sidecar's command.", v1_only=True)] = ()
    idle_timeout_seconds: Annotated[Int32 | None, Crd("Seconds without work after which a worker may be removed.")] = (
        None
    )
    upscaling_mode: Annotated[
        Literal["Default", "Aggressive", "Conservative"] | None, Crd("How fast Ray asks for more workers.")
    ] = None
