"""Review of tool calls: full runs, dangerous commands and the user's rules, by priority. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from ci_agent_eval.steering.policy.command_extraction import (
    detect_full_suite,
    extract_commands,
    normalize_tool_name,
    render_command,
    runs_commands,
)
from ci_agent_eval.steering.policy.dangerous import find_danger
from ci_agent_eval.steering.policy.model import (
    Allow,
    Decision,
    DetectionResult,
    ProjectFinder,
    Rules,
    RunIntent,
    ShellTools,
    Steer,
    ToolCallRequest,
)
from ci_agent_eval.steering.policy.settings import (
    DANGEROUS_PRIORITY,
    DEFAULT_MESSAGE,
    RESEND,
    GeneralRule,
    SteeringSettings,
)

FULL_SUITE = "pytest-full-suite"
DANGEROUS_COMMANDS = "dangerous-commands"
PLACEHOLDER = "{command}"
"""Stands for the command in a message of the user's own."""
EXAMPLE_COMMAND = "pytest path/to/test_file.py"
"""Replaces the placeholder for a run of pytest if no command is known."""
_DEFAULT_WITH_COMMAND = DEFAULT_MESSAGE.replace(
    RESEND, f" To run the tests of the changed files, use `{PLACEHOLDER}`.{RESEND}"
)

CallKind = Literal["held", "insisted", "targeted"]
"""A full run that was held, a full run that was repeated and ran, a targeted run."""
Adviser = Callable[[DetectionResult], str | None]
"""Returns a command that runs the tests of the changed files; None if unknown. Must not raise."""


class WarnedCommands(Protocol):
    """The memory of the commands that each session was warned about."""

    def record_command(self, session: str, command: str, now: float) -> bool:
        """Record a session's command; return whether it is the first time.

        Of concurrent calls exactly one gets True. `now` is in seconds, of a clock shared by all
        users of the memory.
        """


@dataclass
class AnswerWarnedCommands:
    """Warned commands that count as known only after the response with the warning.

    A model may request the same call twice in one response, before it reads the warning.
    """

    memory: WarnedCommands
    answer: object = None
    _fresh: set[str] = field(default_factory=set)

    def set_answer(self, answer: object) -> None:
        """Set the response that requests the current calls."""
        if answer != self.answer:
            self.answer = answer
            self._fresh.clear()

    def record_command(self, session: str, command: str, now: float) -> bool:
        """As `WarnedCommands`; True also for a repetition in the same response."""
        if self.memory.record_command(session, command, now):
            self._fresh.add(command)
        return command in self._fresh


class CallLedger(Protocol):
    """A record of the test runs of sessions."""

    def record_call(self, session: str, call: ToolCallRequest, kind: CallKind, now: float) -> None:
        """Record a call at `now`, in seconds of a clock shared by all users of the record."""


class Handler(Protocol):
    """A reviewer of tool calls in the chain."""

    @property
    def priority(self) -> int:
        """Its position in the chain: higher is earlier."""

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Decision | None:
        """Return a decision, or None to defer to later handlers. Must not raise."""


class Reactor:
    """Asks its handlers in order and returns the first decision."""

    def __init__(self, handlers: Iterable[Handler]) -> None:
        # Sorting is stable: equal priorities keep their order.
        self.handlers = tuple(sorted(handlers, key=lambda handler: -handler.priority))

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Decision:
        """Decide whether a call may run.

        `session` is None if unknown: then nothing is remembered and a call is steered each
        time. `now` is in seconds, of a clock shared by all users of the memory.
        """
        for handler in self.handlers:
            decision = handler.review(call, session, now)
            if decision is not None:
                return decision
        return Allow("no handler holds it back")


def build_reactor(
    settings: SteeringSettings,
    memory: WarnedCommands,
    *,
    find_project: ProjectFinder | None = None,
    advise: Adviser | None = None,
    ledger: CallLedger | None = None,
) -> Reactor:
    """Build the chain of handlers that the settings enable.

    `find_project` returns the project of a command's folder.
    `advise` returns what an agent may run instead of the whole suite; `ledger` records test runs.
    """
    rules = replace(settings.rules, find_project=find_project or settings.rules.find_project)
    handlers: list[Handler] = []
    if settings.dangerous:
        handlers.append(DangerousCommandHandler(settings.dangerous, rules.shell_tools))
    if settings.enabled:
        handlers.append(FullSuiteHandler(settings, rules, memory, advise, ledger))
    handlers.extend(
        RuleHandler(rule, re.compile(rule.pattern), memory, rules.shell_tools)
        for rule in settings.general
    )
    return Reactor(handlers)


@dataclass(frozen=True, slots=True)
class FullSuiteHandler:
    """Steers each intent of a full-suite run once per session, however it is spelled."""

    settings: SteeringSettings
    rules: Rules
    memory: WarnedCommands
    advise: Adviser | None
    ledger: CallLedger | None

    @property
    def priority(self) -> int:
        """The priority in the settings."""
        return self.settings.priority

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Steer | None:
        """Steer the first full run of an intent in a session; each one without a session."""
        result = detect_full_suite(call, self.rules)
        is_new = [self._is_new(intent, session, now) for intent in result.intents]
        command = self.advise(result) if self.advise and any(is_new) else None
        if (result.full_suite or result.targeted) and self.ledger and session is not None:
            kind: CallKind = "held" if any(is_new) else "insisted"
            self.ledger.record_call(session, call, kind if result.full_suite else "targeted", now)
        if not any(is_new):
            return None
        programs = (each for each in self.rules.runners if each.runner == result.intents[0].runner)
        message = compose_message(
            self.settings.message,
            command,
            has_session=session is not None,
            example=next((each.example for each in programs), EXAMPLE_COMMAND),
        )
        return Steer(message, _explain_steering(result.reason, session), FULL_SUITE, result.command)

    def _is_new(self, intent: RunIntent, session: str | None, now: float) -> bool:
        parts = (FULL_SUITE, intent.runner, intent.folder, *intent.selection)
        return _is_first_time(self.memory, session, json.dumps(parts), now)


def compose_message(
    message: str, command: str | None, *, has_session: bool, example: str = EXAMPLE_COMMAND
) -> str:
    """Return the message of a held full run; `command` is the advice.

    Without a session a repeated call is held again, so the message does not offer it. `example`
    replaces the placeholder if no command is known.
    """
    if command and message == DEFAULT_MESSAGE:
        message = _DEFAULT_WITH_COMMAND
    if not has_session:
        message = message.replace(RESEND, "")
    return message.replace(PLACEHOLDER, command or example)


def _explain_steering(reason: str, session: str | None) -> str:
    if session is None:
        return f"{reason}; the call names no session, so it is held back each time"
    return f"{reason}; the same call again in this session goes through"


def _is_first_time(memory: WarnedCommands, session: str | None, key: str, now: float) -> bool:
    return session is None or memory.record_command(session, key, now)


@dataclass(frozen=True, slots=True)
class DangerousCommandHandler:
    """Steers dangerous commands, also when repeated."""

    sets: tuple[str, ...]
    shell_tools: ShellTools
    priority: int = DANGEROUS_PRIORITY

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Steer | None:  # noqa: ARG002 - the Handler protocol
        """Steer a call with a dangerous command of the enabled sets."""
        for command in extract_commands(call, self.shell_tools):
            danger = find_danger(command, self.sets)
            if danger is not None:
                return Steer(danger.message, danger.reason, DANGEROUS_COMMANDS, danger.command)
        return None


@dataclass(frozen=True, slots=True)
class RuleHandler:
    """Steers calls that match a user-defined rule."""

    rule: GeneralRule
    pattern: re.Pattern[str]
    memory: WarnedCommands
    shell_tools: ShellTools

    @property
    def priority(self) -> int:
        """The rule's priority."""
        return self.rule.priority

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Steer | None:
        """Steer a call with a matching text; once per session if the rule says so."""
        if not self._applies_to(call.tool):
            return None
        text = next(filter(self.pattern.search, self._list_texts(call)), None)
        if text is None:
            return None
        name = self.rule.name
        key = f"{name}\n{' '.join(text.split())}"
        if self.rule.once and not _is_first_time(self.memory, session, key, now):
            return None
        return Steer(self.rule.message, f"the rule {name!r} matches", name, text)

    def _applies_to(self, tool: str) -> bool:
        names = {normalize_tool_name(name) for name in self.rule.tools}
        if not names:
            return runs_commands(tool, self.shell_tools)
        return "*" in names or normalize_tool_name(tool) in names

    def _list_texts(self, call: ToolCallRequest) -> Iterator[str]:
        """Yield the commands of a call, or its arguments as JSON if it has none."""
        commands = extract_commands(call, self.shell_tools)
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
