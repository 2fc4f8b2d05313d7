"""Repeating of requests inside urllib3, for PyGithub."""

from __future__ import annotations

from types import TracebackType
from typing import Any, cast

from github.GithubRetry import GithubRetry
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, NewConnectionError

from ci_agent_eval.errors import PublishError
from ci_agent_eval.github.retries import (
    TRIES,
    Clock,
    WaitBudget,
    compute_retry_pause,
    may_retry,
)


class RequestRetry(GithubRetry):
    """Lets `retries` decide whether and when urllib3 repeats a request.

    PyGithub's own class never retries a PATCH or a 429 without Retry-After, and it repeats a POST
    after a 502, which can create an object twice.
    """

    def __init__(self, *, patience: WaitBudget, clock: Clock, **rest: Any) -> None:
        rest = {"total": TRIES - 1, "allowed_methods": frozenset({"GET"}), **rest}
        super().__init__(**rest)
        self._patience = patience
        self._clock = clock
        self._pause = (0.0, "")

    def new(self, **kw: Any) -> RequestRetry:
        """Return a retry with other values."""
        return super().new(patience=self._patience, clock=self._clock, **kw)

    def is_retry(
        self,
        method: str,
        status_code: int,
        has_retry_after: bool = False,  # noqa: ARG002 - urllib3's signature
    ) -> bool:
        """Say whether a status allows repeating the request."""
        return may_retry(method, status_code)

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: Any = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> RequestRetry:
        """Return the next retry; raises the error, or PublishError after the last one."""
        if error is not None and method != "GET" and not _was_never_sent(error):
            raise error.with_traceback(_stacktrace)
        try:
            # `new` returns our own class, unlike the base class's annotation.
            following = cast(
                "RequestRetry", super().increment(method, url, response, error, _pool, _stacktrace)
            )
        except Exception as exhausted:
            if response is not None:
                # urllib3 would leave the connection open: it expects MaxRetryError only.
                response.drain_conn()
            if response is None or not isinstance(exhausted, MaxRetryError):
                raise
            raise PublishError(
                f"GitHub answered {response.status} to {method} {url} {TRIES} times. "
                "Run the job again later."
            ) from None
        following._plan(f"{method} {url}", response)  # noqa: SLF001 - the same class
        return following

    def _plan(self, request: str, response: Any) -> None:
        """Set the pause and its reason before urllib3 requests it."""
        status = None if response is None else int(response.status)
        headers = {} if response is None else {k.lower(): v for k, v in response.headers.items()}
        seconds = compute_retry_pause(
            status, headers, failures=len(self.history), now=self._clock()
        )
        problem = "No answer from GitHub" if status is None else f"GitHub answered {status}"
        self._pause = (seconds, f"{problem} to {request}")

    def sleep(self, response: Any = None) -> None:  # noqa: ARG002 - urllib3's signature
        """Wait before the request is repeated."""
        self._patience.wait(*self._pause)


def _was_never_sent(error: Exception) -> bool:
    """Say whether a connection failed before the request was sent."""
    cause = getattr(error, "original_error", error)
    return isinstance(cause, NewConnectionError | ConnectTimeoutError)
