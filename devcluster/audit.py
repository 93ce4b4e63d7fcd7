"""The audit policy: every request once, when it is answered."""

from collections.abc import Mapping

from devcluster.options import AuditLevel


def policy(level: AuditLevel) -> Mapping[str, object]:
    """Return an audit.k8s.io/v1 Policy that logs all requests at `level`, one line a request."""
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [{"level": level.value}],
    }
