"""From HTTP answers to exceptions. The messages are those of real API servers (1.36) and well-known webhooks."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from tpu_operator import errors
from tpu_operator.kube.answers import error_of, event_error

RBAC = 'pods is forbidden: User "system:serviceaccount:a:b" cannot create resource "pods" in API group "" in the namespace "a"'
QUOTA = 'pods "w-0" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2'
POD_SECURITY = 'pods "w-0" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false'
WEBHOOK_NO = 'admission webhook "validate.kyverno.svc-fail" denied the request: no :latest'
WEBHOOK_DOWN = 'Internal error occurred: failed calling webhook "x.y.z": no endpoints available for service "x"'
TERMINATING = 'pods "w-0" is forbidden: unable to create new content in namespace a because it is being terminated'
UID_REGISTRY = (
    'Operation cannot be fulfilled on Pod "w-0": the UID in the precondition (1) does not match the UID in record (2). '
    "The object might have been deleted and then recreated"
)
UID_STORAGE = (
    'Operation cannot be fulfilled on pods "w-0": StorageError: invalid object, Code: 4, Key: /registry/pods/a/w-0, '
    "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: 1, UID in object meta: 2"
)
VERSION = (
    'Operation cannot be fulfilled on Pod "w-0": the ResourceVersion in the precondition (1) does not match the '
    "ResourceVersion in record (255). The object might have been modified"
)


class Case(NamedTuple):
    verb: str
    status: int
    reason: str
    message: str
    want: type[errors.ApiError]


CASES = {
    "quota": Case("create", 403, "Forbidden", QUOTA, errors.Refused),
    "pod security": Case("create", 403, "Forbidden", POD_SECURITY, errors.Refused),
    "denied by a webhook": Case("create", 403, "Forbidden", WEBHOOK_NO, errors.Refused),
    "denied by a webhook without a reason": Case("create", 403, "", WEBHOOK_NO, errors.Refused),
    "denied by a webhook with 400": Case("create", 400, "", WEBHOOK_NO, errors.Refused),
    "namespace goes": Case("create", 403, "Forbidden", TERMINATING, errors.Refused),
    "no right to create": Case("create", 403, "Forbidden", RBAC, errors.Unauthorized),
    "bad token": Case("list", 401, "Unauthorized", "Unauthorized", errors.Unauthorized),
    "invalid": Case("create", 422, "Invalid", 'Pod "w-0" is invalid: spec.containers: Required value', errors.Refused),
    "malformed": Case("create", 400, "BadRequest", "json: cannot unmarshal", errors.Refused),
    "too large": Case("create", 413, "RequestEntityTooLarge", "limit is 3145728", errors.Refused),
    "not there": Case("delete", 404, "NotFound", 'pods "w-0" not found', errors.Gone),
    "namespace not there": Case("create", 404, "NotFound", 'namespaces "a" not found', errors.Gone),
    "name taken": Case("create", 409, "AlreadyExists", 'pods "w-0" already exists', errors.Conflict),
    "quota raced": Case(
        "create", 409, "Conflict", 'Operation cannot be fulfilled on resourcequotas "q"', errors.Conflict
    ),
    "another uid (registry)": Case("delete", 409, "Conflict", UID_REGISTRY, errors.Gone),
    "another uid (storage)": Case("delete", 409, "Conflict", UID_STORAGE, errors.Gone),
    "another resourceVersion": Case("delete", 409, "Conflict", VERSION, errors.Conflict),
    "patched an old version": Case("patch", 409, "Conflict", "the object has been modified", errors.Conflict),
    "watch too old": Case("watch", 410, "Expired", "too old resource version: 1 (2)", errors.Expired),
    "continue token too old": Case(
        "list", 410, "Expired", "The provided continue parameter is too old", errors.Expired
    ),
    "overload": Case("create", 429, "TooManyRequests", "too many requests", errors.Transient),
    "shutting down": Case("create", 503, "ServiceUnavailable", "apiserver is shutting down", errors.Transient),
    "webhook down": Case("create", 500, "InternalError", WEBHOOK_DOWN, errors.Transient),
    "webhook down, timed out": Case("create", 504, "Timeout", WEBHOOK_DOWN, errors.Transient),
    "server timed out on a read": Case("list", 504, "Timeout", "request did not complete", errors.Transient),
    "server timed out on a create": Case("create", 504, "Timeout", "request did not complete", errors.AnswerLost),
    "etcd timed out on a create": Case("create", 500, "", "etcdserver: request timed out", errors.AnswerLost),
    "etcd timed out on a delete": Case("delete", 500, "", "etcdserver: request timed out", errors.AnswerLost),
}


def status_body(reason: str, message: str, code: int, **details: Any) -> bytes:
    status = {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code}
    return json.dumps(status | ({"details": details} if details else {})).encode()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_answer_becomes_the_error_that_says_what_to_do(case: Case) -> None:
    error = error_of(case.verb, case.status, status_body(case.reason, case.message, case.status))

    assert type(error) is case.want
    assert (error.status, error.reason, error.message) == (case.status, case.reason, case.message)


def test_the_first_cause_is_kept() -> None:
    body = status_body("Forbidden", TERMINATING, 403, causes=[{"reason": "NamespaceTerminating"}, {"reason": "Other"}])

    assert error_of("create", 403, body).cause == "NamespaceTerminating"


@pytest.mark.parametrize(
    ("header", "details", "want"),
    [
        (None, {}, None),
        ("7", {}, 7.0),
        (None, {"retryAfterSeconds": 3}, 3.0),
        ("7", {"retryAfterSeconds": 3}, 7.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", {}, None),
        ("-1", {}, 0.0),
    ],
)
def test_the_server_may_say_how_long_to_wait(header: str | None, details: dict[str, int], want: float | None) -> None:
    body = status_body("TooManyRequests", "too many requests", 429, **details)

    assert error_of("create", 429, body, header).retry_after == want


@pytest.mark.parametrize(
    ("status", "body", "want"),
    [
        (502, b"<html>Bad Gateway</html>", errors.AnswerLost),
        (503, b"", errors.Transient),
        (403, b"<html>Forbidden by the proxy</html>", errors.Unauthorized),
        (404, b"404 page not found\n", errors.Gone),
        (429, b'"not an object"', errors.Transient),
        (302, b"", errors.Transient),
    ],
)
def test_whatever_stands_between_us_and_the_server_may_answer(
    status: int, body: bytes, want: type[errors.ApiError]
) -> None:
    error = error_of("create", status, body)

    assert type(error) is want
    assert f"HTTP {status}" in error.message


def test_an_error_event_of_a_watch_is_judged_by_its_status() -> None:
    assert isinstance(event_error(status_body("Expired", "too old resource version", 410)), errors.Expired)
    assert type(event_error(b"{}")) is errors.Transient
