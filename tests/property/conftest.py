"""Hypothesis: the same examples in every run, unless HYPOTHESIS_PROFILE=search asks for new ones."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile("ci", derandomize=True, print_blob=True, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("search", deadline=None, print_blob=True, max_examples=2000, suppress_health_check=_SLOW)
settings.register_profile(
    "quick",
    deadline=None,
    max_examples=400,
    report_multiple_bugs=False,
    phases=(Phase.generate,),
    suppress_health_check=_SLOW,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
