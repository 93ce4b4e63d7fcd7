"""Values that nobody but their Secret ever holds."""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING, Final

from tpu_operator.resources.token_secret import GENERATED

if TYPE_CHECKING:
    from tpu_operator.api.json import JsonObject

_BYTES: Final = 32


def with_values(manifest: JsonObject) -> JsonObject:
    """The manifest with a fresh random value for each marker in stringData: what is sent, and then forgotten."""
    data = manifest.get("stringData")
    if not isinstance(data, dict):
        return manifest
    return {**manifest, "stringData": {k: _random() if v == GENERATED else v for k, v in data.items()}}


def _random() -> str:
    return base64.b64encode(secrets.token_bytes(_BYTES)).decode()
