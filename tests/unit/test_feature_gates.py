"""Feature gates: KubeRay's names and defaults."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tpu_operator.cli.settings import resolve
from tpu_operator.config import Gate, OperatorConfig

ON = {Gate.STATUS_CONDITIONS, Gate.JOB_DELETION_POLICY, Gate.MULTI_HOST_INDEXING, Gate.SERVICE_INCREMENTAL_UPGRADE}


def test_beta_gates_are_on_and_alpha_gates_off():
    config = OperatorConfig()
    assert {gate for gate in Gate if config.gate(gate)} == ON


@pytest.mark.parametrize(
    "given",
    [{"RayClusterMTLS": True, "RayJobDeletionPolicy": False}, "RayClusterMTLS=true, RayJobDeletionPolicy=False,"],
)
def test_what_is_given_is_laid_over_the_defaults(given):
    config = OperatorConfig(feature_gates=given)
    assert {gate for gate in Gate if config.gate(gate)} == ON - {Gate.JOB_DELETION_POLICY} | {Gate.MTLS}
    assert hash(config) == hash(OperatorConfig(feature_gates=given))


def test_the_environment_gives_them_as_text():
    assert resolve((), {"TPU_OPERATOR_FEATURE_GATES": "RayClusterMTLS=true"}).config.gate(Gate.MTLS)


@pytest.mark.parametrize("given", [{"RayClusterMtls": True}, "RayClusterMTLS", "RayClusterMTLS=yes", "=true"])
def test_a_typing_error_is_refused(given):
    with pytest.raises(ValidationError, match="feature gate"):
        OperatorConfig(feature_gates=given)
