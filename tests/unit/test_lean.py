"""Imports that leave out what is not used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tpu_operator.lean import without


def test_a_stand_in_is_there_during_the_block_and_gone_after_it() -> None:
    with without("no_such_module_anywhere"):
        import no_such_module_anywhere  # noqa: F401
    assert "no_such_module_anywhere" not in sys.modules


def test_what_is_loaded_already_stays() -> None:
    import json

    with without("json"):
        assert sys.modules["json"] is json
    assert sys.modules["json"] is json


@pytest.mark.parametrize("left_out", ["pykube", "kubernetes.client", "kubernetes.dynamic", "requests"])
def test_the_operator_does_not_load(left_out: str) -> None:
    code = f"import sys, tpu_operator.controller.app; sys.exit({left_out!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
