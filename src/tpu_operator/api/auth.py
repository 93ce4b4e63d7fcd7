"""spec.authOptions: who may talk to the Ray cluster."""

from __future__ import annotations

from typing import Annotated, Literal

from tpu_operator.api.fields import ApiObject, Flag, Text
from tpu_operator.api.schema import Crd


class AuthOptions(ApiObject):
    """Token authentication; only an explicit `mode: token` turns it on."""

    mode: Annotated[Literal["disabled", "token"] | None, Crd("token turns token authentication on.")] = None
    secret_name: Annotated[Text | None, Crd("Secret of yours with the key auth_token; one is generated if absent.")] = (
        None
    )
    enable_k8s_token_auth: Annotated[
        Flag | None, Crd("Accept tokens of Kubernetes service accounts, checked by the API server.")
    ] = None
