"""The files between the suite and the report: journal, session, results, confirmation.

Results may have an experiment: the tests as trials on the items of a data set, as in Opik.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from ci_agent_eval.contract.base import (
    SCHEMA_VERSION,
    Amount,
    Count,
    FrozenModel,
    Rate,
    SchemaVersion,
)
from ci_agent_eval.contract.episode import Episode, Gating, Outcome, Score
from ci_agent_eval.contract.findings import SuiteStop


class ExperimentItem(FrozenModel):
    """An item of a data set; equal contents are the same item."""

    input: dict[str, JsonValue] = Field(description="the test's name, and its linked input")
    expected_output: dict[str, JsonValue] | None = None
    metadata: dict[str, JsonValue] | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The parts that are set, by their names in a data set."""
        return self.model_dump(mode="json", exclude_none=True)


class ExperimentResult(FrozenModel):
    """The result of one test."""

    nodeid: str
    outcome: Outcome
    reason: str | None = None
    item: ExperimentItem
    scores: tuple[Score, ...] = ()
    started: str = Field(description="ISO 8601, UTC")
    ended: str | None = Field(default=None, description="unset: it did not end")


class Experiment(FrozenModel):
    """One run of tests on a data set."""

    name: str
    dataset: str
    commit: str | None = None
    configuration: dict[str, JsonValue] = Field(default_factory=dict)
    results: tuple[ExperimentResult, ...] = Field(default=(), description="by node id")


def build_item(
    test_name: str,
    linked_input: object = None,
    expected_output: object = None,
    metadata: object = None,
) -> ExperimentItem:
    """Build an item as Opik's plugin does: values that are not objects are wrapped in one.

    The test's name is part of the input. All values must be JSON.
    """
    inputs = _wrap_value("input", linked_input) or {}
    return ExperimentItem(
        input={"test_name": test_name, **inputs},
        expected_output=_wrap_value("expected_output", expected_output),
        metadata=_wrap_value("metadata", metadata),
    )


def _wrap_value(name: str, value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    return dict(value) if isinstance(value, Mapping) else {name: value}


def encode_item(fields: Mapping[str, Any]) -> str:
    """Encode an item's content as text that is identical for equal contents."""
    return json.dumps(fields, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


StopCause = Literal[
    "below_required",
    "reaches_required",
    "regression",
    "no_regression",
    "inconclusive",
    "maximum",
    "not_judged",
    "undemanding",
    "budget",
    "unfinished",
]
"""Why a scenario's adaptive iterations ended.

`inconclusive`: runs of the base differ too much for further iterations to tell; `not_judged`: too
many were errors or skipped; `undemanding`: neither a required pass rate nor a baseline applies;
`budget` and `unfinished`: a budget of the suite, or something else, ended the run first.
"""


class AdaptiveStop(FrozenModel):
    """Why the adaptive iterations of a scenario ended."""

    scenario_id: str = Field(min_length=1)
    agent: str | None = None
    cause: StopCause
    required: Rate | None = Field(default=None, description="required pass rate, if one applies")


class PredictedScenario(FrozenModel):
    """The pass rate that the baseline predicts of a further run, as a beta distribution."""

    scenario_id: str = Field(min_length=1)
    agent: str | None = None
    alpha: Annotated[float, Field(gt=0)]
    beta: Annotated[float, Field(gt=0)]


class AdaptivePlan(FrozenModel):
    """The rates by which a run decides on adaptive iterations; written by `agent-eval run`."""

    min_pass_rate: Rate | None = Field(
        default=1.0, description="of required scenarios without their own; unset: none"
    )
    level: Rate = Field(default=0.025, description="significance level of all scenarios together")
    predicted: tuple[PredictedScenario, ...] = ()


RESULTS_NAME = "results.json"
SESSION_NAME = "session.json"
JOURNAL_DIR = "episodes"
JUNIT_NAME = "junit.xml"
EVAL_RESULTS_NAME = "eval-results.json"

MAX_SHARDS: Final = 9999
"""Highest number of shards of a suite."""

UNNAMED_SUITE = "default"
"""Name of results whose run named no suite."""

SessionState = Literal["running", "finished", "interrupted"]


class JournalLine(FrozenModel):
    """One line of `episodes/<worker>.jsonl`, flushed immediately.

    A `started` line already holds the complete episode in case nothing follows (outcome error,
    interrupted). The last line of each key counts.
    """

    event: Literal["started", "ended"]
    episode: Episode
    started_as: str | None = Field(
        default=None, description="scenario id of its started line, if it ended under another"
    )

    @property
    def started_key(self) -> tuple[str, str, int, int] | None:
        """The key of the started line that this line ends, if it differs from its own."""
        return None if self.started_as is None else (self.started_as, *self.episode.key[1:])


class CollectionError(FrozenModel):
    """A file or item that pytest could not collect."""

    nodeid: str
    message: str


class CollectionSkip(FrozenModel):
    """A file that pytest skipped entirely, e.g. by `pytest.importorskip`."""

    file: str = Field(description="path relative to the repository root")
    reason: str = ""


class RemovedScenario(FrozenModel):
    """Collected iterations that a hook deselected, rather than pytest's options or a shard."""

    scenario_id: str = Field(min_length=1)
    gate: Gating = "required"
    iterations: Count = 1
    by: str | None = Field(
        default=None, description="file or module that deselected them; unset: a hook did not say"
    )


class Shard(FrozenModel):
    """The part of the suite that a session ran: `index` of `count`, 1-based."""

    index: int = Field(ge=1, le=MAX_SHARDS)
    count: int = Field(ge=1, le=MAX_SHARDS)
    plan: str = Field(default="", description="hash of the split; equal for all shards of a split")
    empty: bool = Field(default=False, description="the split left nothing for this shard")
    run: str | None = Field(default=None, description="id of the workflow run")
    attempt: Count = Field(default=1, description="1-based attempt at the workflow run")

    @model_validator(mode="after")
    def _check_index(self) -> Self:
        if self.index > self.count:
            raise ValueError(f"there is no shard {self.index} of {self.count}")
        return self


class Session(FrozenModel):
    """`session.json`: the course of the whole run; all data that differs run by run is here."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    state: SessionState
    suite: str = UNNAMED_SUITE
    exit_status: int | None = Field(default=None, description="pytest's exit status")
    watched: bool = Field(
        default=False, description="a runner started pytest and will add process_status"
    )
    process_status: int | None = Field(
        default=None,
        description="exit status of pytest's process; 128 + number of the signal that ended it",
    )
    selected: Count | None = Field(
        default=None, description="episodes selected to run; of adaptive iterations the minimum"
    )
    stopped: str | None = Field(default=None, description="the limit at which pytest stopped early")
    suite_stop: SuiteStop | None = Field(
        default=None, description="the suite budget, if that limit is one"
    )
    unafforded: tuple[str, ...] = Field(
        default=(), description="required scenarios that lost iterations to that limit"
    )
    deselected: Count = Field(default=0, description="collected episodes that were not selected")
    restrictions: tuple[str, ...] = Field(
        default=(), description="command-line arguments that exclude tests, such as -k"
    )
    paths: tuple[str, ...] = Field(
        default=(), description="paths of the command line, relative to the repository root"
    )
    removed: tuple[RemovedScenario, ...] = ()
    left_out: tuple[str, ...] = Field(
        default=(), description="scenarios that the change has not affected, as they declare"
    )
    adaptive_stops: tuple[AdaptiveStop, ...] = Field(
        default=(), description="why the iterations of each adaptive scenario ended"
    )
    collection_skips: tuple[CollectionSkip, ...] = ()
    collection_errors: tuple[CollectionError, ...] = ()
    wall_time_s: Amount | None = None
    commit: str | None = None
    run: str | None = Field(default=None, description="id of the workflow run")
    attempt: Count = Field(default=1, description="1-based attempt at the workflow run")
    shard: Shard | None = None


class ListedScenario(FrozenModel):
    """A collected scenario; if several tests share it, it is listed for each of them."""

    scenario_id: str = Field(min_length=1)
    gate: Gating = "required"
    file: str | None = Field(default=None, description="path relative to the repository root")
    was: tuple[str, ...] = Field(default=(), description="former scenario ids")
    named_at_run_time: bool = Field(
        default=False, description="its test returns an episode, whose id may differ"
    )
    case: str | None = Field(
        default=None, description="parameters of the test, if all its cases are this scenario"
    )


class ScenarioListing(FrozenModel):
    """The file of `--episode-list`: the scenarios of a collection without execution."""

    session: Session
    scenarios: tuple[ListedScenario, ...] = ()


class Results(FrozenModel):
    """`results.json`: every episode of a run, sorted by key, one per line."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    suite: str = UNNAMED_SUITE
    complete: bool = Field(
        default=True, description="false: the run did not finish, or its files were not whole"
    )
    experiment: Experiment | None = Field(
        default=None, description="unset: the run was not to be an experiment"
    )
    episodes: tuple[Episode, ...] = ()


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
