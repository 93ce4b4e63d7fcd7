"""kube-controller-manager: garbage collection, namespaces, service accounts, node life cycle."""

from collections.abc import Sequence
from pathlib import Path

from devcluster.certificates import Certificates


def command(binary: Path, *, kubeconfig: Path, certificates: Certificates, extra: Sequence[str]) -> list[str]:
    """Return the command line: no leader election (there is one), no port."""
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={certificates.account_key}",
        f"--root-ca-file={certificates.ca}",
        "--use-service-account-credentials",
        "--leader-elect=false",
        "--secure-port=0",
        # The default of 20 requests a second would be what a benchmark measures.
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        *extra,
    ]
