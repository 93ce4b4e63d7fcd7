"""The one place where an HTTP answer becomes an exception of ours.

Facts: the reasons and codes are those of `k8s.io/apimachinery/pkg/api/errors`. 403 has two meanings that a caller must
tell apart: the authorizer says `User "x" cannot create resource ...` (nothing will help but other rights), admission
says `exceeded quota`, `violates PodSecurity`, `denied the request` (the object is refused as things stand).
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

import msgspec
from msgspec import Struct

from tpu_operator.errors import (
    AnswerLost,
    ApiError,
    Conflict,
    Expired,
    Gone,
    Refused,
    Transient,
    Unauthorized,
)

WRITES: Final = frozenset({"create", "apply", "patch", "delete"})

_RBAC: Final = re.compile(r'User "[^"]*" cannot ')
_WEBHOOK_DOWN: Final = "failed calling webhook"
_UID_PRECONDITION: Final = re.compile(r"UID in (the )?precondition")  # the storage's words and the registry's
_CLASSES: Final[dict[int, type[ApiError]]] = {
    400: Refused,
    401: Unauthorized,
    404: Gone,
    405: Refused,
    406: Refused,
    410: Expired,
    413: Refused,
    415: Refused,
    422: Refused,
}
_UNDECIDED: Final = frozenset({500, 502, 504})
_LONGEST_TEXT: Final = 200


class _Cause(Struct, frozen=True, gc=False):
    reason: str = ""


class _Details(Struct, frozen=True, rename="camel"):
    causes: tuple[_Cause, ...] | None = None
    retry_after_seconds: float | None = None


class _Status(Struct, frozen=True):
    """A `v1.Status`. Proxies in between answer with anything else, so nothing is required."""

    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_decoder = msgspec.json.Decoder(_Status)


def error_of(verb: str, status: int, body: bytes | msgspec.Raw, retry_after: str | None = None) -> ApiError:
    """Return the exception for a request that was answered with a failure.

    `verb` is ours: get, list, watch, create, apply, patch, delete. `body` is the Status if the API server wrote it,
    `retry_after` the header of that name.
    """
    answer = _parse(status, body)
    code = answer.code or status
    details = answer.details or _Details()
    wait = _seconds(retry_after)
    return _class_of(verb, code, answer)(
        answer.message,
        status=code,
        reason=answer.reason,
        cause=details.causes[0].reason if details.causes else "",
        retry_after=details.retry_after_seconds if wait is None else wait,
    )


def event_error(body: bytes | msgspec.Raw) -> ApiError:
    """Return the exception for an ERROR event of a watch: its object is a Status."""
    return error_of("watch", 0, body)


def _class_of(verb: str, code: int, answer: _Status) -> type[ApiError]:
    if known := _CLASSES.get(code):
        return known
    if code == HTTPStatus.FORBIDDEN:
        return _forbidden(answer)
    if code == HTTPStatus.CONFLICT:
        return Gone if verb == "delete" and _UID_PRECONDITION.search(answer.message) else Conflict
    return AnswerLost if _undecided(verb, code, answer) else Transient


def _forbidden(answer: _Status) -> type[ApiError]:
    """Without a Status it was not the API server who refused, so the object is not to blame."""
    if answer.kind != "Status" or _RBAC.search(answer.message):
        return Unauthorized
    return Refused


def _undecided(verb: str, code: int, answer: _Status) -> bool:
    """Tell whether a write may have been carried out in spite of the answer.

    A time-out inside the API server or etcd, or a proxy that lost its upstream, says nothing about the object. A
    webhook that cannot be called does: admission comes before storage.
    """
    return verb in WRITES and code in _UNDECIDED and _WEBHOOK_DOWN not in answer.message


def _parse(status: int, body: bytes | msgspec.Raw) -> _Status:
    try:
        answer = _decoder.decode(body)
    except msgspec.MsgspecError:
        text = bytes(body[:_LONGEST_TEXT]).decode("utf-8", "replace").strip()
        return _Status(message=f"HTTP {status}: {text or 'empty answer'}")
    if answer.message:
        return answer
    return msgspec.structs.replace(answer, message=f"HTTP {status}: {answer.reason or 'no message'}")


def _seconds(header: str | None) -> float | None:
    """`Retry-After` in seconds; its other form, a date, is not used by API servers."""
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None
