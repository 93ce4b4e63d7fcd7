"""The CRD as shipped in the wheel, or from the source tree in an editable installation."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from tpu_operator.errors import InvalidInput

NAME = "ray.io_rayclusters.yaml"


def crd_text() -> str:
    """The CRD's YAML. InvalidInput if the installation lacks it."""
    shipped = files("tpu_operator") / "crds" / NAME
    if shipped.is_file():
        return shipped.read_text(encoding="utf-8")
    source = Path(__file__).parents[3] / "crds" / NAME
    if source.is_file():
        return source.read_text(encoding="utf-8")
    raise InvalidInput(f"{NAME} is missing in this installation; install the wheel anew")
