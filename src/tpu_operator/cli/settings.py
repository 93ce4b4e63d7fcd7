"""Settings of a process: defaults, then `TPU_OPERATOR_*`, then flags."""

from __future__ import annotations

import difflib
import os

from pydantic import ValidationError

from tpu_operator.config import EnvironmentConfig, OperatorConfig
from tpu_operator.errors import InvalidInput

PREFIX = "TPU_OPERATOR_"
NOT_SETTINGS = frozenset({"TPU_OPERATOR_BIN", "TPU_OPERATOR_CACHE"})
"""Variables of the tools around the operator (devcluster)."""


def read_config(**flags: object) -> OperatorConfig:
    """The configuration; flags that are None were not given. InvalidInput names what is wrong and what would be right."""
    _refuse_unknown_variables()
    try:
        return EnvironmentConfig(**{k: v for k, v in flags.items() if v is not None})  # type: ignore[arg-type]  # pydantic checks them
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"setting {name}: {first['msg']} (got {first['input']!r})") from error


def _refuse_unknown_variables() -> None:
    known = {f"{PREFIX}{name.upper()}" for name in OperatorConfig.model_fields}
    for name in os.environ:
        if name.upper().startswith(PREFIX) and name.upper() not in known | NOT_SETTINGS:
            close = difflib.get_close_matches(name.upper(), sorted(known), n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise InvalidInput(f"unknown setting {name}{hint}")
