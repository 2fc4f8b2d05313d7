"""The recorder of an episode, which becomes an Episode at its end.

All state is in the recorder, so that episodes may run concurrently. The clock (seconds) and
the function that finds the caller's line are parameters, so that the module does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Unpack

from ci_agent_eval.contract.budgets import Budgets, Statistic
from ci_agent_eval.contract.episode import (
    Assertion,
    Conditions,
    Episode,
    Outcome,
    Score,
    Severity,
    SideUsage,
    TrafficSummary,
)
from ci_agent_eval.contract.jsonable import clean_optional_text, clean_text, to_jsonable
from ci_agent_eval.contract.measurement import convert_to_ms
from ci_agent_eval.contract.stops import Stop, StopReason, is_agent_failure
from ci_agent_eval.contract.trajectory import (
    Attachment,
    ToolCall,
    Trajectory,
    TrajectoryAgent,
    TrajectorySummary,
    Turn,
    find_requested_model,
)
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording.budgets import (
    Clock,
    add_budget,
    add_needed_turns,
    build_budget,
    build_value,
    merge_budgets,
    note_refusals,
)
from ci_agent_eval.recording.check_value import (
    WatchedStates,
    add_location,
    build_assertions,
    build_stop_assertion,
    decide_ending,
)
from ci_agent_eval.recording.faults import EpisodeFaults, wrap_tool
from ci_agent_eval.recording.recorded_turns import (
    EpisodeUsage,
    RecordedTurns,
    build_outcome_assertion,
    find_new_parts,
    merge_condition,
)
from ci_agent_eval.recording.turn import ToolCallDetails, TurnRecorder

if TYPE_CHECKING:
    from ci_agent_eval.recording.traffic import EpisodeTraffic

Locate = Callable[[], tuple[str, int] | None]
"""Finds the test's file (relative, posix) and line that called the recorder."""


class EpisodeRecorder:
    """Records one episode: turns, checks, scores and budgets, until `finish` builds it."""

    agent: str | None
    """Name of the agent under test."""
    model: str | None
    """Model the agent runs on."""
    thread_id: str | None
    """Id of the conversation in the agent's system."""
    on_spent: Callable[[Usage], None] | None = None
    """Called with the episode's spending after each recorded event."""
    is_watched: bool = False
    """Whether the model calls of the test's code are watched."""

    def __init__(self, initial: Episode, *, clock: Clock, locate: Locate = lambda: None) -> None:
        """Start an episode from `build_initial_episode`."""
        self._initial = initial
        self.agent = self._initial.agent
        self.model = self._initial.model
        self.thread_id = self._initial.thread_id
        self.metadata: dict[str, Any] = deepcopy(self._initial.metadata)
        """Additional data of the episode; written as JSON."""
        self._budgets = self._initial.budgets
        self._locate = locate
        self.recorded_turns = RecordedTurns()
        self._assertions: list[Assertion] = []
        self._scores: list[Score] = []
        self._stop_reason: StopReason | None = None
        self._allowed_stops: frozenset[str] = frozenset(self._initial.allowed_stops)
        self._turns_needed = 0
        self.refused: list[str] = []
        """The sentences of records that were refused."""
        self._refused_before_end: int | None = None
        self._usage = EpisodeUsage()
        self._summary = TrajectorySummary()
        self._conditions = Conditions()
        self._states = WatchedStates()
        self.faults = EpisodeFaults(self._initial.faults)
        self._ended = False
        self._clock = clock
        self._stopped: float | None = None
        self._started = clock()

    def __repr__(self) -> str:
        """Return a short text: pytest shows it with each failure."""
        return f"<episode {self.scenario_id!r}, iteration {self.iteration}>"

    @property
    def scenario_id(self) -> str:
        """Id of the tested scenario."""
        return self._initial.scenario_id

    @property
    def iteration(self) -> int:
        """Number of this repeat of the scenario; 1-based."""
        return self._initial.iteration

    @property
    def attempt(self) -> int:
        """Number of this retry of the iteration; 1-based."""
        return self._initial.attempt

    @property
    def cassette_misses(self) -> int:
        """Model calls so far without a recorded answer."""
        return self._usage.cassette_misses

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns so far, without the one that is still open."""
        return self.recorded_turns.list_turns()

    @property
    def trajectory(self) -> Trajectory:
        """The turns so far, with their totals."""
        return self.recorded_turns.build_trajectory()

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Every tool call so far, in order."""
        return tuple(self.trajectory.tool_calls())

    @note_refusals
    def turn(self, message: str | None, attachments: Sequence[Attachment] = ()) -> TurnRecorder:
        """Open a turn: `with episode.turn("Hello") as turn: …`; None: the agent speaks first."""
        self._require_running("turn")
        if self.recorded_turns.open_turn is not None:
            raise InputError(
                f"episode {self.scenario_id!r}: a turn is still open; leave its `with` block first"
            )
        turn = TurnRecorder(
            message, self._clock, self._close_turn, attachments, refused=self.refused
        )
        self.recorded_turns.open(turn)
        return turn

    def _close_turn(self, turn: TurnRecorder, turns: list[Turn], stop: Stop | None) -> None:
        self.recorded_turns.close(turn, turns)
        if stop is not None:
            self.record_stop(stop.reason, stop.error)
        self.report_spending()

    def report_spending(self) -> None:
        """Report the episode's spending so far to `on_spent`."""
        if self.on_spent is not None:
            sides = Usage.from_turns((), self._usage.judge, self._usage.simulated_user)
            self.on_spent(self.recorded_turns.measure_usage() + sides)

    @note_refusals
    def tool_call(
        self,
        name: str,
        arguments: object = None,
        result: object = None,
        error: str | BaseException | None = None,
        **details: Unpack[ToolCallDetails],
    ) -> None:
        """Record a tool call in the open turn, as `TurnRecorder.tool_call`."""
        if self.recorded_turns.open_turn is None:
            raise InputError(
                f"episode {self.scenario_id!r}: tool call {name!r} outside a turn; "
                "record it inside `with episode.turn(...)`"
            )
        self.recorded_turns.open_turn.tool_call(name, arguments, result, error, **details)

    @note_refusals
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

        `passed` is a bool, a score from 0 to 1 that passes if it reaches `threshold`, or the
        result of a Check, which includes all other values. Returns whether it passed. A failed
        check of severity `warning` only warns. Raises InputError for any other value.
        """
        self._require_running(f"check {name!r}")
        found = build_assertions(
            name, passed, reason=reason, score=score, threshold=threshold, severity=severity
        )
        self._assertions += add_location(found, self._locate())
        return all(assertion.passed for assertion in found)

    @note_refusals
    def watch(self, state: object, name: str | None = None, *, ignore: Sequence[str] = ()) -> None:
        """Record what changes from now on in a function's mapping, a folder or a SQLite file.

        FinalState and StateUnchanged judge it. `ignore` has patterns of entries (`audit_log/*`) and
        fields (`*.updated_at`). A state that cannot be read raises InputError; if it is so at the
        end of the test, the episode is an error.
        """
        self._require_running("watched state")
        self._states.add(state, name, ignore)

    def wrap_tool(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a tool with the episode's faults; agents of the engine have them already."""
        return wrap_tool(self.faults, name, function)

    def record_assertion(self, assertion: Assertion) -> None:
        """Record an assertion from elsewhere, such as a failed subtest."""
        self._assertions.append(assertion)

    def record_assertions(
        self, found: Sequence[Assertion], location: tuple[str, int] | None
    ) -> None:
        """Record assertions at a file and line; None: where the test called."""
        self._assertions += add_location(found, location or self._locate())

    def merge_episode(self, episode: Episode) -> None:
        """Merge a finished episode from elsewhere into this one, with its scenario id.

        Turns, assertions and scores are added to the recorded ones; a budget that is also set
        here keeps its limit. Where and by which test it ran is not copied.
        """
        self._require_running("returned episode")
        # The content of the other episode is its evidence.
        evidence = None if self._initial.evidence == "required" else self._initial.evidence
        names = {"scenario_id": episode.scenario_id, "was": episode.was or self._initial.was}
        self._initial = self._initial.model_copy(update={**names, "evidence": evidence})
        self.recorded_turns.merge(episode.trajectory)
        self._assertions += find_new_parts(self._assertions, episode.assertions)
        self._assertions += build_outcome_assertion(episode)
        self._scores += find_new_parts(self._scores, episode.scores)
        self._budgets = merge_budgets(self._budgets, episode.budgets)
        self._summary = episode.trajectory_summary
        self._states.merge(episode.states)
        self.metadata |= episode.metadata
        self.agent = episode.agent or self.agent
        self.model = episode.model or self.model
        self.thread_id = episode.thread_id or self.thread_id
        self._stop_reason = episode.stop_reason or self._stop_reason
        self._allowed_stops |= frozenset(episode.allowed_stops)
        self._usage.merge(episode)
        self.note_conditions(**dict(episode.conditions))
        self.report_spending()

    @property
    def budgets(self) -> Budgets:
        """The current budgets."""
        return self._budgets

    @note_refusals
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
        agents: Sequence[TrajectoryAgent] = (),
        traffic: TrafficSummary | None = None,
    ) -> None:
        """Record a whole run of an agent: its turns, stop reason, delays and model traffic.

        Turns and counts of several runs add up; the episode ends with the last run's end.
        A run that needed one more turn (`needs_turn`) counts it in the budget `max_turns`.
        """
        self._require_running("run")
        self.recorded_turns.add_run(turns, agents, traffic)
        if needs_turn:
            self._turns_needed = len(self.trajectory.agent_turns) + 1
        self._allowed_stops |= frozenset(allowed_stops)
        answered = any(turn.role == "assistant" for turn in turns)
        self.record_stop(stop_reason, error, allowed_stops, answered=answered)
        self._usage.rate_limited += rate_limited
        self._usage.cassette_misses += cassette_misses
        self.report_spending()

    def record_stop(
        self,
        reason: StopReason,
        error: str | None = None,
        allowed_stops: Collection[str] = (),
        *,
        answered: bool = True,
    ) -> None:
        """Record the end of an agent's run; an end without an answer fails the episode.

        Ends in the `allowed_stops` of the episode or of this run do not fail it.
        """
        self._stop_reason = reason
        allowed = {*allowed_stops, *self._initial.allowed_stops}
        if is_agent_failure(reason, answered=answered) and reason not in allowed:
            self._assertions += add_location([build_stop_assertion(reason, error)], self._locate())

    @property
    def allowed_stops(self) -> frozenset[str]:
        """The ends without an answer that do not fail this episode."""
        return frozenset(self._initial.allowed_stops)

    @note_refusals
    def record_judge(self, usage: SideUsage, *, cassette_misses: int = 0) -> None:
        """Record the usage of a judge; a call without a price leaves the sum unknown."""
        self._require_running("judge's call")
        self._usage.cassette_misses += cassette_misses
        self._usage.judge = usage + self._usage.judge
        self.report_spending()

    @note_refusals
    def record_simulated_user(self, usage: SideUsage) -> None:
        """Record the usage of a simulated user's model."""
        self._require_running("simulated user's calls")
        self._usage.simulated_user = usage + self._usage.simulated_user
        self.report_spending()

    def note_cassette_misses(self, misses: int) -> None:
        """Set the number of model calls without a recorded answer, unless more are known."""
        self._usage.cassette_misses = max(self._usage.cassette_misses, misses)

    def note_conditions(self, **known: object) -> None:
        """Add conditions of the episode, the fields of `Conditions`.

        A field that is set again gets both values.
        """
        old = self._conditions
        new = {name: merge_condition(getattr(old, name), value) for name, value in known.items()}
        self._conditions = build_value("conditions", Conditions, **{**dict(old), **new})

    @property
    def failed_checks(self) -> tuple[Assertion, ...]:
        """The failed checks so far, without those of severity `warning`."""
        return tuple(a for a in self._assertions if not a.passed and a.severity == "error")

    @note_refusals
    def score(self, name: str, value: float, reason: str | None = None) -> None:
        """Record a number for the report; it never fails the test."""
        self._require_running(f"score {name!r}")
        values = {"name": clean_text(name), "value": value, "reason": clean_optional_text(reason)}
        self._scores.append(build_value(f"score {name!r}", Score, **values))

    @note_refusals
    def budget(
        self,
        name: str,
        limit: float,
        used: float | None = None,
        *,
        hard: bool = True,
        statistic: Statistic | None = None,
        only_if_significant: bool = False,
        unit: str | None = None,
    ) -> None:
        """Set a built-in budget, or by any other name a custom one.

        Built-in budgets, such as `max_turns` and `cost_usd`, are measured from the turns;
        `statistic` (p50 to total) is for `latency_ms`, and so is `only_if_significant`: a
        percentile is exceeded only if chance does not explain the turns above the limit. A custom
        budget needs `used`: without a measurement it counts as exceeded. Set again, or over one
        of the marker, a budget keeps the lower limit and the larger `used`.
        """
        self._require_running(f"budget {name!r}")
        latency = {"statistic": statistic, "only_if_significant": only_if_significant or None}
        budget = build_budget(name, limit=limit, used=used, hard=hard, unit=unit, **latency)
        self._budgets = add_budget(self._budgets, clean_text(name), budget)

    def stop(self) -> None:
        """Stop the clock: the test has ended, and `finish` is called later."""
        self._stopped = self._clock()
        self._states.end()

    def finish(
        self,
        outcome: Outcome = "passed",
        reason: str | None = None,
        *,
        failed_assertion: Assertion | None = None,
        asserted: bool = False,
    ) -> Episode:
        """Build the Episode; nothing can be recorded afterwards.

        A failed check makes any outcome `failed`, and the reason then names both. A budget
        never changes the outcome. `asserted`: a plain assert passed.
        """
        ended = self._clock() if self._stopped is None else self._stopped
        duration = convert_to_ms(ended - self._started)
        unentered_message = self.recorded_turns.end_open_turn()
        if (traffic := self.recorded_turns.traffic) is not None and not self._ended:
            self._record_traffic_end(traffic)
        if outcome == "passed" and not self._ended:
            self._assertions += self.faults.list_missed(self._conditions.tools, self.tool_calls)
        self._ended = True
        if self._refused_before_end is None:
            self._refused_before_end = len(self.refused)
        assertions = [*self._assertions, *([failed_assertion] if failed_assertion else [])]
        ending = decide_ending(
            outcome,
            reason,
            failed_checks=self.failed_checks,
            unentered_message=unentered_message,
            unreadable_state=self._states.end(),
        )
        return self._build_episode(
            assertions=assertions, asserted=asserted, duration_ms=duration, **ending
        )

    def snapshot(self) -> Episode:
        """Build the episode as recorded so far, without an open turn."""
        outcome: Outcome = "failed" if self.failed_checks else "passed"
        # Its evidence may not be recorded yet.
        return self._build_episode(outcome=outcome, assertions=[*self._assertions], evidence="none")

    def _build_episode(self, **ending: object) -> Episode:
        trajectory = self.trajectory
        return build_value(
            f"episode {self.scenario_id!r}",
            Episode.model_validate,
            obj={
                **dict(self._initial),
                "agent": clean_optional_text(self.agent),
                "model": clean_optional_text(self.model),
                "thread_id": clean_optional_text(self.thread_id),
                "metadata": to_jsonable(self.metadata),
                "budgets": add_needed_turns(self._budgets, self._turns_needed),
                "allowed_stops": self._allowed_stops,
                "scores": self._scores,
                "trajectory": trajectory if trajectory.turns else None,
                "trajectory_summary": self._summary,
                "stop_reason": self._stop_reason,
                **vars(self._usage),
                "conditions": self._conditions,
                "traffic": self.recorded_turns.summarize_traffic(is_watched=self.is_watched),
                "states": self._states.compare(),
                "faults": self.faults.list_faults(),
                **ending,
            },
        )

    def _record_traffic_end(self, traffic: EpisodeTraffic) -> None:
        """Record the model, the conditions, and why the agent did not finish, if it did not."""
        self.model = self.model or find_requested_model(self.turns)
        self.note_conditions(**traffic.list_conditions())
        if (stop := self.recorded_turns.find_traffic_stop()) is not None:
            needs_turn = stop.reason == "max_turns"
            self.record_run((), stop_reason=stop.reason, error=stop.error, needs_turn=needs_turn)

    @property
    def late_refusals(self) -> list[str]:
        """The sentences of records that were refused because the episode had ended."""
        return self.refused[self._refused_before_end :] if self._ended else []

    def list_problems(self) -> list[str]:
        """Return why the record is incomplete, also where the test or its agent caught the error.

        These are the first record that was refused, and a model that gave no complete answer.
        """
        stop = self.recorded_turns.find_traffic_stop()
        is_outage = stop is not None and stop.reason == "model_error"
        return [*self.refused[:1], *([stop.sentence] if stop and is_outage else [])]

    def _require_running(self, subject: str) -> None:
        if self._ended:
            raise InputError(
                f"episode {self.scenario_id!r} has ended: record the {subject} "
                "before the test returns"
            )
