"""The check that an agent never runs a whole pytest suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pydantic import InstanceOf

from ci_agent_eval.checks.base import BaseCheck, format_list
from ci_agent_eval.checks.text import get_tool_calls, get_turns
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.trajectory import ToolCall
from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.errors import missing_package_error
from ci_agent_eval.recording.active_episode import get_active_episode
from ci_agent_eval.steering.policy import model as steering
from ci_agent_eval.steering.policy.command_extraction import detect_full_suite, extract_commands

_SHOWN = 5
"""Runs that a reason lists; further runs are counted."""
_LONGEST = 200
"""Characters of a command in a reason."""


@dataclass(frozen=True, slots=True)
class _FullSuiteRun:
    """A call that runs, or would have run, the whole suite."""

    turn: int
    """Number of the agent's turn, from 1."""
    finding: steering.DetectionResult
    steered: bool


@dataclass(frozen=True, slots=True)
class NoFullSuiteRun(BaseCheck):
    """The agent never runs the whole pytest suite; calls that steering blocked did not run.

    `attempts=True` forbids blocked calls as well. `tools` maps names of the agent's tools to
    tools that steering knows: `{"tests_execute": "pytest", "sh": "bash"}`. An episode without
    any call that runs commands fails, unless `optional=True` says that none is expected:
    a check that does not know the agent's shell must not pass.

    In a running episode `rules` default to those of `agent-eval-steering.yaml`; the `shell_tools`
    of that file always count.
    """

    attempts: bool = False
    rules: InstanceOf[steering.Rules] | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion; its reason lists turns and commands."""
        rules = _merge_rules(self.rules)
        found = list(self._find_runs(episode, rules))
        wrong = [run for run in found if self.attempts or not run.steered]
        steered = sum(run.steered for run in found)
        is_unknown = not self.optional and not self._has_commands(episode, rules)
        if is_unknown:
            reason = _explain_no_commands(episode)
        elif wrong:
            reason = "; ".join(map(_describe_run, wrong[:_SHOWN]))
            reason += f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        elif steered:
            reason = f"no call ran it; {pluralize(steered, 'attempt')} held back"
        else:
            reason = "no call ran it"
        predicate = "never tries to run" if self.attempts else "never runs"
        statement = f"{predicate} the whole pytest suite"
        return (self._build_assertion(statement, not wrong and not is_unknown, reason),)

    def _has_commands(self, episode: Episode, rules: steering.Rules) -> bool:
        return any(
            extract_commands(self._translate_call(call), rules.shell_tools)
            for call in get_tool_calls(episode)
        )

    def _translate_call(self, call: ToolCall) -> steering.ToolCallRequest:
        return steering.ToolCallRequest(self.tools.get(call.name, call.name), call.arguments)

    def _find_runs(self, episode: Episode, rules: steering.Rules) -> Iterator[_FullSuiteRun]:
        agent_turns = (turn for turn in get_turns(episode) if turn.role == "assistant")
        for number, turn in enumerate(agent_turns, start=1):
            for call in turn.tool_calls:
                finding = self._classify_call(call, rules)
                if finding.full_suite:
                    yield _FullSuiteRun(number, finding, call.steered_by is not None)

    def _classify_call(self, call: ToolCall, rules: steering.Rules) -> steering.DetectionResult:
        try:
            return detect_full_suite(self._translate_call(call), rules)
        except ModuleNotFoundError as error:
            raise missing_package_error("NoFullSuiteRun", str(error.name), "steering") from error


def _merge_rules(given: steering.Rules | None) -> steering.Rules:
    """Return the check's rules with the shells and the project that the suite knows."""
    running = get_active_episode()
    load = None if running is None else running.load_steering_rules
    suite = steering.Rules() if load is None else load()
    if given is None:
        return suite
    return replace(
        given,
        shell_tools={**suite.shell_tools, **given.shell_tools},
        find_project=given.find_project or suite.find_project,
    )


def _explain_no_commands(episode: Episode) -> str:
    names = sorted({call.name for call in get_tool_calls(episode)})
    return (
        f"no call runs commands, so none could be judged (tools: {format_list(names) or 'none'}); "
        "name the agent's shell as `shell_tools` in agent-eval-steering.yaml, "
        "or say optional=True"
    )


def _describe_run(run: _FullSuiteRun) -> str:
    command = run.finding.command or ""
    shortened = command if len(command) <= _LONGEST else f"{command[: _LONGEST - 1]}…"
    steered = ", held back" if run.steered else ""
    return f"turn {run.turn}: `{shortened}` ({run.finding.reason}{steered})"
