"""Moved to resources/wanted.py, where builders may use it too."""

from tpu_operator.resources.wanted import bounds, wanted_pods, wanted_slices

__all__ = ["bounds", "wanted_pods", "wanted_slices"]
