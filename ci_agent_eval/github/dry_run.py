"""GitHub as a dry run sees it: reads are answered, writes are shown and not sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from ci_agent_eval.errors import PublishError
from ci_agent_eval.github.api import Api, CheckRun, Comment, Pull
from ci_agent_eval.github.retries import Log
from ci_agent_eval.github.writes import Write

T = TypeVar("T")

NEW_ID = 0
"""Stands in paths for the id GitHub would have given to what was not created."""


class DryRun:
    """An `api.Api` that changes nothing.

    Reads go to `inner`; without one, or when it cannot answer, they are answered as empty, and
    the log says so. Each write goes to `show` as text: method, path and JSON body.
    """

    def __init__(
        self, repository: str, show: Callable[[str], None], log: Log, *, inner: Api | None = None
    ) -> None:
        self._repository = repository
        self._show = show
        self._log = log
        self._inner = inner
        self._said: set[str] = set()

    def login(self) -> str | None:
        """Return the token's login, or None."""
        return self._read("whose token this is", lambda api: api.login(), None)

    def comments(self, issue: int) -> Sequence[Comment]:
        """Return the comments there are, or none."""
        return self._read(f"the comments of #{issue}", lambda api: api.comments(issue), ())

    def pulls_of_commit(self, sha: str) -> Sequence[Pull]:
        """Return the commit's pull requests, or none."""
        return self._read(f"pull requests of {sha[:7]}", lambda api: api.pulls_of_commit(sha), ())

    def pulls_of_branch(self, owner: str, branch: str) -> Sequence[Pull]:
        """Return the branch's pull requests, or none."""
        what = f"pull requests from {owner}:{branch}"
        return self._read(what, lambda api: api.pulls_of_branch(owner, branch), ())

    def pull_head(self, number: int) -> str | None:
        """Return the commit a pull request is at, or None."""
        return self._read(f"the commit of #{number}", lambda api: api.pull_head(number), None)

    def check_runs_of(self, sha: str, name: str) -> Sequence[CheckRun]:
        """Return the check runs there are, or none."""
        what = f"the check runs of {sha[:7]}"
        return self._read(what, lambda api: api.check_runs_of(sha, name), ())

    def check_run(self, run_id: int) -> CheckRun:
        """Return a check run of which nothing is known."""
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

    def _read(self, what: str, ask: Callable[[Api], T], otherwise: T) -> T:
        if self._inner is None:
            self._say(f"Dry run without GitHub: {what} taken as empty.")
            return otherwise
        try:
            return ask(self._inner)
        except PublishError as error:
            self._say(f"Dry run: {what} taken as empty. {error}")
            return otherwise

    def _say(self, sentence: str) -> None:
        """Say it once: some things are read several times."""
        if sentence not in self._said:
            self._said.add(sentence)
            self._log("notice", sentence)

    def _would_send(self, write: Write) -> None:
        request = f"{write.method} /repos/{self._repository}{write.path}"
        if write.body is not None:
            body = json.dumps(write.body, indent=2, sort_keys=True, ensure_ascii=True)
            request = f"{request}\n{body}"
        self._show(request)
