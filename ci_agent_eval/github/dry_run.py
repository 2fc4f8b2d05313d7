"""GitHub's API for dry runs: everything is taken as empty, and writes are printed, not sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from ci_agent_eval.github.api import CheckRun, Comment, Pull, Write
from ci_agent_eval.github.retries import Log

NEW_ID = 0
"""Placeholder in paths for the id of an object that was not created."""


class DryRun:
    """An `api.Api` that sends nothing.

    Reads return empty values, with a log entry. Each write is passed to `show` as text: method,
    path and JSON body.
    """

    def __init__(self, repository: str, show: Callable[[str], None], log: Log) -> None:
        self._repository = repository
        self._show = show
        self._log = log
        self._logged: set[str] = set()

    def login(self) -> None:
        """Return that the token's login is unknown."""
        self._log_empty("whose token this is")

    def comments(self, issue: int) -> Sequence[Comment]:
        """Return no comment."""
        return self._log_empty(f"the comments of #{issue}")

    def pulls_of_commit(self, sha: str) -> Sequence[Pull]:
        """Return no pull request."""
        return self._log_empty(f"pull requests of {sha[:7]}")

    def pulls_of_branch(self, owner: str, branch: str) -> Sequence[Pull]:
        """Return no pull request."""
        return self._log_empty(f"pull requests from {owner}:{branch}")

    def pull_head(self, number: int) -> None:
        """Return that the head commit of a pull request is unknown."""
        self._log_empty(f"the commit of #{number}")

    def check_runs_of(self, sha: str, name: str) -> Sequence[CheckRun]:  # noqa: ARG002 - of the protocol
        """Return no check run."""
        return self._log_empty(f"the check runs of {sha[:7]}")

    def check_run(self, run_id: int) -> CheckRun:
        """Return a placeholder check run."""
        return CheckRun(run_id, "", "in_progress", None, "", 0)

    def send_comment(self, write: Write) -> Comment:
        """Show the request."""
        self._show_write(write)
        return Comment(NEW_ID, "", "")

    def delete_comment(self, write: Write) -> None:
        """Show the request."""
        self._show_write(write)

    def send_check_run(self, write: Write) -> CheckRun:
        """Show the request."""
        self._show_write(write)
        return CheckRun(NEW_ID, "", "in_progress", None, "", 0)

    def wait(self, seconds: float, why: str) -> None:
        """Do not wait: nothing was sent."""

    def _log_empty(self, value: str) -> tuple[()]:
        """Log once that a value is taken as empty: some are read several times."""
        if value not in self._logged:
            self._logged.add(value)
            self._log("notice", f"Dry run without GitHub: {value} taken as empty.")
        return ()

    def _show_write(self, write: Write) -> None:
        request = f"{write.method} /repos/{self._repository}{write.path}"
        if write.body is not None:
            body = json.dumps(write.body, indent=2, sort_keys=True, ensure_ascii=True)
            request = f"{request}\n{body}"
        self._show(request)
