"""How to reach the API server: what the driver's kubeconfigs hold, and no more."""

import base64
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import yaml


@dataclass(frozen=True, slots=True)
class Connection:
    """Server URL, what to trust, and the bearer token."""

    server: str
    ca: str
    token: str

    @classmethod
    def from_kubeconfig(cls, path: Path) -> Self:
        """Read a kubeconfig as devcluster writes it: one cluster, one user, everything inline."""
        config = yaml.safe_load(path.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return cls(cluster["server"], ca, user["token"])

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.ca)

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}
