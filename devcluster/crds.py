"""Installing CustomResourceDefinitions."""

from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from devcluster.client import ApiClient
from devcluster.errors import DevclusterError
from devcluster.waiting import wait_until

COLLECTION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ESTABLISH_TIMEOUT = 30.0


def install(client: ApiClient, file: Path, check: Callable[[], None]) -> list[str]:
    """Apply the CRDs of a YAML file, wait until they are served, and return their names.

    By server-side apply: a CRD with a pod template in it is too large for the annotation of a client-side one.
    Raises DevclusterError if the file holds no CRD.
    """
    names = []
    for crd in definitions(file):
        name = str(_metadata(crd)["name"])
        client.apply(f"{COLLECTION}/{name}", crd)
        names.append(name)
    for name in names:
        established = lambda name=name: _established(client.get(f"{COLLECTION}/{name}"))  # noqa: E731
        wait_until(established, f"CRD {name} established", timeout=ESTABLISH_TIMEOUT, check=check)
    return names


def definitions(file: Path) -> list[dict[str, object]]:
    """Return the CRDs of a YAML file; raise DevclusterError if there is none."""
    found = list(_definitions(file))
    if not found:
        raise DevclusterError(f"{file} holds no CustomResourceDefinition")
    return found


def _definitions(file: Path) -> Iterator[dict[str, object]]:
    for document in yaml.load_all(file.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
            yield document


def _metadata(crd: dict[str, object]) -> dict[str, object]:
    metadata = crd["metadata"]
    assert isinstance(metadata, dict)
    return metadata


def _established(crd: dict[str, object]) -> bool:
    status = crd.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions or ())
