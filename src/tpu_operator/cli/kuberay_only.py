"""Names of KubeRay v1.7 that are accepted, so that its Deployments and files can be taken over, but do nothing here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class WithoutEffect:
    """A flag, key or environment variable of KubeRay, and why it does nothing. `is_switch`: the flag may stand alone."""

    why: str
    flag: str = ""
    key: str = ""
    env: str = ""
    is_switch: bool = False


_NO_LIMIT: Final = "requests are bounded by create_parallelism, not by their rate"
_NO_RAYJOB: Final = "RayJobs are not handled here"
_NO_RAYSERVICE: Final = "RayServices are not handled here"
_LOGGING: Final = "see log_level and log_format"

WITHOUT_EFFECT: Final = (
    WithoutEffect("it does nothing in KubeRay either", flag="forced-cluster-upgrade", is_switch=True),
    WithoutEffect(_NO_LIMIT, flag="qps", key="qps"),
    WithoutEffect(_NO_LIMIT, flag="burst", key="burst"),
    WithoutEffect(
        "nothing is asked of Ray over HTTP", flag="use-kubernetes-proxy", key="useKubernetesProxy", is_switch=True
    ),
    WithoutEffect(_LOGGING, flag="zap-devel", is_switch=True),
    WithoutEffect(_LOGGING, flag="zap-encoder"),
    WithoutEffect(_LOGGING, flag="zap-log-level"),
    WithoutEffect(_LOGGING, flag="zap-stacktrace-level"),
    WithoutEffect(_LOGGING, flag="zap-time-encoding"),
    WithoutEffect(_NO_RAYJOB, key="deleteRayJobAfterJobFinishes"),
    WithoutEffect(_NO_RAYJOB, env="DELETE_RAYJOB_CR_AFTER_JOB_FINISHES"),
    WithoutEffect(_NO_RAYJOB, env="RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS"),
    WithoutEffect(_NO_RAYJOB, env="RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS"),
    WithoutEffect(_NO_RAYSERVICE, env="ENABLE_ZERO_DOWNTIME"),
)

OLD_VOLCANO: Final = WithoutEffect(
    "volcano by its old name", flag="enable-batch-scheduler", key="enableBatchScheduler", is_switch=True
)
"""Not without effect: true stands for the batch scheduler volcano."""
