"""Handlers for full-suite runs, dangerous commands and user-defined rules. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ci_agent_eval.steering.policy.call_ledger import NO_LEDGER, CallKind, CallLedger
from ci_agent_eval.steering.policy.command_extraction import (
    detect_full_suite,
    extract_commands,
    normalize_tool_name,
    render_command,
    runs_commands,
)
from ci_agent_eval.steering.policy.dangerous import find_danger
from ci_agent_eval.steering.policy.message import (
    EXAMPLE_COMMAND,
    Adviser,
    compose_message,
    give_no_advice,
)
from ci_agent_eval.steering.policy.model import (
    Rules,
    RunIntent,
    ShellTools,
    Steer,
    ToolCallRequest,
)
from ci_agent_eval.steering.policy.settings import DANGEROUS_PRIORITY, GeneralRule
from ci_agent_eval.steering.policy.warned_commands import WarnedCommands

FULL_SUITE = "pytest-full-suite"
DANGEROUS_COMMANDS = "dangerous-commands"


@dataclass(frozen=True, slots=True)
class FullSuiteHandler:
    """Steers each intent of a full-suite run once per session, however it is spelled."""

    message: str
    priority: int
    rules: Rules
    memory: WarnedCommands
    advise: Adviser = give_no_advice
    ledger: CallLedger = NO_LEDGER
    name: str = FULL_SUITE

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Steer | None:
        """Steer the first full run of an intent in a session; each one without a session."""
        result = detect_full_suite(call, self.rules)
        if not result.full_suite:
            if result.targeted:
                self._record(session, call, "targeted", now)
            return None
        is_new = [self._is_new(intent, session, now) for intent in result.intents]
        if not any(is_new):
            self._record(session, call, "insisted", now)
            return None
        command = self.advise(result)
        self._record(session, call, "held", now)
        message = compose_message(
            self.message,
            command,
            has_session=session is not None,
            example=self._find_example(result.intents[0]),
        )
        return Steer(message, _explain_steering(result.reason, session), self.name, result.command)

    def _record(
        self, session: str | None, call: ToolCallRequest, kind: CallKind, now: float
    ) -> None:
        if session is not None:
            self.ledger.record_call(session, call, kind, now)

    def _find_example(self, intent: RunIntent) -> str:
        programs = (each for each in self.rules.runners if each.runner == intent.runner)
        return next((each.example for each in programs), EXAMPLE_COMMAND)

    def _is_new(self, intent: RunIntent, session: str | None, now: float) -> bool:
        parts = (self.name, intent.runner, intent.folder, *intent.selection)
        return _is_first_time(self.memory, session, json.dumps(parts), now)


@dataclass(frozen=True, slots=True)
class DangerousCommandHandler:
    """Steers dangerous commands, also when repeated."""

    sets: tuple[str, ...]
    shell_tools: ShellTools
    priority: int = DANGEROUS_PRIORITY
    name: str = DANGEROUS_COMMANDS

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Steer | None:  # noqa: ARG002 - the Handler protocol
        """Steer a call with a dangerous command of the enabled sets."""
        for command in extract_commands(call, self.shell_tools):
            danger = find_danger(command, self.sets)
            if danger is not None:
                return Steer(danger.message, danger.reason, self.name, danger.command)
        return None


@dataclass(frozen=True, slots=True)
class RuleHandler:
    """Steers calls that match a user-defined rule."""

    rule: GeneralRule
    pattern: re.Pattern[str]
    memory: WarnedCommands
    shell_tools: ShellTools

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.rule.name

    @property
    def priority(self) -> int:
        """The rule's priority."""
        return self.rule.priority

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Steer | None:
        """Steer a call with a matching text; once per session if the rule says so."""
        if not self._applies_to(call.tool):
            return None
        text = next(
            (
                text
                for text in _get_searched_texts(call, self.shell_tools)
                if self.pattern.search(text)
            ),
            None,
        )
        if text is None:
            return None
        key = f"{self.name}\n{' '.join(text.split())}"
        if self.rule.once and not _is_first_time(self.memory, session, key, now):
            return None
        reason = f"the rule {self.name!r} matches"
        return Steer(self.rule.message, reason, self.name, text)

    def _applies_to(self, tool: str) -> bool:
        names = {normalize_tool_name(name) for name in self.rule.tools}
        if not names:
            return runs_commands(tool, self.shell_tools)
        return "*" in names or normalize_tool_name(tool) in names


def _is_first_time(memory: WarnedCommands, session: str | None, key: str, now: float) -> bool:
    return session is None or memory.record_command(session, key, now)


def _explain_steering(reason: str, session: str | None) -> str:
    if session is None:
        return f"{reason}; the call names no session, so it is held back each time"
    return f"{reason}; the same call again in this session goes through"


def _get_searched_texts(call: ToolCallRequest, shell_tools: ShellTools) -> Iterator[str]:
    """Yield the commands of a call, or its arguments as JSON if it has none."""
    commands = extract_commands(call, shell_tools)
    yield from map(render_command, commands)
    if not commands:
        yield _render_arguments(call.arguments)


def _render_arguments(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    try:
        return json.dumps(arguments, ensure_ascii=False, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(type(arguments))
