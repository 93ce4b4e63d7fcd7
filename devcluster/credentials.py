"""Tokens and kubeconfigs."""

import base64
import csv
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from devcluster.options import User


def write_tokens(path: Path, users: Sequence[User]) -> dict[str, str]:
    """Write the API server's `--token-auth-file` (token, user, uid, groups) and return the tokens by user name."""
    tokens = {user.name: secrets.token_urlsafe(24) for user in users}
    path.touch(mode=0o600)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        for user in users:
            rows.writerow([tokens[user.name], user.name, user.name, ",".join(user.groups)])
    return tokens


def kubeconfig(server: str, ca: bytes, user: str, token: str) -> Mapping[str, object]:
    """Return a kubeconfig document with everything inline, so that the file may be moved."""
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(ca).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "devcluster", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "devcluster", "context": {"cluster": "devcluster", "user": user}}],
        "current-context": "devcluster",
    }


def write_private(path: Path, document: Mapping[str, object]) -> Path:
    """Write a YAML document that only its owner may read."""
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path
