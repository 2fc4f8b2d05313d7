"""The episode: the record of one iteration of a scenario."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol, Self, TypeVar

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from ci_agent_eval.contract.base import (
    SCHEMA_VERSION,
    Amount,
    Count,
    FrozenModel,
    Rate,
    SchemaVersion,
)
from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.evidence import (
    EVIDENCE_PARTS,
    Evidence,
    EvidencePart,
    describe_missing_evidence,
)
from ci_agent_eval.contract.faults import Fault
from ci_agent_eval.contract.measurement import (
    BudgetViolation,
    find_budget_violations,
    measure_budgets,
)
from ci_agent_eval.contract.plugin_columns import PluginColumns
from ci_agent_eval.contract.state import WatchedState
from ci_agent_eval.contract.stops import AllowedStops, StopReason, is_agent_failure
from ci_agent_eval.contract.trajectory import (
    TokenUsage,
    Trajectory,
    TrajectorySummary,
    Turn,
    sum_tokens,
    summarize_trajectory,
)

Outcome = Literal["passed", "failed", "error", "skipped"]
"""`failed` is an agent failure; `error` an infrastructure error (network, rate limit, harness)."""

Gating = Literal["required", "advisory"]
"""Whether a scenario gates the merge or only informs."""

Mode = Literal["strict", "evaluation"]
"""A strict test stops at its first failed assertion; an evaluation records all assertions."""

Severity = Literal["error", "warning"]


def _convert_array(value: Any) -> Any:
    """Convert an array of JSON, which is a list after a validator of the whole model."""
    return tuple(value) if isinstance(value, list) else value


class JudgeVote(FrozenModel):
    """One answer of a judge model, on which an assertion is based."""

    judge: str = Field(description="model of the judge")
    passed: bool
    score: Rate
    reason: str | None = None
    repeat: Count = Field(default=1, description="1-based repeat of the same question")


class Assertion(FrozenModel):
    """One checked condition, its result, and its place in the source."""

    name: str
    passed: bool
    score: Rate | None = Field(default=None, description="0 to 1; 1 or 0 by `passed` if unset")
    threshold: Rate | None = Field(
        default=None, description="score from which it passes; unset: it has none, or is unknown"
    )
    reason: str | None = None
    severity: Severity = Field(default="error", description="a warning does not fail the episode")
    file: str | None = Field(default=None, description="path relative to the repository root")
    line: Count | None = Field(default=None, description="1-based line in `file`")
    votes: Annotated[tuple[JudgeVote, ...], BeforeValidator(_convert_array)] = Field(
        default=(), description="answers of judges, if there are several"
    )

    @model_validator(mode="before")
    @classmethod
    def _score_from_passed(cls, value: Any) -> Any:
        """Score an assertion without a score as 1 or 0."""
        if isinstance(value, Mapping) and value.get("score") is None and "passed" in value:
            return {**value, "score": 1.0 if value["passed"] is True else 0.0}
        return value


class Score(FrozenModel):
    """A named figure for information; it never gates."""

    name: str
    value: float
    reason: str | None = None


class SideUsage(FrozenModel):
    """Tokens and cost of model calls other than the agent's: judges and simulated users."""

    calls: Count = 0
    tokens: TokenUsage | None = Field(
        default_factory=TokenUsage, description="unset: a call did not report them"
    )
    cost_usd: Amount | None = Field(default=None, description="unset: a call was not priced")

    def __add__(self, other: SideUsage | None) -> SideUsage:
        """Add two usages; tokens or cost are unknown if one of both does not know them."""
        if other is None:
            return self
        tokens, costs = (self.tokens, other.tokens), (self.cost_usd, other.cost_usd)
        return SideUsage(
            calls=self.calls + other.calls,
            tokens=None if None in tokens else sum_tokens(filter(None, tokens)),
            cost_usd=None if None in costs else math.fsum(filter(None, costs)),
        )


class TrafficSummary(FrozenModel):
    """Numbers of the requests to models that were seen while an episode ran."""

    requests: Count = Field(
        description="without the engine's own, of declared and PydanticAI agents; 0: none were seen"
    )
    refused: Count = Field(default=0, description="refused by a budget, or without a recording")
    failed: Count = Field(default=0, description="without an answer, or answered by an error")
    replayed: Count = Field(default=0, description="answered by a recording")
    unattributed: Count = Field(
        default=0, description="belong to one of several running episodes, unknown to which"
    )
    is_shared: bool = Field(
        default=False,
        description="a request came from outside the test's context, and was assigned to this "
        "episode because no other one ran",
    )
    unpriced_models: tuple[str, ...] = Field(default=(), description="models without a price")
    vendor_priced_models: tuple[str, ...] = Field(
        default=(),
        description="models at an unknown address, priced as those of the API's own vendor",
    )


class Instructions(FrozenModel):
    """The instructions of an agent, or the description of a tool, as a model gets them."""

    kind: Literal["agent", "tool"]
    name: str | None = Field(
        default=None, description="unset: the episode's agent, or one with an unknown name"
    )
    text: str = Field(description="of a tool: its description, then its parameters")
    recorded: str | None = Field(
        default=None, description="the text in the cassette, if a request has no recording"
    )


class Conditions(FrozenModel):
    """Conditions of an episode besides its model; the first three decide on comparisons."""

    tools: tuple[str, ...] | None = Field(default=None, description="names of the available tools")
    prices: str | None = Field(default=None, description="version of the price table")
    judge: str | None = Field(default=None, description="model of the rubric judge")
    instructions: tuple[Instructions, ...] = Field(
        default=(), description="of its agents and tools; empty: the traffic was not seen"
    )


class Episode(FrozenModel):
    """One iteration of a scenario: outcome, assertions, budgets, trajectory."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    scenario_id: str = Field(min_length=1)
    was: tuple[str, ...] = Field(default=(), description="former scenario ids")
    thread_id: str | None = None
    nodeid: str | None = Field(default=None, description="pytest's node id of the test")
    file: str | None = Field(default=None, description="path relative to the repository root")
    line: Count | None = Field(default=None, description="1-based line of the test")
    case: str | None = Field(
        default=None, description="parameters of the test, if all its cases are this scenario"
    )
    iteration: Count = Field(default=1, description="1-based repeat of the scenario")
    iterations: Count = Field(default=1, description="declared iterations of the test")
    minimum_iterations: Count | None = Field(
        default=None,
        description="iterations that always run, if `iterations` is a maximum; unset: all run",
    )
    attempt: Count = Field(default=1, description="1-based retry of the iteration")
    mode: Mode = Field(
        default="strict", description="evaluation: assertions are measured, not enforced"
    )
    gate: Gating = "required"
    min_pass_rate: Rate | None = Field(
        default=None,
        strict=True,
        description="required pass rate of the scenario; unset: the suite's",
    )
    min_passes: Count | None = Field(
        default=None, strict=True, description="passes the scenario needs, in place of a rate"
    )
    outcome: Outcome = "passed"
    reason: str | None = Field(default=None, description="why it failed, errored or was skipped")
    stop_reason: StopReason | None = Field(default=None, description="why the agent's run ended")
    allowed_stops: AllowedStops = Field(
        default=(), description="ends without an answer that do not fail this episode"
    )
    agent: str | None = None
    model: str | None = None
    rate_limited: Count = Field(default=0, description="rate-limit responses of the model's API")
    cassette_misses: Count = Field(default=0, description="calls without a recording")
    evidence: Evidence | None = Field(
        default=None,
        description="evidence it needs to pass; unset: written by hand or by another tool, any "
        "one kind of evidence is enough",
    )
    missing_evidence: tuple[EvidencePart, ...] = Field(
        default=(), description="missing evidence, which turned a pass into an error"
    )
    asserted: bool = Field(
        default=False,
        description="a plain assert, an expected exception or an assertion function passed",
    )
    assertions: tuple[Assertion, ...] = ()
    scores: tuple[Score, ...] = ()
    budgets: Budgets = Field(default_factory=Budgets)
    trajectory: Trajectory | None = None
    trajectory_summary: TrajectorySummary = Field(default_factory=TrajectorySummary)
    conditions: Conditions = Field(default_factory=Conditions)
    traffic: TrafficSummary | None = Field(
        default=None, description="unset: the model traffic was not watched"
    )
    states: tuple[WatchedState, ...] = Field(
        default=(), description="the watched databases, folders and values, with changes"
    )
    faults: tuple[Fault, ...] = Field(
        default=(), description="faults on purpose, with the number of calls that had each"
    )
    judge: SideUsage | None = Field(default=None, description="unset: no model judged it")
    simulated_user: SideUsage | None = Field(
        default=None, description="unset: no model played the user"
    )
    duration_ms: Amount | None = None
    tokens: TokenUsage | None = Field(
        default=None, description="of all turns together, where no turn has its own"
    )
    cost_usd: Amount | None = Field(
        default=None, description="of all turns together, where no turn has its own"
    )
    columns: PluginColumns = Field(
        default_factory=dict, description="values that plugins add for the reports, by name"
    )
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _derive(self) -> Self:
        """Measure budgets, summarize the trajectory, and correct a contradictory outcome."""
        derived: dict[str, object] = {}
        if self.trajectory is not None and self.trajectory.turns:
            derived["budgets"] = measure_budgets(self.budgets, self.trajectory)
            derived["trajectory_summary"] = self._build_summary(self.trajectory)
        elif self.trajectory is None and self.trajectory_summary.steps_count:
            derived["budgets"] = self._measure_from_summary()
        if not self._has_judgement():
            derived["outcome"] = "error"
            derived["reason"] = "it gives no outcome, no assertion and no measured budget"
        if self.outcome == "passed" and self._is_unfinished:
            derived["outcome"] = "failed"
            derived["reason"] = self.reason or f"the agent did not finish: {self.stop_reason}"
        if self.failed_assertions:
            # A failed assertion outweighs a later skip or error.
            derived["outcome"] = "failed"
        self._set_fields(derived)
        if missing := self.missing_evidence or self._missing_evidence():
            self._set_fields(self._fields_without_evidence(missing))
        return self

    def _set_fields(self, derived: Mapping[str, object]) -> None:
        # `model_copy` would return another object than the one being validated.
        for name, value in derived.items():
            if value is not getattr(self, name):
                object.__setattr__(self, name, value)
                self.__dict__[name] = value

    def _fields_without_evidence(self, missing: tuple[EvidencePart, ...]) -> dict[str, object]:
        """Return the fields to change if evidence is missing; a failed episode stays failed."""
        if self.outcome != "passed":
            return {}
        reason = self.reason or describe_missing_evidence(missing)
        return {"outcome": "error", "missing_evidence": missing, "reason": reason}

    def _missing_evidence(self) -> tuple[EvidencePart, ...]:
        """Return the evidence that a passing required episode lacks."""
        exceeded = any(found.hard and found.observed is not None for found in self.violations)
        passes = self.outcome == "passed" and not exceeded
        if not passes or self.gate != "required" or self.evidence == "none":
            return ()
        if self.evidence is None:
            return () if self._has_any_evidence() else EVIDENCE_PARTS
        found = {"turn": self._has_completed_turn(), "assertion": self._has_assertion()}
        return tuple(part for part in EVIDENCE_PARTS if not found[part])

    def _has_completed_turn(self) -> bool:
        if self.trajectory is None:
            counts = self.trajectory_summary
            return bool(counts.steps_count or counts.tool_calls_count)
        turns = self.trajectory.turns
        # An allowed stop, such as an exceeded context window, ends the last turn without an answer.
        if turns and self.stop_reason in self.allowed_stops:
            return True
        return any(turn.is_completed or turn.tool_calls for turn in turns)

    def _has_assertion(self) -> bool:
        return bool(self.assertions) or self.asserted or self._has_measurement()

    def _has_measurement(self) -> bool:
        return any(budget.used is not None for _, budget in self.budgets.iter_named())

    def _has_any_evidence(self) -> bool:
        """Say whether the file contains any agent activity or judgement."""
        turns = self.trajectory.turns if self.trajectory is not None else ()
        has_spent = _has_spent(self) or any(map(_has_spent, turns))
        activity = self._has_completed_turn() or has_spent
        judgement = bool(self.assertions or self.asserted or self.scores)
        return activity or judgement or self._has_amount()

    def _has_amount(self) -> bool:
        """Say whether a budget has an amount above zero; turns may be empty and do not count."""
        counted = self.trajectory is not None and self.trajectory.turns
        skipped = {"max_turns"} if counted else set()
        return any(b.used for name, b in self.budgets.iter_named() if name not in skipped)

    @property
    def is_unseen(self) -> bool:
        """Whether an agent's run ended with an answer and without any request that was seen."""
        seen = self.traffic
        is_blind = seen is not None and not seen.requests and not seen.vendor_priced_models
        return is_blind and self.stop_reason == "completed"

    @property
    def _is_unfinished(self) -> bool:
        """Whether the agent's run ended without an answer for a reason the test does not allow."""
        answered = self.trajectory is None or bool(self.trajectory.agent_turns)
        failed = is_agent_failure(self.stop_reason, answered=answered)
        return failed and self.stop_reason not in self.allowed_stops

    def _has_judgement(self) -> bool:
        """Say whether it has an outcome, an assertion or a measured budget."""
        is_judged = bool(self.assertions) or self._has_measurement()
        return "outcome" in self.model_fields_set or is_judged

    def _build_summary(self, trajectory: Trajectory) -> TrajectorySummary:
        counted = summarize_trajectory(trajectory)
        extra = self.trajectory_summary.model_extra
        return TrajectorySummary(**{**extra, **counted.model_dump()}) if extra else counted

    def _measure_from_summary(self) -> Budgets:
        """Fill unmeasured turn and tool-call budgets from the trajectory summary."""
        updates = {
            kind.name: budget.model_copy(
                update={"used": kind.measure_summary(self.trajectory_summary)}
            )
            for kind, budget in self.budgets.iter_by_kind()
            if kind.measure_summary is not None and budget.used is None
        }
        return self.budgets.model_copy(update=updates)

    @property
    def failed_assertions(self) -> tuple[Assertion, ...]:
        """Failed assertions, without warnings."""
        return tuple(a for a in self.assertions if not a.passed and a.severity == "error")

    @property
    def violations(self) -> tuple[BudgetViolation, ...]:
        """Budgets that are exceeded or not measured.

        An episode that never took a turn needs no measurement.
        """
        found = find_budget_violations(self.budgets, self.trajectory)
        turns = self.trajectory.agent_turns if self.trajectory is not None else ()
        if self.outcome in {"passed", "failed"} or (self.outcome == "error" and turns):
            return found
        return tuple(violation for violation in found if violation.observed is not None)

    @property
    def key(self) -> tuple[str, str, int, int]:
        """Identity and sort key: scenario, node id, iteration, attempt."""
        return (self.scenario_id, self.nodeid or "", self.iteration, self.attempt)

    def is_passing(self) -> bool:
        """Say whether it passed within its hard budgets."""
        return self.outcome == "passed" and not any(v.hard for v in self.violations)

    def assert_is_passing(self) -> None:
        """Raise AssertionError with every failed assertion and exceeded hard budget."""
        if self.is_passing():
            return
        parts = [f"{a.name}: {a.reason or 'failed'}" for a in self.failed_assertions]
        parts += [f"budget {describe_violation(v)}" for v in self.violations if v.hard]
        raise AssertionError(
            f"episode {self.scenario_id!r} {self.outcome}: "
            + ("; ".join(parts) or self.reason or "no reason given")
        )

    @classmethod
    def from_any(cls, value: Any) -> Episode:
        """Read an episode from an Episode, a mapping, a JSON text, or an object with `to_dict`.

        Raises pydantic's ValidationError, which names the wrong key.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, str | bytes | bytearray):
            return cls.model_validate_json(value)
        if hasattr(value, "to_dict"):
            return cls.model_validate(value.to_dict())
        return cls.model_validate(value, from_attributes=not isinstance(value, Mapping))


def _has_spent(record: Episode | Turn) -> bool:
    """Return whether tokens or costs above zero are recorded."""
    return bool((record.tokens is not None and record.tokens.total) or record.cost_usd)


def describe_violation(violation: BudgetViolation) -> str:
    """Return one line for a terminal or a failure message: name, observed, limit."""
    name = violation.budget
    if violation.measure is not None:
        name = f"{name} ({violation.measure})"
    observed = "not measured" if violation.observed is None else f"{violation.observed:g}"
    kind = "hard" if violation.hard else "soft"
    return f"{name}: {observed}, limit {violation.limit:g} ({kind})"


PassedOnRetry = Literal["passed", "flaky", "failed"]
"""Result of a test that failed and then passed on a retry; "flaky" passes and is listed."""


class _HasOutcome(Protocol):
    @property
    def outcome(self) -> Outcome: ...


_Attempt = TypeVar("_Attempt", bound=_HasOutcome)


def get_decisive_attempt(attempts: Sequence[_Attempt]) -> _Attempt:
    """Return the last attempt that passed or failed, else the last one.

    A retry that is skipped or ends in an error does not erase a failure.
    """
    judged = [attempt for attempt in attempts if attempt.outcome in {"passed", "failed"}]
    return (judged or attempts)[-1]
