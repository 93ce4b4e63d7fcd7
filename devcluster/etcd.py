"""etcd: one member, plain HTTP on the loopback address, nothing kept."""

from pathlib import Path

from devcluster.ports import LOOPBACK


def url(port: int) -> str:
    """Return the address clients use."""
    return f"http://{LOOPBACK}:{port}"


def command(binary: Path, *, data: Path, client_port: int, peer_port: int) -> list[str]:
    """Return the command line. The data is thrown away, so it need not reach the disk."""
    return [
        str(binary),
        "--name=devcluster",
        f"--data-dir={data}",
        f"--listen-client-urls={url(client_port)}",
        f"--advertise-client-urls={url(client_port)}",
        f"--listen-peer-urls={url(peer_port)}",
        f"--initial-advertise-peer-urls={url(peer_port)}",
        f"--initial-cluster=devcluster={url(peer_port)}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        "--quota-backend-bytes=8589934592",
    ]
