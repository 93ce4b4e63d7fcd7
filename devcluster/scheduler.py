"""kube-scheduler: kwok never binds a pod to a node, so the real one does."""

from collections.abc import Mapping
from pathlib import Path


def configuration(kubeconfig: Path) -> Mapping[str, object]:
    """Return a KubeSchedulerConfiguration whose client is not what a benchmark measures."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 2000},
    }


def command(binary: Path, *, config: Path) -> list[str]:
    """Return the command line."""
    return [str(binary), f"--config={config}", "--secure-port=0"]
