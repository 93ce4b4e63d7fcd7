"""kube-apiserver: TLS on a loopback port, tokens from a file, RBAC."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devcluster.certificates import Certificates
from devcluster.ports import LOOPBACK


@dataclass(frozen=True, slots=True)
class Audit:
    """Where the policy is and where the log goes."""

    policy: Path
    log: Path


def url(port: int) -> str:
    """Return the address clients use."""
    return f"https://{LOOPBACK}:{port}"


def command(  # noqa: PLR0913  a command line is made of its flags
    binary: Path,
    *,
    port: int,
    etcd_url: str,
    certificates: Certificates,
    tokens: Path,
    audit: Audit | None,
    bare: bool,
    extra: Sequence[str],
) -> list[str]:
    """Return the command line."""
    return [
        str(binary),
        f"--etcd-servers={etcd_url}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        *_identity(certificates, tokens),
        *_light(),
        *(_audit(audit) if audit else []),
        # The plugin refuses pods until a controller has made the service account "default": without controllers, never.
        *(["--disable-admission-plugins=ServiceAccount"] if bare else []),
        *extra,
    ]


def _identity(certificates: Certificates, tokens: Path) -> list[str]:
    return [
        f"--tls-cert-file={certificates.serving}",
        f"--tls-private-key-file={certificates.serving_key}",
        f"--token-auth-file={tokens}",
        f"--service-account-key-file={certificates.account_public}",
        f"--service-account-signing-key-file={certificates.account_key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=RBAC",
    ]


def _light() -> list[str]:
    return [
        "--service-cluster-ip-range=10.0.0.0/16",
        "--allow-privileged=true",
        "--profiling=false",
        # Endpoints of the service "kubernetes" may not hold a loopback address; nobody reads them here.
        f"--advertise-address={LOOPBACK}",
        "--endpoint-reconciler-type=none",
        # system:masters is exempt from priority and fairness; these are the seats that all others share.
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1500",
        # Watches need not be let down gently.
        "--shutdown-watch-termination-grace-period=0s",
    ]


def _audit(audit: Audit) -> list[str]:
    return [f"--audit-policy-file={audit.policy}", f"--audit-log-path={audit.log}", "--audit-log-format=json"]
