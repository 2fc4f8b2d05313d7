"""The guard of an episode, which reviews its agents' tool calls before they run."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ci_agent_eval.contract.trajectory import TestRunExtent
from ci_agent_eval.engine.limits import Clock
from ci_agent_eval.errors import missing_package_error
from ci_agent_eval.steering.policy.model import Steer, ToolCallRequest
from ci_agent_eval.steering.policy.settings import SteeringSettings

if TYPE_CHECKING:
    from ci_agent_eval.steering.policy.reactor import AnswerWarnedCommands, CallKind, Reactor

_GRAMMAR_MODULES = ("tree_sitter", "tree_sitter_bash")


@dataclass
class LatestTestRun:
    """A ledger that knows the extent of the latest call's test run."""

    extent: TestRunExtent | None = None

    def record_call(self, session: str, call: ToolCallRequest, kind: CallKind, now: float) -> None:  # noqa: ARG002 - a CallLedger
        """Set the extent of a call."""
        self.extent = "targeted" if kind == "targeted" else "full"


@dataclass(frozen=True)
class Guard:
    """Reviews the calls of one episode over all of its runs."""

    reactor: Reactor
    warned: AnswerWarnedCommands
    session: str
    clock: Clock
    test_run: LatestTestRun
    """The test run of the call that was reviewed last."""

    def review(self, call: ToolCallRequest, answer: object) -> Steer | None:
        """Return the steer of a held-back call, or None; `answer` identifies its response."""
        self.warned.set_answer(answer)
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
    from ci_agent_eval.steering.policy.reactor import AnswerWarnedCommands, build_reactor
    from ci_agent_eval.steering.pytest_project import build_project_finder
    from ci_agent_eval.steering.store import SteeringStore

    # The agent's tools run in this process, so relative folders are those of its current folder.
    find_project = build_project_finder(Path.cwd())
    warned = AnswerWarnedCommands(SteeringStore(ttl=settings.ttl))
    test_run = LatestTestRun()
    reactor = build_reactor(settings, warned, find_project=find_project, ledger=test_run)
    return Guard(reactor, warned, episode_id, clock, test_run)
