"""`mutations.json`: changes of recorded episodes, and whether the tests noticed them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from ci_agent_eval.contract.base import SCHEMA_VERSION, Count, FrozenModel, Rate, SchemaVersion
from ci_agent_eval.contract.results import UNNAMED_SUITE

MutationKind = Literal[
    "drop_call",
    "repeat_call",
    "reorder_calls",
    "change_argument",
    "skip_confirmation",
    "contradict_answer",
    "truncate_answer",
    "leak_secret",
    "swap_answers",
    "exceed_budget",
]
"""Kinds of changes."""

MutationStatus = Literal[
    "noticed",  # the test failed
    "warned",  # it passed with a warning: a soft budget, an assertion that only warns
    "unjudged",  # no check but its rubric could notice it, and judges are not asked
    "unnoticed",
]
"""Result of playing a change to its test."""

CoverageProblem = Literal[
    "recording_failed",  # the recorded episode did not pass
    "not_played",  # the test did not run: it was changed, moved or left out
    "own_agent",  # the test gets its agent itself, and asked for no recorded answer
    "asks_model",  # the test itself asks a model, such as a judge, which playback refuses
    "other_answers",  # the test asked for more or fewer answers than recorded
    "playback_failed",  # the unchanged recording does not pass
    "no_change",  # nothing in the recording can be changed
]
"""Why the changes of a scenario say nothing about its test."""


class Mutation(FrozenModel):
    """One change of a recorded episode."""

    kind: MutationKind
    call: Count | None = Field(default=None, description="1-based tool call of the episode")
    tool: str | None = None
    argument: str | None = Field(default=None, description="path of the changed argument")
    answer: Count | None = Field(default=None, description="1-based answer of the agent")
    budget: str | None = Field(default=None, description="kind of budget that is exceeded")
    other: str | None = Field(default=None, description="other tool call, or other scenario")
    before: JsonValue = None
    after: JsonValue = None


class MutationResult(FrozenModel):
    """A change and whether its test noticed it."""

    mutation: Mutation
    status: MutationStatus
    noticed_by: tuple[str, ...] = Field(
        default=(), description="failed assertions and exceeded budgets, or the error"
    )


class ScenarioMutations(FrozenModel):
    """The changes of a scenario's recorded episode."""

    scenario_id: str = Field(min_length=1)
    nodeid: str
    file: str | None = None
    line: Count | None = None
    problem: CoverageProblem | None = Field(default=None, description="why it is not covered")
    reason: str | None = Field(default=None, description="the error of the unchanged recording")
    results: tuple[MutationResult, ...] = ()
    not_applicable: tuple[MutationKind, ...] = Field(
        default=(), description="kinds for which the recording has no place"
    )
    left_out: dict[MutationKind, Count] = Field(
        default_factory=dict, description="places beyond the limit for each kind"
    )

    def list_results(self, status: MutationStatus) -> tuple[MutationResult, ...]:
        """Return the changes with a status."""
        return tuple(result for result in self.results if result.status == status)


class MutationCounts(FrozenModel):
    """The number of changes of each status."""

    noticed: Count = 0
    warned: Count = 0
    unjudged: Count = 0
    unnoticed: Count = 0

    @property
    def score(self) -> float | None:
        """Share of noticed changes among those that were judged; None without any."""
        noticed = self.noticed + self.warned
        judged = noticed + self.unnoticed
        return noticed / judged if judged else None


class MutationReport(FrozenModel):
    """The file: every scenario of the recorded run, sorted by node id."""

    counts: MutationCounts
    schema_version: SchemaVersion = SCHEMA_VERSION
    suite: str = UNNAMED_SUITE
    score: Rate | None = Field(
        default=None, description="noticed changes / all but unjudged ones; unset: there are none"
    )
    scenarios: tuple[ScenarioMutations, ...] = ()
