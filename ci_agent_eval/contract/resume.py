"""What a run began under, and which of its tests finished, so that a later attempt continues it."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from ci_agent_eval.contract.base import Count, FrozenModel

FINISHED_SUFFIX: Final = ".finished"
"""Ending of the files beside the journals that name the finished tests of each process."""
KEPT_NAME: Final = "earlier.kept"
"""File beside the journals with the episodes that a run keeps of earlier attempts."""

Digests = dict[str, str | None]
"""Hashes by name or path; None: unset or absent, and `set` for a secret variable."""


class StartConditions(FrozenModel):
    """What a run began under; another run under the same conditions can continue it."""

    program: str = Field(description="version of this program")
    command: str = Field(description="hash of suite, paths, pytest's arguments, and shard")
    commit: str = Field(description="the commit that is checked out")
    changes: Digests = Field(
        default_factory=dict, description="SHA-256 of each file that differs from the commit"
    )
    environment: str = Field(description="hash of Python, platform and distributions")
    configuration: str | None = Field(
        default=None, description="hash of pytest's configuration file"
    )
    variables: Digests = Field(
        default_factory=dict, description="hash of each variable that the kept episodes depend on"
    )
    files: Digests = Field(
        default_factory=dict, description="SHA-256 of each file that they read outside of git"
    )
    recorded_at: Count = Field(description="when the run began, in seconds since 1970 (UTC)")


class FinishedTest(FrozenModel):
    """A test that ended with its teardown, and what its process has read since the one before."""

    nodeid: str
    iteration: Count = 1
    kept: str | None = Field(
        default=None, description="scenario of its episode, if that is of an earlier attempt"
    )
    variables: Digests = Field(default_factory=dict)
    files: Digests = Field(default_factory=dict)


class KeptEpisodes(FrozenModel):
    """The episodes that a run kept of an earlier attempt."""

    episodes: Count = 0
    run: str | None = Field(default=None, description="id of the earlier attempt's workflow run")
    attempt: Count = Field(default=1, description="its 1-based attempt at the workflow run")
    recorded_at: Count = Field(default=0, description="when it began, in seconds since 1970 (UTC)")
    refusal: str | None = Field(default=None, description="why nothing was kept")


class ResumeRequest(FrozenModel):
    """What `agent-eval run` tells the plugin about continuing a run."""

    command: str
    folder: str | None = Field(
        default=None, description="report folder of the earlier attempt; unset: there is none"
    )
    strict: bool = Field(
        default=True, description="refuse to run if nothing of the earlier attempt can be kept"
    )
