"""Files by which an attempt at a run continues an earlier one."""

from __future__ import annotations

from pydantic import Field

from ci_agent_eval.contract.base import Count, FrozenModel
from ci_agent_eval.contract.results import Digests


class FinishedTest(FrozenModel):
    """A test that ended with its teardown, and what its process has read since the one before."""

    nodeid: str
    iteration: Count = 1
    kept: str | None = Field(
        default=None, description="scenario of its episode, if that is of an earlier attempt"
    )
    variables: Digests = Field(default_factory=dict)
    files: Digests = Field(default_factory=dict)


class ResumeRequest(FrozenModel):
    """What `agent-eval run` tells the plugin about continuing a run."""

    command: str
    folder: str | None = Field(
        default=None, description="report folder of the earlier attempt; unset: there is none"
    )
    strict: bool = Field(
        default=True, description="refuse to run if nothing of the earlier attempt can be kept"
    )
