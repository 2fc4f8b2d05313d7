"""Limits of a run: turns, tool calls, tokens, cost and time.

PydanticAI's `UsageLimits` limit the turns. The other limits are checked here, because its
tool-call limit counts only successful calls, and because it warns (which `-W error` turns
into a failure) if tokens or cost were not measured; a budget then reads "not measured".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import NonNegativeInt, PositiveInt

from ci_agent_eval.contract.budget_kinds import BUDGET_KINDS
from ci_agent_eval.contract.budgets import Budget, Budgets
from ci_agent_eval.contract.fields import NonNegativeNumber, validate_fields
from ci_agent_eval.contract.stops import Stop
from ci_agent_eval.contract.trajectory import TestRunExtent, Trajectory
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.errors import missing_package_error
from ci_agent_eval.steering.policy.model import Steer, ToolCallRequest
from ci_agent_eval.steering.policy.settings import SteeringSettings

if TYPE_CHECKING:
    from ci_agent_eval.steering.policy.reactor import CallKind, Reactor
    from ci_agent_eval.steering.store import SteeringStore


Clock = Callable[[], float]
"""Monotonic seconds from any fixed point."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of a run; None: no limit."""

    max_turns: PositiveInt | None = None
    tool_calls: NonNegativeInt | None = None
    tokens: NonNegativeInt | None = None
    """Input plus output of all turns."""
    cost_usd: NonNegativeNumber | None = None

    def __post_init__(self) -> None:
        validate_fields(self)

    @classmethod
    def from_budgets(cls, budgets: Budgets) -> RunLimits:
        """Convert the hard budgets of an episode; a run that exceeds them has failed."""
        turns, calls = _get_hard_limit(budgets.max_turns), _get_hard_limit(budgets.tool_calls)
        tokens = _get_hard_limit(budgets.token_usage)
        return cls(
            max_turns=None if turns is None else max(int(turns), 1),
            tool_calls=None if calls is None else int(calls),
            tokens=None if tokens is None else int(tokens),
            cost_usd=_get_hard_limit(budgets.cost_usd),
        )

    def subtract_turns(self, trajectory: Trajectory) -> RunLimits:
        """Return the remaining limits after the turns of earlier runs."""
        calls = sum(1 for _ in trajectory.tool_calls())
        turns = _subtract_used(self.max_turns, len(trajectory.agent_turns))
        tool_calls = _subtract_used(self.tool_calls, calls)
        tokens = _subtract_used(self.tokens, trajectory.total_tokens)
        return RunLimits(
            # A run needs one turn to report that none is left.
            max_turns=None if turns is None else max(int(turns), 1),
            tool_calls=None if tool_calls is None else int(tool_calls),
            tokens=None if tokens is None else int(tokens),
            cost_usd=_subtract_used(self.cost_usd, trajectory.cost_usd),
        )


def _subtract_used(limit: float | None, used: float | None) -> float | None:
    return None if limit is None else max(limit - (used or 0), 0)


def _get_hard_limit(budget: Budget | None) -> float | None:
    return budget.limit if budget is not None and budget.hard else None


_STOPS = {kind.name: kind.stop_reason for kind in BUDGET_KINDS if kind.stop_reason is not None}


def _build_stop(budget: str, error: str) -> Stop:
    return Stop(_STOPS[budget], error)


def find_exceeded_limit(limits: RunLimits, usage: Usage) -> Stop | None:
    """Return the stop of the first exceeded limit, if any."""
    if limits.tokens is not None and usage.tokens > limits.tokens:
        return _build_stop(
            "token_usage", f"it used {usage.tokens} tokens, its limit is {limits.tokens}"
        )
    if limits.cost_usd is not None and usage.cost_usd > limits.cost_usd:
        cost, limit = f"${usage.cost_usd:.6g}", f"${limits.cost_usd:g}"
        return _build_stop("cost_usd", f"it cost {cost}, its limit is {limit}")
    if limits.tool_calls is not None and usage.tool_calls > limits.tool_calls:
        return _build_stop(
            "tool_calls",
            f"it asked for {usage.tool_calls} tool calls, its limit is {limits.tool_calls}",
        )
    return None


@dataclass
class PausableDeadline:
    """Pauses a deadline while the run waits for a rate limit."""

    deadline: asyncio.Timeout
    _remaining_s: float | None = None

    def set_waiting(self, is_waiting: bool) -> None:
        """Pause the deadline, or resume it with the remaining time."""
        now = asyncio.get_running_loop().time()
        when = self.deadline.when()
        if self.deadline.expired():
            return
        if is_waiting and when is not None:
            self._remaining_s = when - now
            self.deadline.reschedule(None)
        elif not is_waiting and self._remaining_s is not None:
            self.deadline.reschedule(now + self._remaining_s)
            self._remaining_s = None

    @contextmanager
    def exclude_wait(self) -> Iterator[None]:
        """Pause the deadline in the `with` block."""
        self.set_waiting(True)
        try:
            yield
        finally:
            self.set_waiting(False)


_GRAMMAR_MODULES = ("tree_sitter", "tree_sitter_bash")


@dataclass
class LatestTestRun:
    """A ledger that knows the extent of the latest call's test run."""

    extent: TestRunExtent | None = None

    def record_call(self, session: str, kind: CallKind, now: float) -> None:  # noqa: ARG002 - a CallLedger
        """Set the extent of a call."""
        self.extent = "targeted" if kind == "targeted" else "full"


@dataclass(frozen=True)
class Guard:
    """Reviews the calls of one episode over all of its runs."""

    reactor: Reactor
    memory: SteeringStore
    session: str
    clock: Clock
    test_run: LatestTestRun
    """The test run of the call that was reviewed last."""

    def review(self, call: ToolCallRequest, answer: object) -> Steer | None:
        """Return the steer of a held-back call, or None; `answer` identifies its response."""
        self.memory.find_answer = lambda: answer
        self.test_run.extent = None
        decision = self.reactor.review(call, self.session, self.clock())
        return decision if isinstance(decision, Steer) else None


def build_guard(settings: SteeringSettings, episode_id: str, clock: Clock) -> Guard | None:
    """Build the guard of an episode; None if the settings hold back nothing.

    Raises InputError if the shells' grammar is not installed.
    """
    if not (settings.enabled or settings.dangerous or settings.general):
        return None
    missing = [module for module in _GRAMMAR_MODULES if find_spec(module) is None]
    if missing:
        raise missing_package_error("steering", f"the package {missing[0]}", "steering")
    # ruff: noqa: PLC0415 - most episodes need none of these
    from ci_agent_eval.steering.policy.reactor import build_reactor
    from ci_agent_eval.steering.pytest_project import build_project_finder
    from ci_agent_eval.steering.store import SteeringStore

    # The agent's tools run in this process, so relative folders are those of its current folder.
    find_project = build_project_finder(Path.cwd())
    memory = SteeringStore(ttl=settings.ttl)
    test_run = LatestTestRun()
    reactor = build_reactor(settings, memory, find_project=find_project, ledger=test_run)
    return Guard(reactor, memory, episode_id, clock, test_run)
