"""kwok: plays the kubelet of the nodes that carry `type=kwok`, by the rules of stages.yaml."""

from pathlib import Path

STAGES = Path(__file__).with_name("stages.yaml")
# kwok gives one address to each pod; a /12 holds a million.
POD_CIDR = "10.64.0.0/12"
LEASE_SECONDS = 40


def command(binary: Path, *, kubeconfig: Path) -> list[str]:
    """Return the command line. Nodes without the label are left alone, so real ones may be beside them."""
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--config={STAGES}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-label-selector=type=kwok",
        f"--cidr={POD_CIDR}",
        f"--node-lease-duration-seconds={LEASE_SECONDS}",
    ]
