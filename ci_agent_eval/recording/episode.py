"""The recorder: what a test tells about its episode, turned into an Episode.

All state is in the recorder itself, so that episodes may run side by side. The clock
(seconds) and the way to find the caller's line are given, so that nothing is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from typing import Any, Unpack

from ci_agent_eval.contract.budgets import Budget, Budgets, Statistic, get_budget_class
from ci_agent_eval.contract.episode import (
    Assertion,
    Conditions,
    Episode,
    Outcome,
    Score,
    Severity,
    SideUsage,
)
from ci_agent_eval.contract.evidence import EvidencePart
from ci_agent_eval.contract.jsonable import clean_text, to_jsonable
from ci_agent_eval.contract.measurement import convert_to_ms
from ci_agent_eval.contract.stops import AGENT_FINISHED, StopCause, StopReason, is_agent_failure
from ci_agent_eval.contract.trajectory import (
    TokenUsage,
    ToolCall,
    Trajectory,
    TrajectorySummary,
    Turn,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording.check_value import add_location, build_assertions
from ci_agent_eval.recording.failure_reasons import describe_failed_checks, describe_unentered_turn
from ci_agent_eval.recording.initial_episode import EpisodeFields, build_initial_episode
from ci_agent_eval.recording.merge import (
    add_needed_turns,
    add_usage,
    build_outcome_assertion,
    find_new_parts,
    merge_budgets,
)
from ci_agent_eval.recording.spending import sum_spending
from ci_agent_eval.recording.turn import TurnRecorder
from ci_agent_eval.recording.validation import Clock, build_value
from ci_agent_eval.storage.ledger.limits import RunUsage

Locate = Callable[[], tuple[str, int] | None]
"""Finds the test's file (relative, posix) and line that called the recorder."""


class EpisodeRecorder:
    """Records one episode: turns, checks, scores and budgets, until `finish` freezes it."""

    agent: str | None
    """Name of the agent under test."""
    model: str | None
    """Model the agent runs on."""
    thread_id: str | None
    """Id of the conversation in the agent's own system."""
    on_spent: Callable[[RunUsage], None] | None = None
    """Told what the episode has spent so far, each time that something is recorded."""

    def __init__(
        self,
        scenario_id: str,
        *,
        clock: Clock,
        locate: Locate = lambda: None,
        **fields: Unpack[EpisodeFields],
    ) -> None:
        self._begin(build_initial_episode(scenario_id, **fields), clock, locate)

    def _begin(self, draft: Episode, clock: Clock, locate: Locate) -> None:
        self._draft = draft
        self.agent = self._draft.agent
        self.model = self._draft.model
        self.thread_id = self._draft.thread_id
        self._metadata: dict[str, Any] = deepcopy(self._draft.metadata)
        self._budgets = self._draft.budgets
        self._locate = locate
        self._turns: list[Turn] = []
        self._assertions: list[Assertion] = []
        self._scores: list[Score] = []
        self._stop_reason: StopReason | None = None
        self._allowed_stops: frozenset[str] = frozenset(self._draft.allowed_stops)
        self._turns_needed = 0
        self._rate_limited = 0
        self._cassette_misses = 0
        self._judge: SideUsage | None = None
        self._user: SideUsage | None = None
        self._summary = TrajectorySummary()
        self._conditions = Conditions()
        self._open: TurnRecorder | None = None
        self._ended = False
        self._clock = clock
        self._stopped: float | None = None
        self._started = clock()

    @classmethod
    def from_initial_episode(
        cls, draft: Episode, *, clock: Clock, locate: Locate = lambda: None
    ) -> EpisodeRecorder:
        """Record the episode that `draft_episode` drew up."""
        recorder = cls.__new__(cls)
        recorder._begin(draft, clock, locate)  # noqa: SLF001 - its own; the draft is checked already
        return recorder

    @property
    def scenario_id(self) -> str:
        """What is tested."""
        return self._draft.scenario_id

    @property
    def iteration(self) -> int:
        """Which repeat of the scenario this is; 1-based."""
        return self._draft.iteration

    @property
    def attempt(self) -> int:
        """Which retry of the iteration this is; 1-based."""
        return self._draft.attempt

    @property
    def cassette_misses(self) -> int:
        """Model calls so far that no recording answered."""
        return self._cassette_misses

    @property
    def metadata(self) -> dict[str, Any]:
        """Anything else to keep with the episode; written as JSON."""
        return self._metadata

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns so far, without the one that is still open."""
        return tuple(self._turns)

    @property
    def trajectory(self) -> Trajectory:
        """The turns so far, with their totals."""
        return Trajectory(turns=self.turns)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Every tool call so far, in order."""
        return tuple(self.trajectory.tool_calls())

    def turn(self, message: str) -> TurnRecorder:
        """Open a turn: `with episode.turn("Hello") as turn: …`."""
        self._must_be_running("turn")
        if self._open is not None:
            raise InputError(
                f"episode {self.scenario_id!r}: a turn is still open; leave its `with` block first"
            )
        self._open = TurnRecorder(message, self._clock, self._keep)
        return self._open

    def _keep(self, turns: list[Turn], stop: StopCause | None) -> None:
        self._turns += turns
        self._open = None
        if stop is not None:
            self.record_stop(stop.reason, stop.error)
        self._report_spending()

    def _report_spending(self) -> None:
        if self.on_spent is not None:
            self.on_spent(sum_spending(self._turns, self._judge, self._user))

    def tool_call(
        self,
        name: str,
        arguments: object = None,
        result: object = None,
        error: str | BaseException | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the contract's word for it
        duration_ms: float | None = None,
        steered_by: str | None = None,
    ) -> None:
        """Record a tool call in the turn that is open."""
        if self._open is None:
            raise InputError(
                f"episode {self.scenario_id!r}: tool call {name!r} outside a turn; "
                "record it inside `with episode.turn(...)`"
            )
        self._open.tool_call(
            name,
            arguments,
            result,
            error,
            id=id,
            duration_ms=duration_ms,
            steered_by=steered_by,
        )

    def check(
        self,
        name: str,
        passed: object,
        reason: str | None = None,
        *,
        score: float | None = None,
        threshold: float | None = None,
        severity: Severity = "error",
    ) -> bool:
        """Record an assertion and go on; a failed one fails the test at its end.

        `passed` is True or False; or with `threshold` a number from 0 to 1, which passes from
        it on; or what a Check found, which brings everything else with it. Returns whether it
        passed. A failed check of severity `warning` only warns. Raises InputError for a value
        that is none of these.
        """
        self._must_be_running(f"check {name!r}")
        found = build_assertions(
            name, passed, reason=reason, score=score, threshold=threshold, severity=severity
        )
        self._assertions += add_location(found, self._locate())
        return all(assertion.passed for assertion in found)

    def keep(self, assertion: Assertion) -> None:
        """Record an assertion that was made elsewhere, such as a failed subtest."""
        self._assertions.append(assertion)

    def merge_episode(self, episode: Episode) -> None:
        """Take in an episode that was made elsewhere: its name, and all that is in it.

        Turns, assertions and scores are added to those that were recorded here; of a budget
        that is set here, too, the limit stays. Who ran it, and where, is not taken over.
        """
        self._must_be_running("returned episode")
        # What was made elsewhere is judged by what it contains.
        evidence = None if self._draft.evidence == "required" else self._draft.evidence
        names = {"scenario_id": episode.scenario_id, "was": episode.was or self._draft.was}
        self._draft = self._draft.model_copy(update={**names, "evidence": evidence})
        turns = () if episode.trajectory is None else episode.trajectory.turns
        self._turns += find_new_parts(self._turns, turns)
        self._assertions += find_new_parts(self._assertions, episode.assertions)
        self._assertions += build_outcome_assertion(episode)
        self._scores += find_new_parts(self._scores, episode.scores)
        self._budgets = merge_budgets(self._budgets, episode.budgets)
        self._summary = episode.trajectory_summary
        self._metadata |= episode.metadata
        self.agent = episode.agent or self.agent
        self.model = episode.model or self.model
        self.thread_id = episode.thread_id or self.thread_id
        self._stop_reason = episode.stop_reason or self._stop_reason
        self._allowed_stops |= frozenset(episode.allowed_stops)
        self._rate_limited = max(self._rate_limited, episode.rate_limited)
        self._cassette_misses = max(self._cassette_misses, episode.cassette_misses)
        if episode.judge is not self._judge:
            self._judge = add_usage(self._judge, episode.judge)
        if episode.simulated_user is not self._user:
            self._user = add_usage(self._user, episode.simulated_user)
        self.note_conditions(**dict(episode.conditions))
        self._report_spending()

    @property
    def budgets(self) -> Budgets:
        """The budgets as they are set now."""
        return self._budgets

    def record_run(
        self,
        turns: Sequence[Turn],
        *,
        stop_reason: StopReason,
        error: str | None = None,
        allowed_stops: Collection[str] = (),
        needs_turn: bool = False,
        rate_limited: int = 0,
        cassette_misses: int = 0,
    ) -> None:
        """Record a whole run of an agent: its turns, why it ended, what held it up.

        Of several runs the turns and counts add up, and the last one's end is the episode's.
        A run that needed one more turn (`needs_turn`) counts it in the budget `max_turns`.
        """
        self._must_be_running("run")
        self._turns += turns
        if needs_turn:
            self._turns_needed = len(self.trajectory.agent_turns) + 1
        self._allowed_stops |= frozenset(allowed_stops)
        answered = any(turn.role == "assistant" for turn in turns)
        self.record_stop(stop_reason, error, allowed_stops, answered=answered)
        self._rate_limited += rate_limited
        self._cassette_misses += cassette_misses
        self._report_spending()

    def record_stop(
        self,
        reason: StopReason,
        error: str | None = None,
        allowed_stops: Collection[str] = (),
        *,
        answered: bool = True,
    ) -> None:
        """Record why a run of the agent ended; an end without an answer fails the episode.

        Ends that the episode allows, or this run (`allowed_stops`), do not fail it.
        """
        self._stop_reason = reason
        allowed = {*allowed_stops, *self._draft.allowed_stops}
        if is_agent_failure(reason, answered=answered) and reason not in allowed:
            said = f"{reason}: {clean_text(error)}" if error else reason
            file, line = self._locate() or (None, None)
            self.keep(
                Assertion(name=AGENT_FINISHED, passed=False, reason=said, file=file, line=line)
            )

    @property
    def allowed_stops(self) -> frozenset[str]:
        """The ends without an answer that do not fail this episode."""
        return frozenset(self._draft.allowed_stops)

    def record_judge(
        self, tokens: TokenUsage, cost_usd: float | None, *, cassette_misses: int = 0
    ) -> None:
        """Record what a call of a judge's model took; an unpriced call leaves the sum unknown."""
        self._must_be_running("judge's call")
        self._cassette_misses += cassette_misses
        values = {"calls": 1, "tokens": tokens, "cost_usd": cost_usd}
        call = build_value("judge's call", SideUsage, **values)
        self._judge = add_usage(self._judge, call)
        self._report_spending()

    def record_simulated_user(
        self, calls: int, tokens: TokenUsage | None, cost_usd: float | None
    ) -> None:
        """Record what a model took to speak for the user; None: a call did not tell."""
        self._must_be_running("simulated user's calls")
        values = {"calls": calls, "tokens": tokens, "cost_usd": cost_usd}
        used = build_value("simulated user's calls", SideUsage, **values)
        self._user = add_usage(self._user, used)
        self._report_spending()

    def note_conditions(self, **known: object) -> None:
        """Say what the episode runs under: `tools`, `prices`, `judge`, as in `Conditions`.

        Names that are said again are put together.
        """
        said = {
            name: _merge_condition(getattr(self._conditions, name), known[name]) for name in known
        }
        self._conditions = build_value(
            "conditions", Conditions, **{**dict(self._conditions), **said}
        )

    @property
    def failed_checks(self) -> tuple[Assertion, ...]:
        """The checks so far that failed and are no warnings."""
        return tuple(a for a in self._assertions if not a.passed and a.severity == "error")

    def score(self, name: str, value: float, reason: str | None = None) -> None:
        """Record a figure that informs and never fails the test."""
        self._must_be_running(f"score {name!r}")
        values = {"name": clean_text(name), "value": value, "reason": _clean_optional_text(reason)}
        self._scores.append(build_value(f"score {name!r}", Score, **values))

    def budget(
        self,
        name: str,
        limit: float,
        used: float | None = None,
        *,
        hard: bool = True,
        statistic: Statistic | None = None,
        unit: str | None = None,
    ) -> None:
        """Set a budget: one that is measured by itself, or by any other name one of your own.

        The budgets that every episode may have, such as `max_turns` and `cost_usd`, are
        measured from the turns; `statistic` (p50 to total) is for `latency_ms`. A budget of
        your own needs `used`: without a measurement it counts as exceeded.
        """
        self._must_be_running(f"budget {name!r}")
        values: dict[str, Any] = {"limit": limit, "used": used, "hard": hard}
        values |= {} if unit is None else {"unit": unit}
        values |= {} if statistic is None else {"statistic": statistic}
        budget = build_value(f"budget {name!r}", get_budget_class(name).model_validate, obj=values)
        self._budgets = _add_budget(self._budgets, clean_text(name), budget)

    def stop(self) -> None:
        """Count no time from now on: the test has ended, and is judged later."""
        self._stopped = self._clock()

    def finish(
        self,
        outcome: Outcome = "passed",
        reason: str | None = None,
        *,
        failed_assertion: Assertion | None = None,
        asserted: bool = False,
    ) -> Episode:
        """Freeze what was recorded into an Episode; nothing can be recorded afterwards.

        A failed check makes any outcome `failed`, and the reason then says both. A budget
        never changes it.
        `asserted` says that a plain assert passed.
        """
        ended = self._clock() if self._stopped is None else self._stopped
        duration = convert_to_ms(ended - self._started)
        lost = None if self._open is None or self._open.is_entered else self._open
        if self._open is not None and lost is None:
            self._open.close(broken=True)
        self._ended = True
        assertions = [*self._assertions, *([failed_assertion] if failed_assertion else [])]
        missing: tuple[EvidencePart, ...] = ()
        if self.failed_checks:
            reason = describe_failed_checks(self.failed_checks, outcome, reason)
            outcome = "failed"
        elif lost is not None and outcome == "passed":
            missing, reason = ("turn",), describe_unentered_turn(lost.message)
        return self._build_episode(
            outcome=outcome,
            reason=reason,
            assertions=assertions,
            asserted=asserted,
            missing_evidence=missing,
            duration_ms=duration,
        )

    def snapshot(self) -> Episode:
        """Return the episode as it is so far, without a turn that is still open."""
        outcome: Outcome = "failed" if self.failed_checks else "passed"
        # Its evidence may be still to come.
        return self._build_episode(
            outcome=outcome, assertions=list(self._assertions), evidence="none"
        )

    def _build_episode(self, **ending: object) -> Episode:
        return build_value(
            f"episode {self.scenario_id!r}",
            Episode.model_validate,
            obj={
                **dict(self._draft),
                "agent": _clean_optional_text(self.agent),
                "model": _clean_optional_text(self.model),
                "thread_id": _clean_optional_text(self.thread_id),
                "metadata": to_jsonable(self.metadata),
                "budgets": add_needed_turns(self._budgets, self._turns_needed),
                "allowed_stops": self._allowed_stops,
                "scores": self._scores,
                "trajectory": self.trajectory if self._turns else None,
                "trajectory_summary": self._summary,
                "stop_reason": self._stop_reason,
                "rate_limited": self._rate_limited,
                "cassette_misses": self._cassette_misses,
                "judge": self._judge,
                "simulated_user": self._user,
                "conditions": self._conditions,
                **ending,
            },
        )

    def _must_be_running(self, what: str) -> None:
        if self._ended:
            raise InputError(
                f"episode {self.scenario_id!r} has ended: record the {what} before the test returns"
            )


def _add_budget(budgets: Budgets, name: str, budget: Budget) -> Budgets:
    if name in Budgets.model_fields and name != "custom":
        return budgets.model_copy(update={name: budget})
    return budgets.model_copy(update={"custom": {**budgets.custom, name: budget}})


def _merge_condition(old: object, new: object) -> object:
    """Put together what two runs of one episode say of the same thing."""
    if old is None or new is None or old == new:
        return old if new is None else new
    if isinstance(old, tuple) and isinstance(new, tuple):
        return tuple(sorted({*old, *new}))
    return ", ".join(sorted({*str(old).split(", "), str(new)}))


def _clean_optional_text(value: object) -> str | None:
    return None if value is None else clean_text(str(value))
