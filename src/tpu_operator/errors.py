"""Every exception of ours, in one tree.

TpuOperatorError
|- InvalidInput        a person typed something that cannot work (CLI, configuration, topology)
|- ApiError            the API server answered with a Status, or did not answer
   |- Refused          it will not take this object now: quota, admission, invalid (retry slowly, tell the user)
   |- Gone             the object is not there, or is another one of the same name (uid precondition)
   |- Conflict         somebody else wrote in between (look again, then retry)
   |- Expired          410: the watch or list position is too old (list again)
   |- Transient        overload, time-out, connection lost, 5xx (retry with growing pauses)
   |  |- AnswerLost    the request may or may not have been carried out (settle it by name)
   |- Unauthorized     401/403 on the request itself: credentials or RBAC
"""

from __future__ import annotations


class TpuOperatorError(Exception):
    """Root of the tree."""


class InvalidInput(TpuOperatorError):
    """What a person gave cannot work; the message says what to write instead."""


class ApiError(TpuOperatorError):
    """An API request that failed.

    `status` is the HTTP status (0 if there was no answer), `reason` and `message` come from the Status body,
    `cause` is the first entry of `details.causes` if there is one, `retry_after` is in seconds.
    """

    def __init__(
        self, message: str, *, status: int = 0, reason: str = "", cause: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.reason = reason
        self.cause = cause
        self.retry_after = retry_after


class Refused(ApiError):
    """The API server will not take this object now (403 quota or admission, 422 invalid, 400)."""


class Gone(ApiError):
    """404, or a uid precondition that failed: what we meant is no longer there."""


class Conflict(ApiError):
    """409: AlreadyExists, or a resourceVersion that is not the newest."""


class Expired(ApiError):
    """410: the resourceVersion or continue token is too old."""


class Transient(ApiError):
    """Worth another try: 408, 429, 5xx, no connection."""


class AnswerLost(Transient):
    """The request was sent, the answer did not arrive: it may have been carried out."""


class Unauthorized(ApiError):
    """401, or 403 by RBAC: asking again will not help until somebody changes the rights."""
