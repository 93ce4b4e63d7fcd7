"""Can this cluster work? Pure checks over the object and the configuration, all of them, each mistake with its fix."""

from tpu_operator.planning.validation.chain import CHECKS, validate, warnings
from tpu_operator.planning.validation.mistake import Check

__all__ = ["CHECKS", "Check", "validate", "warnings"]
