"""Detection of full-suite pytest runs in a command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ci_agent_eval.steering.policy.command_walk import judge_commands
from ci_agent_eval.steering.policy.mentions import may_run_tests, remove_quoting
from ci_agent_eval.steering.policy.model import DetectionResult, Rules, RunIntent, Shell
from ci_agent_eval.steering.policy.pytest_arguments import (
    SuiteSelection,
    classify_pytest_arguments,
    normalize_path,
)
from ci_agent_eval.steering.policy.runner_commands import classify_alias, classify_runner_command
from ci_agent_eval.steering.policy.words import (
    ReadingLimits,
    ShellCommand,
    ShellScope,
    ShellScript,
    Word,
    get_program_name,
    make_words,
)

MAX_TEXT_CHARACTERS = 65_536
"""Maximum length of a text that is parsed; longer texts are let through."""
_NO_RULES = Rules()
_EXTRA_CHARACTERS = 300_000
"""Maximum number of characters read beyond the command: of nested texts and of values."""
_NOT_NAMED = DetectionResult(False, False, "nothing in it names pytest")
_PYTEST = re.compile(r"^(pytest|py\.test)(-?\d[\d.]*|\.__main__)?([@=~<>!\[].*)?$")
_PYTEST_VARIABLE = re.compile(
    r"^(pytest|py\.test)$|^\$\{?(\w+_)?pytest(_(cmd|bin|exe|command|path))?\}?$"
)
"""Unexpanded programs that are pytest by their name: `$VENV/bin/pytest`, `$PYTEST`."""


@dataclass(frozen=True, slots=True)
class _PytestRun:
    """A command that runs pytest or counts as a run, with the tests that it would run."""

    command: str
    selection: SuiteSelection
    intent: RunIntent


def detect_in_text(
    text: str, *, shell: Shell = "bash", rules: Rules = _NO_RULES
) -> DetectionResult:
    """Detect whether a shell text runs the full suite. Never raises."""
    return detect_in_command(ShellScript(text, shell), rules, ".")


def detect_in_command(
    command: ShellScript | ShellCommand, rules: Rules, folder: str
) -> DetectionResult:
    """Detect whether a command in a working folder runs the full suite. Never raises.

    Steering is no security boundary: a text that exceeds the limits counts as no full run.
    """
    readable = clean_command(command)
    if readable is None:
        reason = f"it is longer than {MAX_TEXT_CHARACTERS} characters and was not read, so it is "
        return DetectionResult(False, False, f"{reason}let through")
    if not may_run_tests(get_text(readable), rules.commands):
        return _NOT_NAMED
    return detect_unfiltered(readable, rules, folder)


def get_text(command: ShellScript | ShellCommand) -> str:
    """Return all text of a command."""
    if isinstance(command, ShellScript):
        return command.text
    return " ".join(word.text for word in command.words)


def clean_command(command: ShellScript | ShellCommand) -> ShellScript | ShellCommand | None:
    """Return a command without characters that no shell accepts; None if it is too long.

    One word with blanks is a text for a shell.
    """
    if isinstance(command, ShellCommand) and len(command.words) == 1:
        text = command.words[0].text
        command = ShellScript(text) if " " in text.strip() else command
    if isinstance(command, ShellCommand):
        words = make_words(*(_drop_invalid_characters(word.text) for word in command.words))
        is_long = sum(len(word.text) for word in words) > MAX_TEXT_CHARACTERS
        return None if is_long else ShellCommand(words)
    text = _drop_invalid_characters(command.text)
    return None if len(text) > MAX_TEXT_CHARACTERS else replace(command, text=text)


def _drop_invalid_characters(text: str) -> str:
    """Return the text without NUL and lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")


def detect_unfiltered(
    command: ShellScript | ShellCommand, rules: Rules, folder: str
) -> DetectionResult:
    """Detect full runs in a command, also if no runner is named in it."""
    text = get_text(command)
    limits = ReadingLimits(characters=_EXTRA_CHARACTERS + len(text))
    scope = ShellScope(limits, directory=normalize_path(folder))

    def judge(each: ShellCommand, scope: ShellScope, outermost: ShellCommand) -> _PytestRun | None:
        selection = _classify_command(each, scope, rules)
        if selection is None:
            return None
        intent = _build_intent(selection, scope.directory, rules)
        return _PytestRun(outermost.command_line, selection, intent)

    runs = list(judge_commands([command], scope, judge))
    for reach in ("full", "targeted", "nothing"):
        for run in runs:
            if run.selection.reach == reach:
                return _build_result(run, runs)
    if limits.is_spent:
        reason = "it is too long or too deep to be followed to its end, so it is let through"
        return DetectionResult(False, False, reason)
    if any(name in remove_quoting(text) for name in ("pytest", "py.test")):
        return DetectionResult(False, False, "it names pytest, but no command in it runs it")
    return _NOT_NAMED


def _build_result(run: _PytestRun, runs: Sequence[_PytestRun]) -> DetectionResult:
    full_runs = (each.intent for each in runs if each.selection.reach == "full")
    return DetectionResult(
        pytest=True,
        full_suite=run.selection.reach == "full",
        reason=run.selection.reason,
        command=run.command,
        targeted=run.selection.reach == "targeted",
        intents=tuple(dict.fromkeys(full_runs)),
    )


def _build_intent(selection: SuiteSelection, folder: str | None, rules: Rules) -> RunIntent:
    if selection.reach == "full" and folder is not None and rules.find_project is not None:
        project = rules.find_project(folder)
        folder = project.root if project else folder
    return RunIntent(selection.runner, folder, selection.arguments)


def _classify_command(
    command: ShellCommand, scope: ShellScope, rules: Rules
) -> SuiteSelection | None:
    selection = classify_runner_command(command.words, scope.directory, rules, rules.runners)
    selection = selection or classify_alias(command, scope.directory, rules)
    if selection is not None or not _is_pytest(command.words[0]):
        return selection
    words = (*_get_addopts(command, scope), *command.words[1:])
    return classify_pytest_arguments(words, scope.directory, rules)


def _is_pytest(word: Word) -> bool:
    return bool((_PYTEST if word.known else _PYTEST_VARIABLE).match(get_program_name(word)))


def _get_addopts(command: ShellCommand, scope: ShellScope) -> tuple[Word, ...]:
    """Return the words that `PYTEST_ADDOPTS` adds before pytest's arguments."""
    own_value = dict(command.environment).get("PYTEST_ADDOPTS")
    values = (own_value,) if own_value is not None else scope.variables.get("PYTEST_ADDOPTS", ())
    return tuple(Word(text, value.known) for value in values for text in value.text.split())
