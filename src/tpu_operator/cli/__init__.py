"""What a person types: `tpu-operator run | plan | crd | version`."""

from __future__ import annotations

from tpu_operator.cli.main import app


def main() -> None:
    """Entry point of the command `tpu-operator`."""
    app()
