"""Downloading a file from an address that GitHub signed: bounded, and without our token."""

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
    """A download failed in a way that another attempt may mend."""

    def __init__(self, message: str, *, status: int | None = None, retry_after: str = "") -> None:
        super().__init__(message)
        self.status = status
        """What GitHub's storage answered; None where that does not tell how long to wait."""
        self.headers = {"retry-after": retry_after}


@dataclass(frozen=True, slots=True)
class DownloadTerms:
    """What a download is for, and what it may take."""

    what: str
    """Reads after "could not"."""
    largest: int
    """Bytes."""
    digest: str | None = None
    """`sha256:` and the hash that it must have; None: any."""
    timeout_s: float = 30
    """Longest wait for a connection, and for each piece."""
    longest_s: float = 900
    """Longest it may take in all, however steadily it drips."""


def is_allowed_address(address: str, api_url: str) -> bool:
    """Say whether an address may be asked: encrypted, unless the API itself is not."""
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
    """Write a file; `signed` yields its address anew for each attempt.

    The address is a secret for as long as its signature holds: no message repeats it, and no
    redirection is followed. Raises GoneError where there is nothing any more, and PublishError
    besides. `clock` is in seconds.
    """
    for tried in range(1, TRIES + 1):
        try:
            with into.open("wb") as target:
                _download_once(signed(), target, terms, clock)
        except _UnfinishedError as error:
            problem = f"Could not {terms.what}: {error}"
            if tried == TRIES:
                raise PublishError(f"{problem}, {TRIES} times. Run the job again later.") from None
            pause = compute_retry_pause(error.status, error.headers, failures=tried, now=clock())
            patience.wait(pause, problem)
        else:
            return


def _download_once(address: str, target: BinaryIO, terms: DownloadTerms, clock: Clock) -> None:
    """Write what is at the address, once."""
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
    """Stand in the place where `requests` would look into a .netrc file."""
    return request


def _check_status(answer: requests.Response, host: str | None, terms: DownloadTerms) -> None:
    status = answer.status_code
    if status == 200:
        return
    message = f"{host} answered {status}"
    if status in _GONE:
        raise GoneError(f"Could not {terms.what}: {message}.")
    if status == 403:
        # The signature is no longer valid; the next attempt gets a new one.
        raise _UnfinishedError(message)
    if status in {408, 429} or status >= 500:
        after = answer.headers.get("Retry-After", "")
        raise _UnfinishedError(message, status=status, retry_after=after)
    raise PublishError(f"Could not {terms.what}: {message}.")


def _copy_body(
    source: urllib3.BaseHTTPResponse, target: BinaryIO, terms: DownloadTerms, clock: Clock
) -> None:
    digest, written, end = hashlib.sha256(), 0, clock() + terms.longest_s
    for chunk in source.stream(_CHUNK, decode_content=False):
        written += len(chunk)
        if written > terms.largest:
            limit = f"{terms.largest // _MIB:,} MiB at most are read"
            raise PublishError(f"Could not {terms.what}: {limit}.")
        if clock() > end:
            limit = f"it takes longer than {terms.longest_s:.0f} s"
            raise PublishError(f"Could not {terms.what}: {limit}.")
        digest.update(chunk)
        target.write(chunk)
    if terms.digest not in {None, f"sha256:{digest.hexdigest()}"}:
        raise _UnfinishedError("its bytes are not those that GitHub stored")
