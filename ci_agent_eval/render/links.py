"""Links to lines of the head commit, to the run and to the report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

MAX_PATH = 4_096
MAX_ANCHOR = 1_000
"""Characters of a quoted scenario in an address; a longer one would crowd out the comment."""
MAX_LINE = 2**31 - 1
"""GitHub refuses a line that is no 32-bit number."""

_NOT_IN_A_PATH = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|^[A-Za-z]:")

_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


def repository_path(file: str | None) -> str | None:
    """Return the path as GitHub takes it: relative, forward slashes; None if it leaves the root."""
    if not file or len(file) > MAX_PATH or _NOT_IN_A_PATH.search(file):
        return None
    path = file.replace("\\", "/").removeprefix("./")
    parts = path.split("/")
    return path if all(part not in ("", ".", "..") for part in parts) else None


def line_number(line: int | None) -> int | None:
    """Return a 1-based line that GitHub takes, or None."""
    return line if line is not None and 1 <= line <= MAX_LINE else None


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file, with its address at the head commit where that is known."""

    file: str | None = None
    """Foreign text; None: no file is known."""
    line: int | None = None
    url: str | None = None

    @property
    def text(self) -> str:
        """The file with its line; empty without a file."""
        return f"{self.file}:{self.line}" if self.file and self.line else self.file or ""

    @property
    def path(self) -> str | None:
        """The path as GitHub takes it, None outside of the repository."""
        return repository_path(self.file)


NO_PLACE: Final = Place()


@dataclass(frozen=True, slots=True)
class DetailsPage:
    """A page of GitHub with more about the failures than the comment."""

    name: str
    """Our own words, such as `check run`."""
    url: str


@dataclass(frozen=True, slots=True)
class Links:
    """The targets of the report's links; lines need a repository and a commit."""

    server_url: str | None = None
    """Such as `https://github.com`."""
    repository: str | None = None
    """`owner/name`."""
    sha: str | None = None
    """The head commit."""
    run_url: str | None = None
    """The page of the workflow run."""
    artifact_url: str | None = None
    """The report folder as an artifact."""
    report_url: str | None = None
    """The uploaded `report.html`, as a browser opens it."""
    details: DetailsPage | None = None
    """The page that cards link to if there is no `report_url`."""
    folder: str = ""
    """Path from the reader's working folder to the folder of the report's files, for commands."""

    @property
    def repository_url(self) -> str | None:
        """The repository's page, or None without context."""
        if not self.server_url or not self.repository:
            return None
        return f"{quote_url(self.server_url.rstrip('/'))}/{_quote_path(self.repository)}"

    def blob(self, file: str | None, line: int | None) -> str | None:
        """Return the address of a line at the head commit, or None."""
        path, root = repository_path(file), self.repository_url
        if path is None or root is None or not self.sha:
            return None
        number = line_number(line)
        anchor = f"#L{number}" if number else ""
        return f"{root}/blob/{_quote_path(self.sha)}/{_quote_path(path)}{anchor}"

    def place(self, file: str | None, line: int | None) -> Place:
        """Return the place of a line, with its address where that is known."""
        return Place(file or None, line_number(line), self.blob(file, line))

    @property
    def full_report(self) -> str | None:
        """The address of everything that a shortened report lacks: the page, else the folder."""
        return self.report_url or self.artifact_url

    def conversation(self, scenario_id: str) -> str | None:
        """Return the address of a scenario on the uploaded page, or None."""
        if self.report_url is None:
            return None
        anchor = quote(_encode(scenario_id), safe="")
        page = quote_url(self.report_url)
        return f"{page}#scenario={anchor}" if len(anchor) <= MAX_ANCHOR else page

    def commit(self) -> str | None:
        """Return the address of the head commit, or None."""
        root = self.repository_url
        return f"{root}/commit/{_quote_path(self.sha)}" if root and self.sha else None

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The allowed beginnings of addresses in our text."""
        root = self.repository_url
        details = self.details.url if self.details else None
        pages = (self.run_url, self.artifact_url, self.report_url, details)
        return (*((f"{root}/",) if root else ()), *(quote_url(url) for url in pages if url))


def is_web_address(url: str | None) -> bool:
    """Say whether a browser may open the address; no script and no file may be one."""
    return url is not None and url.startswith(("https://", "http://"))


def quote_url(url: str) -> str:
    """Return the address with everything quoted that Markdown could read as its end."""
    # Without the semicolon no part of it is a character reference.
    quoted = quote(_encode(url), safe=":/?#@!$&*+,=%~")
    return _LONE_PERCENT.sub("%25", quoted)


def _quote_path(path: str) -> str:
    return quote(_encode(path), safe="/~")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")
