"""`confirmation.json`: the runs of base and head, made in turn, that confirm a drop or do not."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_agent_eval.contract.base import SCHEMA_VERSION, FrozenModel, SchemaVersion
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import UNNAMED_SUITE, Session

CONFIRMATION_NAME = "confirmation.json"

Side = Literal["base", "head"]


class RepeatedScenario(FrozenModel):
    """A scenario that is run again."""

    scenario_id: str = Field(min_length=1)
    was: str | None = Field(default=None, description="its id in the baseline, if another")
    iterations: int = Field(ge=1, description="iterations of each block on each side")


class ConfirmationRun(FrozenModel):
    """One run of a block: the repeated scenarios on one side."""

    side: Side
    block: int = Field(ge=1)
    session: Session
    episodes: tuple[Episode, ...] = ()


class Confirmation(FrozenModel):
    """The runs that were made after a run, because it was worse than its baseline."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    suite: str = UNNAMED_SUITE
    commit: str | None = Field(default=None, description="the tested commit, as in session.json")
    base_commit: str = Field(description="the commit that was run as the base")
    results: str = Field(description="SHA-256 of the results.json that the runs belong to")
    blocks: int = Field(ge=1, description="planned blocks; each is one run of either side")
    scenarios: tuple[RepeatedScenario, ...] = ()
    ended: str | None = Field(default=None, description="why it ended before its last block")
    runs: tuple[ConfirmationRun, ...] = ()
