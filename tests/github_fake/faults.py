"""A script of faults: which request goes wrong, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

FaultKind = Literal[
    "forbidden_retry_after",
    "too_many_no_retry_after",
    "rate_limited_reset",
    "server_error",
    "bad_gateway_after_work",
    "cut_before",
    "cut_after",
    "cut_halfway",
    "read_only",
    "unprocessable",
    "not_found",
    "bad_credentials",
]
"""How a request goes wrong.

``forbidden_retry_after``: 403, secondary rate limit, with Retry-After.
``too_many_no_retry_after``: 429 without a hint.
``rate_limited_reset``: 403 with x-ratelimit-remaining 0 and x-ratelimit-reset.
``server_error``: 500, nothing done. ``bad_gateway_after_work``: the work is done, then 502.
``cut_before``, ``cut_after``: the connection closes unanswered before or after the work.
``cut_halfway``: it closes in the middle of the right answer.
``read_only``: 403, the token may not. ``unprocessable``: 422 for a request that was right.
``not_found``, ``bad_credentials``: 404 and 401 for a request that was right.
"""

LASTING_FAULTS: tuple[FaultKind, ...] = (
    "read_only",
    "unprocessable",
    "not_found",
    "bad_credentials",
)
"""Faults that no retry can overcome."""

PASSING_FAULTS = tuple(kind for kind in get_args(FaultKind) if kind not in LASTING_FAULTS)
"""Faults after which the same request succeeds."""

_SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
)
_STATUS: dict[FaultKind, tuple[int, str]] = {
    "forbidden_retry_after": (403, _SECONDARY),
    "too_many_no_retry_after": (429, _SECONDARY),
    "rate_limited_reset": (403, "API rate limit exceeded for installation ID 1."),
    "server_error": (500, "Server Error"),
    "bad_gateway_after_work": (502, "Server Error"),
    "read_only": (403, "Resource not accessible by integration"),
    "unprocessable": (422, "Validation Failed"),
    "not_found": (404, "Not Found"),
    "bad_credentials": (401, "Bad credentials"),
}


@dataclass(slots=True)
class Fault:
    """One line of the script; see :meth:`Faults.add`."""

    kind: FaultKind
    on: str = "*"
    nth: int = 1
    times: int | None = 1
    retry_after: int = 1
    reset_at: int = 1767229200
    seen: int = field(default=0, init=False)

    @property
    def works_first(self) -> bool:
        """Whether the request changes the state before it goes wrong."""
        return self.kind in {"bad_gateway_after_work", "cut_after", "cut_halfway"}

    @property
    def cuts(self) -> bool:
        """Whether the connection is closed unanswered."""
        return self.kind in {"cut_before", "cut_after"}

    def meets(self, request: str) -> bool:
        """Count a request, given as ``METHOD /path``, and tell whether this fault is its turn."""
        if not fnmatchcase(request, self.on):
            return False
        self.seen += 1
        return self.seen >= self.nth and (self.times is None or self.seen < self.nth + self.times)

    def reply(self) -> tuple[int, dict[str, Any], dict[str, str]]:
        """Return status, body and headers of the wrong answer; KeyError for a cut connection."""
        status, message = _STATUS[self.kind]
        headers: dict[str, str] = {}
        if self.kind == "forbidden_retry_after":
            headers["Retry-After"] = str(self.retry_after)
        if self.kind == "rate_limited_reset":
            headers |= {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(self.reset_at)}
        return status, {"message": message, "documentation_url": ""}, headers


class Faults:
    """The script. Empty at first: every request is then served."""

    def __init__(self) -> None:
        self._script: list[Fault] = []

    def add(self, kind: FaultKind, **fields: Any) -> Fault:
        """Let the ``nth`` request (from 1) that matches ``on`` go wrong, and ``times`` in all.

        ``on`` is a shell pattern over ``METHOD /path`` without the enterprise prefix, as in
        ``"POST */comments"``; ``"*"`` counts every request. ``times=None`` means from then on.
        ``retry_after`` is seconds, ``reset_at`` seconds since 1970. Counting starts now. Returns
        the fault, whose ``seen`` tells how many requests matched. ValueError for an unknown kind.
        """
        if kind not in get_args(FaultKind):
            raise ValueError(f"unknown fault {kind!r}: use one of {', '.join(get_args(FaultKind))}")
        fault = Fault(kind, **fields)
        self._script.append(fault)
        return fault

    def clear(self) -> None:
        """Forget the script: every later request is served."""
        self._script.clear()

    def strike(self, method: str, path: str) -> Fault | None:
        """Count a request against every line of the script; return the first that is its turn."""
        request = f"{method} {path}"
        struck = [fault for fault in self._script if fault.meets(request)]
        return struck[0] if struck else None
