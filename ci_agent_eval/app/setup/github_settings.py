"""The settings of a repository on GitHub that decide whether the gate works."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ci_agent_eval.app.setup.repository import ProjectRepository
from ci_agent_eval.errors import PublishError

PATIENCE_S = 20.0
"""Longest wait for rate limits and errors of the server."""


@dataclass(frozen=True, slots=True)
class GitHubSettings:
    """The settings, as far as the token may read them."""

    repository: str
    """`owner/name`."""
    required_checks: tuple[str, ...] | None = None
    """The checks that the default branch requires; None: unknown."""
    default_permissions: str | None = None
    """The rights of a job that states none, `read` or `write`; None: unknown."""
    error: str | None = None
    """Why they could not be read."""


def read_github_settings(
    repository: ProjectRepository, environ: Mapping[str, str]
) -> GitHubSettings | None:
    """Ask GitHub about the repository; None without GITHUB_TOKEN or a repository there."""
    server = environ.get("GITHUB_SERVER_URL") or "https://github.com"
    name = environ.get("GITHUB_REPOSITORY") or repository.find_github_name(urlsplit(server).netloc)
    token = environ.get("GITHUB_TOKEN")
    if not token or not name:
        return None
    # Importing PyGithub takes a third of a second.
    from ci_agent_eval.github import client  # noqa: PLC0415 - see above

    api_url = environ.get("GITHUB_API_URL") or "https://api.github.com"
    connection = client.Connection(name, token, api_url, patience_s=PATIENCE_S)
    try:
        with client.open_api(
            connection, sleep=time.sleep, clock=time.time, log=lambda *_: None
        ) as api:
            checks = tuple(api.required_checks(repository.default_branch))
            return GitHubSettings(name, checks, api.default_permissions())
    except PublishError as error:
        return GitHubSettings(name, error=str(error))
