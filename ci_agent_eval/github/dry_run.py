"""GitHub's API for dry runs: reads are answered, writes are printed instead of sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from ci_agent_eval.errors import PublishError
from ci_agent_eval.github.api import Api, CheckRun, Comment, Pull, Write
from ci_agent_eval.github.retries import Log

T = TypeVar("T")

NEW_ID = 0
"""Placeholder in paths for the id of an object that was not created."""


class DryRun:
    """An `api.Api` that changes nothing.

    Reads go to `inner`; without it, or if it fails, they return empty values, with a log entry.
    Each write is passed to `show` as text: method, path and JSON body.
    """

    def __init__(
        self, repository: str, show: Callable[[str], None], log: Log, *, inner: Api | None = None
    ) -> None:
        self._repository = repository
        self._show = show
        self._log = log
        self._inner = inner
        self._logged: set[str] = set()

    def login(self) -> str | None:
        """Return the token's login, or None."""
        return self._read("whose token this is", lambda api: api.login(), None)

    def comments(self, issue: int) -> Sequence[Comment]:
        """Return the existing comments, or none."""
        return self._read(f"the comments of #{issue}", lambda api: api.comments(issue), ())

    def pulls_of_commit(self, sha: str) -> Sequence[Pull]:
        """Return the commit's pull requests, or none."""
        return self._read(f"pull requests of {sha[:7]}", lambda api: api.pulls_of_commit(sha), ())

    def pulls_of_branch(self, owner: str, branch: str) -> Sequence[Pull]:
        """Return the branch's pull requests, or none."""
        value = f"pull requests from {owner}:{branch}"
        return self._read(value, lambda api: api.pulls_of_branch(owner, branch), ())

    def pull_head(self, number: int) -> str | None:
        """Return the head commit of a pull request, or None."""
        return self._read(f"the commit of #{number}", lambda api: api.pull_head(number), None)

    def check_runs_of(self, sha: str, name: str) -> Sequence[CheckRun]:
        """Return the existing check runs, or none."""
        value = f"the check runs of {sha[:7]}"
        return self._read(value, lambda api: api.check_runs_of(sha, name), ())

    def check_run(self, run_id: int) -> CheckRun:
        """Return a placeholder check run."""
        return CheckRun(run_id, "", "in_progress", None, "", 0)

    def send_comment(self, write: Write) -> Comment:
        """Show the request."""
        self._would_send(write)
        return Comment(NEW_ID, "", "")

    def delete_comment(self, write: Write) -> None:
        """Show the request."""
        self._would_send(write)

    def send_check_run(self, write: Write) -> CheckRun:
        """Show the request."""
        self._would_send(write)
        return CheckRun(NEW_ID, "", "in_progress", None, "", 0)

    def wait(self, seconds: float, why: str) -> None:
        """Do not wait: nothing was sent."""

    def _read(self, value: str, read: Callable[[Api], T], otherwise: T) -> T:
        if self._inner is None:
            self._log_once(f"Dry run without GitHub: {value} taken as empty.")
            return otherwise
        try:
            return read(self._inner)
        except PublishError as error:
            self._log_once(f"Dry run: {value} taken as empty. {error}")
            return otherwise

    def _log_once(self, sentence: str) -> None:
        """Log a sentence once: some values are read several times."""
        if sentence not in self._logged:
            self._logged.add(sentence)
            self._log("notice", sentence)

    def _would_send(self, write: Write) -> None:
        request = f"{write.method} /repos/{self._repository}{write.path}"
        if write.body is not None:
            body = json.dumps(write.body, indent=2, sort_keys=True, ensure_ascii=True)
            request = f"{request}\n{body}"
        self._show(request)
