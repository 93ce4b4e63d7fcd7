"""Moved to resources/totals.py, where builders may use it too."""

from tpu_operator.resources.totals import Totals, pod_resources, totals

__all__ = ["Totals", "pod_resources", "totals"]
