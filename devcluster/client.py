"""The few requests the launcher itself makes, over one kept-alive connection."""

import http.client
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from devcluster.errors import RequestError

TIMEOUT = 30.0
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


class ApiClient:
    """A blocking JSON client of one API server; not to be shared between threads."""

    def __init__(self, server: str, ca_file: Path, token: str) -> None:
        context = ssl.create_default_context(cafile=str(ca_file))
        address = urlsplit(server)
        self._connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, timeout=TIMEOUT, context=context
        )
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def get(self, path: str) -> dict[str, object]:
        """Return the object or list at `path`."""
        return self._json("GET", path)

    def post(self, path: str, document: Mapping[str, object]) -> dict[str, object]:
        """Create `document` in the collection at `path`."""
        return self._json("POST", path, document)

    def apply(self, path: str, document: Mapping[str, object]) -> dict[str, object]:
        """Apply `document` server-side at `path`, taking fields over from whoever had them."""
        query = "?fieldManager=devcluster&force=true"
        return self._json("PATCH", path + query, document, content_type=APPLY)

    def merge(self, path: str, document: Mapping[str, object]) -> dict[str, object]:
        """Change the object at `path` by a JSON merge patch."""
        return self.patch(path, document, MERGE)

    def patch(self, path: str, body: object, content_type: str) -> dict[str, object]:
        """Patch the object at `path`; `body` is what `content_type` says."""
        return self._json("PATCH", path, body, content_type=content_type)

    def delete(self, path: str) -> None:
        """Delete the object or the collection at `path`; what is gone already is well."""
        try:
            self._json("DELETE", path)
        except RequestError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                raise

    def answers(self, path: str) -> bool:
        """Tell whether `path` is answered with 200; no answer at all counts as no."""
        try:
            status, _ = self._send("GET", path)
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return False
        return status == http.HTTPStatus.OK

    def _json(
        self,
        method: str,
        path: str,
        document: object = None,
        content_type: str = "application/json",
    ) -> dict[str, object]:
        body = None if document is None else json.dumps(document).encode()
        status, answer = self._send(method, path, body, content_type)
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise RequestError(status, f"{method} {path}: {_message(answer)}")
        parsed: dict[str, object] = json.loads(answer)
        return parsed

    def _send(
        self, method: str, path: str, body: bytes | None = None, content_type: str = "application/json"
    ) -> tuple[int, bytes]:
        headers = self._headers | ({"Content-Type": content_type} if body else {})
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        return response.status, response.read()


def _message(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer.decode(errors="replace")
