"""No run of a whole pytest suite: a policy that any recorded trajectory can be held against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ci_agent_eval.checks.base import BaseCheck, set_fields
from ci_agent_eval.checks.exchanges import get_tool_calls, get_turns
from ci_agent_eval.checks.formatting import format_list
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.trajectory import ToolCall
from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.errors import InputError, missing_package_error
from ci_agent_eval.steering.policy import model as steering
from ci_agent_eval.steering.policy.command_extraction import detect_full_suite, extract_commands

_SHOWN = 5
"""Runs that a reason names; of more it says how many."""
_LONGEST = 200
"""Characters of a command that are shown."""


@dataclass(frozen=True, slots=True)
class _FullSuiteRun:
    """A call that runs, or would have run, the whole suite."""

    turn: int
    """Which turn of the agent, from 1."""
    finding: steering.DetectionResult
    steered: bool


@dataclass(frozen=True, slots=True)
class NoFullSuiteRun(BaseCheck):
    """The agent runs no whole pytest suite; what steering held back did not run.

    `attempts=True` forbids what was held back as well. `tools` says what tools of other names
    are, by one that steering knows: `{"tests_execute": "pytest", "sh": "bash"}`. An episode
    without any call that runs commands fails, unless `optional=True` says that none is expected:
    a check that does not know the agent's shell must not pass.
    """

    attempts: bool = False
    rules: steering.Rules = field(default_factory=steering.Rules)
    tools: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.rules, steering.Rules):
            raise InputError(f"NoFullSuiteRun.rules: must be Rules, got {self.rules!r}")
        if not isinstance(self.tools, Mapping):
            raise InputError(f"NoFullSuiteRun.tools: must map names, got {self.tools!r}")
        set_fields(self, tools=dict(self.tools))

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion; its reason names turns and commands."""
        found = list(self._runs(episode))
        wrong = [run for run in found if self.attempts or not run.steered]
        held = sum(run.steered for run in found)
        unseen = not self.optional and not self._judges_any(episode)
        if unseen:
            reason = _explain_no_commands(episode)
        elif wrong:
            reason = "; ".join(map(_describe_run, wrong[:_SHOWN]))
            reason += f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        elif held:
            reason = f"no call ran it; {pluralize(held, 'attempt')} held back"
        else:
            reason = "no call ran it"
        says = "never tries to run" if self.attempts else "never runs"
        return (
            self._assertion(f"{says} the whole pytest suite", not wrong and not unseen, reason),
        )

    def _judges_any(self, episode: Episode) -> bool:
        return any(
            extract_commands(self._known(call), self.rules.shell_tools)
            for call in get_tool_calls(episode)
        )

    def _known(self, call: ToolCall) -> steering.ToolCallRequest:
        return steering.ToolCallRequest(self.tools.get(call.name, call.name), call.arguments)

    def _runs(self, episode: Episode) -> Iterator[_FullSuiteRun]:
        agents = (turn for turn in get_turns(episode) if turn.role == "assistant")
        for number, turn in enumerate(agents, start=1):
            for call in turn.tool_calls:
                finding = self._finding(call)
                if finding.full_suite:
                    yield _FullSuiteRun(number, finding, call.steered_by is not None)

    def _finding(self, call: ToolCall) -> steering.DetectionResult:
        try:
            return detect_full_suite(self._known(call), self.rules)
        except ModuleNotFoundError as error:
            raise missing_package_error("NoFullSuiteRun", str(error.name), "steering") from error


def _explain_no_commands(episode: Episode) -> str:
    names = sorted({call.name for call in get_tool_calls(episode)})
    return (
        f"no call runs commands, so none could be judged (tools: {format_list(names) or 'none'}); "
        "name the agent's shell by rules=Rules(shell_tools={…}), or say optional=True"
    )


def _describe_run(run: _FullSuiteRun) -> str:
    command = run.finding.command or ""
    shown = command if len(command) <= _LONGEST else f"{command[: _LONGEST - 1]}…"
    held = ", held back" if run.steered else ""
    return f"turn {run.turn}: `{shown}` ({run.finding.reason}{held})"
