"""Size-limited download from a signed address of GitHub, without our token."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import requests
import urllib3

from ci_agent_eval.errors import PublishError
from ci_agent_eval.github.api_errors import GoneError
from ci_agent_eval.github.retries import TRIES, Clock, WaitBudget, compute_retry_pause

_CHUNK = 1 << 20
_MIB = 1 << 20
_GONE = frozenset({404, 410})


class _UnfinishedError(PublishError):
    """A download failure that may succeed on retry."""

    def __init__(self, message: str, *, status: int | None = None, retry_after: str = "") -> None:
        super().__init__(message)
        self.status = status
        """Status of GitHub's storage; None if it gives no hint how long to wait."""
        self.headers = {"retry-after": retry_after}


@dataclass(frozen=True, slots=True)
class DownloadTerms:
    """Purpose and limits of a download."""

    action: str
    """Completes "could not …"."""
    largest: int
    """Maximum bytes."""
    digest: str | None = None
    """Required hash, prefixed by `sha256:`; None: any."""
    timeout_s: float = 30
    """Timeout for connecting, and for each chunk."""
    longest_s: float = 900
    """Limit for the whole download, however steady."""


def is_allowed_address(address: str, api_url: str) -> bool:
    """Say whether an address may be requested: it must be encrypted, unless the API is not."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return bool(parts.hostname) and parts.scheme in {"https", urlsplit(api_url).scheme}


def download_to_file(
    signed: Callable[[], str],
    into: Path,
    terms: DownloadTerms,
    *,
    patience: WaitBudget,
    clock: Clock,
) -> None:
    """Write a file; `signed` returns a new address for each attempt.

    The address is secret while its signature is valid, so no message contains it and redirects
    are not followed. Raises GoneError if the file no longer exists, else PublishError. `clock`
    returns seconds.
    """
    for attempt in range(1, TRIES + 1):
        try:
            with into.open("wb") as target:
                _download_once(signed(), target, terms, clock)
        except _UnfinishedError as error:
            problem = f"Could not {terms.action}: {error}"
            if attempt == TRIES:
                raise PublishError(f"{problem}, {TRIES} times. Run the job again later.") from None
            pause = compute_retry_pause(error.status, error.headers, failures=attempt, now=clock())
            patience.wait(pause, problem)
        else:
            return


def _download_once(address: str, target: BinaryIO, terms: DownloadTerms, clock: Clock) -> None:
    """Write the content of the address."""
    host = urlsplit(address).hostname
    try:
        with requests.Session() as session:
            session.auth = _no_credentials
            answer = session.get(
                address,
                headers={"Accept-Encoding": "identity", "User-Agent": "ci-agent-eval"},
                stream=True,
                timeout=terms.timeout_s,
                allow_redirects=False,
            )
            with answer:
                _check_status(answer, host, terms)
                _copy_body(answer.raw, target, terms, clock)
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        kind = type(error).__name__
        raise _UnfinishedError(f"the connection to {host} failed ({kind})") from None


def _no_credentials(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Replace the authentication of `requests`, which would read a .netrc file."""
    return request


def _check_status(answer: requests.Response, host: str | None, terms: DownloadTerms) -> None:
    status = answer.status_code
    if status == 200:
        return
    message = f"{host} answered {status}"
    if status in _GONE:
        raise GoneError(f"Could not {terms.action}: {message}.")
    if status == 403:
        # The signature has expired; the next attempt gets a new one.
        raise _UnfinishedError(message)
    if status in {408, 429} or status >= 500:
        after = answer.headers.get("Retry-After", "")
        raise _UnfinishedError(message, status=status, retry_after=after)
    raise PublishError(f"Could not {terms.action}: {message}.")


def _copy_body(
    source: urllib3.BaseHTTPResponse, target: BinaryIO, terms: DownloadTerms, clock: Clock
) -> None:
    digest, written, end = hashlib.sha256(), 0, clock() + terms.longest_s
    for chunk in source.stream(_CHUNK, decode_content=False):
        written += len(chunk)
        if written > terms.largest:
            limit = f"{terms.largest // _MIB:,} MiB at most are read"
            raise PublishError(f"Could not {terms.action}: {limit}.")
        if clock() > end:
            limit = f"it takes longer than {terms.longest_s:.0f} s"
            raise PublishError(f"Could not {terms.action}: {limit}.")
        digest.update(chunk)
        target.write(chunk)
    if terms.digest not in {None, f"sha256:{digest.hexdigest()}"}:
        raise _UnfinishedError("its bytes are not those that GitHub stored")
