"""Refusals of a request: one sentence and an HTTP status, never a value of the request."""

from __future__ import annotations

from opboost.errors import OpBoostError

MALFORMED = 400
NO_KEY = 401
NOT_FROM_HERE = 403
NOT_THERE = 404
TOO_SLOW = 408
TOO_LARGE = 413
DOES_NOT_FIT = 422
NOT_READY = 503


class RequestRefused(OpBoostError):
    """A request that is not answered with scores; ``status`` is the HTTP status of the answer.

    >>> error = RequestRefused(413, "The request has 3 rows, and the limit is 2. Send fewer.")
    >>> error.status, str(error)[:22]
    (413, 'The request has 3 rows')
    """

    def __init__(self, status: int, words: str) -> None:
        self.status = status
        super().__init__(words)
