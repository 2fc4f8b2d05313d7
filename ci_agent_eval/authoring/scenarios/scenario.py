"""The scenario that a test gets: it runs an app and applies the checks of its file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakSet

from ci_agent_eval.authoring.scenarios.parts import ScenarioParts
from ci_agent_eval.authoring.simulation.awaiting import get_active_recorder, run_or_defer
from ci_agent_eval.authoring.simulation.judge import apply_checks
from ci_agent_eval.authoring.simulation.result import STOP_TOKEN, History, SimulationResult
from ci_agent_eval.authoring.simulation.run import find_max_turns, simulate_conversation
from ci_agent_eval.authoring.simulation.script import Predicate, SimulationPlan
from ci_agent_eval.authoring.simulation.user import SimulatedUser
from ci_agent_eval.checks import (
    ArgumentsHold,
    Check,
    ForbiddenText,
    ForbiddenTools,
    OrderedTools,
    RequiredText,
    RequiredTools,
    ToolCallLimits,
)
from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.contract.scenario import ScenarioChecks, ScenarioEntry, ScenarioGoal
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

_CHECKED_EPISODES: WeakSet[EpisodeRecorder] = WeakSet()
"""The episodes whose scenario has run and has been checked."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario of a file."""

    entry: ScenarioEntry
    """The scenario's keys in the file."""
    file: str
    line: int
    """First line, from 1."""
    parts: ScenarioParts = field(default_factory=ScenarioParts)
    """Its steps, judge and checks by name."""

    @property
    def id(self) -> str:
        """The scenario's id."""
        return self.entry.id

    @property
    def persona(self) -> str:
        """Description of the user who talks to the agent."""
        return self.entry.persona

    @property
    def goal(self) -> str | None:
        """The user's goal as a sentence."""
        return self.entry.goal.text

    @property
    def budgets(self) -> Budgets:
        """The budgets of an episode."""
        return self.entry.budgets

    @property
    def metadata(self) -> dict[str, Any]:
        """Additional data of the file."""
        return dict(self.entry.metadata)

    @property
    def max_turns(self) -> int:
        """The limit of exchanges: the scenario's, its budget's, or Opik's default of 5."""
        return self.entry.max_turns or find_max_turns(self.entry.budgets)

    @property
    def user(self) -> SimulatedUser | None:
        """The simulated user, a new one at each access; None if the steps have every message.

        One with private facts is needed for these, too.
        """
        entry = self.entry
        if not entry.has_user and not entry.private_facts:
            return None
        return SimulatedUser(
            entry.persona,
            entry.model,
            entry.fixed_responses or None,
            entry.script if entry.has_user else (),
            entry.max_history_messages,
            goal=entry.goal.text,
            private_facts=entry.private_facts,
            stop_token=entry.stop_token or STOP_TOKEN,
        )

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks of the file, for the whole conversation."""
        return (*build_checks(self.entry.checks), *self.parts.expect)

    @property
    def marker(self) -> dict[str, Any]:
        """The arguments of the marker `episode`; only those that are set."""
        entry = self.entry
        given = {
            "scenario_id": entry.id,
            "budgets": entry.budgets.model_dump(exclude_none=True, exclude_defaults=True) or None,
            "gate": entry.gate,
            "min_pass_rate": entry.min_pass_rate,
            "min_passes": entry.min_passes,
            "iterations": entry.iterations,
            "allowed_stops": entry.allowed_stops or None,
            "faults": entry.faults or None,
            "depends_on": entry.depends_on or None,
            "metadata": {**entry.metadata, "scenario": f"{self.file}:{self.line}"},
        }
        return {name: value for name, value in given.items() if value is not None}

    def run(
        self,
        app: Any,
        *,
        max_turns: int | None = None,
        thread_id: str | None = None,
        project_name: str | None = None,
        stop_when: Predicate | None = None,
        **app_kwargs: Any,
    ) -> SimulationResult:
        """Let the scenario's user talk to an app, then apply the checks of the file.

        As with `run_simulation`, `await` it in an async test. Failed checks fail the test at
        its end. Raises InputError outside of an episode.
        """
        plan = SimulationPlan(
            initial_message=self.entry.initial_message,
            max_turns=self.max_turns if max_turns is None else max_turns,
            thread_id=thread_id,
            project_name=project_name,
            tags=self.entry.tags,
            stop_when=stop_when,
            steps=self.parts.steps,
            judge=self.parts.judge,
            location=(self.file, self.line),
            app_kwargs=app_kwargs,
        )
        return run_or_defer("scenario.run", self.simulate(app, plan))

    async def simulate(self, app: Any, plan: SimulationPlan) -> SimulationResult:
        """Run the simulation and the checks; see `run`."""
        recorder = get_active_recorder()
        if recorder is None:
            raise InputError(
                f"scenario {self.id!r}: it runs in an episode only; let a test have it by "
                "@scenarios, or mark the test with @pytest.mark.episode"
            )
        result = await simulate_conversation(app, self.user, self._add_goal(plan, recorder))
        checked = await apply_checks(self.checks, recorder.snapshot())
        for assertion in [*self._assert_ending(result), *checked]:
            place = {"file": self.file, "line": self.line}
            recorder.record_assertion(assertion.model_copy(update=place))
        _CHECKED_EPISODES.add(recorder)
        return result

    def was_checked(self, recorder: EpisodeRecorder) -> bool:
        """Return whether the scenario was checked in this episode, or has nothing to check."""
        own = self.checks or self.entry.goal.conditions or self.parts.has_checks
        return recorder in _CHECKED_EPISODES or not own

    def _assert_ending(self, result: SimulationResult) -> Iterator[Assertion]:
        """Yield the assertions about the end of the conversation."""
        if wanted := self.entry.goal.conditions:
            named = ", ".join(f"{name} {value!r}" for name, value in wanted.items())
            reached = result.stop_reason == "goal_reached"
            ended = f"the conversation ended ({result.stop_reason}) without {named}"
            reason = f"{named}, in {result.turns} turns" if reached else ended
            yield Assertion(name="reaches the user's goal", passed=reached, reason=reason)
        if result.stop_reason == "off_script":
            yield Assertion(name="stays on the script", passed=False, reason=result.detail)
        if result.stop_reason == "agent_stopped":
            yield Assertion(name="comes to an answer", passed=False, reason=result.detail)

    def _add_goal(self, plan: SimulationPlan, recorder: EpisodeRecorder) -> SimulationPlan:
        goal = self.entry.goal
        if not goal.conditions:
            return plan

        replies: list[str] = []

        def is_reached(history: History) -> bool:
            replies.append(history[-1]["content"])  # other messages may be injected ones
            return _is_goal_reached(goal, replies, {call.name for call in recorder.tool_calls})

        return replace(plan, goal=is_reached)


def _is_goal_reached(goal: ScenarioGoal, replies: Iterable[str], called: set[str]) -> bool:
    """Return whether every condition of a goal is met so far."""
    if goal.tool_called is not None and goal.tool_called not in called:
        return False
    if goal.reply_matches is None:
        return True
    pattern = re.compile(goal.reply_matches, re.IGNORECASE)
    return any(pattern.search(reply) for reply in replies)


_TOOL_CHECKS: dict[str, Callable[[tuple[str, ...]], Check]] = {
    "required_tools": RequiredTools,
    "forbidden_tools": ForbiddenTools,
    "ordered_tools": OrderedTools,
}


def build_checks(given: ScenarioChecks) -> Iterator[Check]:
    """Yield a check for each key that is set; one for each single text and pattern."""
    for name, kind in _TOOL_CHECKS.items():
        if tools := getattr(given, name):
            yield kind(tools)
    yield from (RequiredText(texts=text) for text in given.required_text)
    yield from (RequiredText(patterns=pattern) for pattern in given.required_patterns)
    yield from (ForbiddenText(texts=text) for text in given.forbidden_text)
    yield from (ForbiddenText(patterns=pattern) for pattern in given.forbidden_patterns)
    for tool, arguments in given.arguments.items():
        yield ArgumentsHold(tool, arguments)
    if given.tool_limits or given.max_tool_calls is not None:
        yield ToolCallLimits(given.max_tool_calls, given.tool_limits)
