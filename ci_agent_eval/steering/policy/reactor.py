"""Review of tool calls: full runs, dangerous commands and the user's rules, by priority. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
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


class CallLedger(Protocol):
    """A record of the test runs of sessions."""

    def record_call(self, session: str, kind: CallKind, now: float) -> None:
        """Record a call at `now`, in seconds of a clock shared by all users of the record."""


Handler = Callable[[ToolCallRequest, str | None, float], Decision | None]
"""Reviews a call; None defers to handlers with a lower priority. Must not raise."""


class Reactor:
    """Asks its handlers in the order of their priorities and returns the first decision."""

    def __init__(self, handlers: Iterable[tuple[int, Handler]]) -> None:
        # Sorting is stable: equal priorities keep their order.
        self.handlers = tuple(sorted(handlers, key=lambda pair: -pair[0]))

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Decision:
        """Decide whether a call may run.

        `session` is None if unknown: then nothing is remembered and a call is steered each
        time. `now` is in seconds, of a clock shared by all users of the memory.
        """
        for _, handler in self.handlers:
            decision = handler(call, session, now)
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
    handlers: list[tuple[int, Handler]] = []
    if settings.dangerous:
        danger_handler = _build_danger_handler(settings.dangerous, rules.shell_tools)
        handlers.append((DANGEROUS_PRIORITY, danger_handler))
    if settings.enabled:
        suite_handler = _build_suite_handler(settings.message, rules, memory, advise, ledger)
        handlers.append((settings.priority, suite_handler))
    handlers += [
        (rule.priority, _build_rule_handler(rule, memory, rules.shell_tools))
        for rule in settings.general
    ]
    return Reactor(handlers)


def _build_suite_handler(
    message: str,
    rules: Rules,
    memory: WarnedCommands,
    advise: Adviser | None,
    ledger: CallLedger | None,
) -> Handler:
    """Build the handler that steers each intent of a full-suite run once per session."""

    def is_new(intent: RunIntent, session: str | None, now: float) -> bool:
        parts = (FULL_SUITE, intent.runner, intent.folder, *intent.selection)
        return _is_first_time(memory, session, json.dumps(parts), now)

    def review(call: ToolCallRequest, session: str | None, now: float) -> Steer | None:
        result = detect_full_suite(call, rules)
        # Each of the intents is remembered.
        new_intents = [intent for intent in result.intents if is_new(intent, session, now)]
        command = advise(result) if advise and new_intents else None
        if (result.full_suite or result.targeted) and ledger and session is not None:
            kind: CallKind = "held" if new_intents else "insisted"
            ledger.record_call(session, kind if result.full_suite else "targeted", now)
        if not new_intents:
            return None
        programs = (each for each in rules.runners if each.runner == result.intents[0].runner)
        example = next((each.example for each in programs), EXAMPLE_COMMAND)
        has_session = session is not None
        again = (
            "the same call again in this session goes through"
            if has_session
            else "the call names no session, so it is held back each time"
        )
        text = compose_message(message, command, has_session=has_session, example=example)
        return Steer(text, f"{result.reason}; {again}", FULL_SUITE, result.command)

    return review


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


def _is_first_time(memory: WarnedCommands, session: str | None, key: str, now: float) -> bool:
    return session is None or memory.record_command(session, key, now)


def _build_danger_handler(sets: Iterable[str], shell_tools: ShellTools) -> Handler:
    """Build the handler that steers dangerous commands of the sets, also when repeated."""

    def review(call: ToolCallRequest, _session: str | None, _now: float) -> Steer | None:
        dangers = (find_danger(each, sets) for each in extract_commands(call, shell_tools))
        return next(filter(None, dangers), None)

    return review


def _build_rule_handler(
    rule: GeneralRule, memory: WarnedCommands, shell_tools: ShellTools
) -> Handler:
    """Build the handler of a user's rule: it steers calls with a matching text."""
    tools = {normalize_tool_name(name) for name in rule.tools}
    pattern = re.compile(rule.pattern)

    def review(call: ToolCallRequest, session: str | None, now: float) -> Steer | None:
        if tools and "*" not in tools and normalize_tool_name(call.tool) not in tools:
            return None
        if not tools and not runs_commands(call.tool, shell_tools):
            return None
        commands = map(render_command, extract_commands(call, shell_tools))
        texts = tuple(commands) or (_render_arguments(call.arguments),)
        text = next(filter(pattern.search, texts), None)
        if text is None:
            return None
        key = f"{rule.name}\n{' '.join(text.split())}"
        if rule.once and not _is_first_time(memory, session, key, now):
            return None
        return Steer(rule.message, f"the rule {rule.name!r} matches", rule.name, text)

    return review


def _render_arguments(arguments: object) -> str:
    """Return the arguments of a call without commands as JSON."""
    if isinstance(arguments, str):
        return arguments
    try:
        return json.dumps(arguments, ensure_ascii=False, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(type(arguments))
