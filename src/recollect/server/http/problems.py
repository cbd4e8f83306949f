"""Errors as problem details (RFC 9457): the status that fits, and the code and fields of ours."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from recollect import errors
from recollect.errors import RecollectError
from recollect.wire import encode

#: Class of error -> status, the first that fits.
_STATUS: tuple[tuple[type[RecollectError], HTTPStatus], ...] = (
    (errors.TokenError, HTTPStatus.UNAUTHORIZED),
    (errors.AccessError, HTTPStatus.FORBIDDEN),
    (errors.ScopeError, HTTPStatus.FORBIDDEN),
    (errors.ReadOnlyMemoryError, HTTPStatus.FORBIDDEN),
    (errors.ReadOnlyStoreError, HTTPStatus.FORBIDDEN),
    (errors.DeadlineError, HTTPStatus.GATEWAY_TIMEOUT),
    (errors.ServerBusyError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.StoreBusyError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.StoreReplacedError, HTTPStatus.SERVICE_UNAVAILABLE),  # of a batch: another one uses the new store
    (errors.UnknownRecordError, HTTPStatus.NOT_FOUND),
    (errors.UnknownTargetError, HTTPStatus.NOT_FOUND),
    (errors.StoreMissingError, HTTPStatus.NOT_FOUND),
    (errors.ConflictError, HTTPStatus.CONFLICT),
    (errors.RecordExistsError, HTTPStatus.CONFLICT),
    (errors.ValidityError, HTTPStatus.CONFLICT),
    (errors.ClosedError, HTTPStatus.CONFLICT),
    (errors.IdempotencyError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.RejectedError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.QuotaError, HTTPStatus.INSUFFICIENT_STORAGE),
    (errors.StoreFullError, HTTPStatus.INSUFFICIENT_STORAGE),
    (errors.StoreError, HTTPStatus.INTERNAL_SERVER_ERROR),
    (errors.ProtocolError, HTTPStatus.BAD_REQUEST),
    (errors.AnswerTooLargeError, HTTPStatus.BAD_REQUEST),
    (errors.ResultChangedError, HTTPStatus.CONFLICT),
    (errors.ServerError, HTTPStatus.INTERNAL_SERVER_ERROR),
)


def status_of(error: RecollectError) -> HTTPStatus:
    """Return the status of an error."""
    own: HTTPStatus | None = getattr(error, "http_status", None)  # of errors of this server alone
    return own or next((status for kind, status in _STATUS if isinstance(error, kind)), HTTPStatus.BAD_REQUEST)


def problem(error: RecollectError, status: HTTPStatus | None = None) -> Response:
    """Return an error as an answer.

    Args:
        error: The error.
        status: The status; None: that of its class.
    """
    status = status or status_of(error)
    stated = error.to_json()
    body: dict[str, Any] = {
        "type": f"urn:recollect:error:{error.code}",
        "title": status.phrase,
        "status": int(status),
        "detail": stated["message"],
        "code": stated["error"],
        "args": stated["args"],
    }
    if stated.get("unchanged"):
        body["unchanged"] = True
    headers = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status in (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS):
        after = error.args[1] if isinstance(error, errors.ServerBusyError) else 1.0
        headers["Retry-After"] = str(max(1, math.ceil(after)))
    return Response(encode(body), int(status), headers, "application/problem+json")
