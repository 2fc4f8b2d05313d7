"""Search for pytest runs in commands, shell scripts and Python code, through wrappers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ci_agent_eval.steering.policy.full_run_aliases import classify_alias
from ci_agent_eval.steering.policy.model import Rules, RunIntent
from ci_agent_eval.steering.policy.option_parser import Layer
from ci_agent_eval.steering.policy.pytest_arguments import SuiteSelection, classify_pytest_arguments
from ci_agent_eval.steering.policy.runner_commands import classify_runner_command
from ci_agent_eval.steering.policy.scope_changes import update_scope
from ci_agent_eval.steering.policy.unwrap import unwrap_command
from ci_agent_eval.steering.policy.words import (
    PythonCode,
    ShellCommand,
    ShellScope,
    ShellScript,
    Word,
    get_program_name,
)
from ci_agent_eval.steering.shells import get_command_parser

_MAX_LAYERS = 40
"""Maximum number of nested wrappers."""
_PYTEST = re.compile(r"^(pytest|py\.test)(-?\d[\d.]*|\.__main__)?([@=~<>!\[].*)?$")
_PYTEST_VARIABLE = re.compile(
    r"^(pytest|py\.test)$|^\$\{?(\w+_)?pytest(_(cmd|bin|exe|command|path))?\}?$"
)
"""Unexpanded programs that are pytest by their name: `$VENV/bin/pytest`, `$PYTEST`."""


@dataclass(frozen=True, slots=True)
class PytestRun:
    """A command that runs pytest or counts as a run, with the tests that it would run."""

    command: str
    selection: SuiteSelection
    intent: RunIntent


def find_pytest_runs(
    layers: Iterable[Layer], scope: ShellScope, rules: Rules
) -> Iterator[PytestRun]:
    """Yield the pytest runs in the layers, in the order they start."""
    for layer in layers:
        if isinstance(layer, ShellCommand):
            yield from _find_in_command(layer, scope, rules)
        elif isinstance(layer, ShellScript):
            yield from _find_in_script(layer, scope, rules)
        else:
            yield from _find_in_code(layer, scope, rules)


def _find_in_script(script: ShellScript, scope: ShellScope, rules: Rules) -> Iterator[PytestRun]:
    if not scope.limits.spend(script.text):
        return
    inner = scope if script.same_shell else scope.create_child(script)
    for command in get_command_parser(script.shell)(script.text, inner):
        yield from _find_in_command(command, inner, rules)


def _find_in_code(code: PythonCode, scope: ShellScope, rules: Rules) -> Iterator[PytestRun]:
    if scope.limits.spend(code.text):
        from ci_agent_eval.steering.policy.python_code import unwrap_python  # noqa: PLC0415 - seldom

        yield from find_pytest_runs(unwrap_python(code), scope, rules)


def _find_in_command(command: ShellCommand, scope: ShellScope, rules: Rules) -> Iterator[PytestRun]:
    alias_runs = _find_in_alias(command, scope, rules)
    if alias_runs is not None:
        yield from alias_runs
        return
    outermost = command
    for _ in range(_MAX_LAYERS):
        selection = _classify_command(command, scope, rules)
        if selection is not None:
            intent = _build_intent(selection, scope.directory, rules)
            yield PytestRun(outermost.command_line, selection, intent)
            return
        layers = unwrap_command(command, scope)
        if layers is None:
            update_scope(command, scope)
            return
        if len(layers) != 1 or not isinstance(layers[0], ShellCommand):
            yield from find_pytest_runs(layers, scope, rules)
            return
        command = layers[0]


def _build_intent(selection: SuiteSelection, folder: str | None, rules: Rules) -> RunIntent:
    if selection.reach == "full" and folder is not None and rules.find_project is not None:
        project = rules.find_project(folder)
        folder = project.root if project else folder
    return RunIntent(selection.runner, folder, selection.arguments)


def _classify_command(
    command: ShellCommand, scope: ShellScope, rules: Rules
) -> SuiteSelection | None:
    if not command.words:
        return None
    if rules.runners:
        selection = classify_runner_command(command, scope.directory, rules, rules.runners)
        if selection is not None:
            return selection
    if rules.aliases:
        selection = classify_alias(command, scope.directory, rules)
        if selection is not None:
            return selection
    if not _is_pytest(command.words[0]):
        return None
    words = (*_get_addopts(command, scope), *command.words[1:])
    return classify_pytest_arguments(words, scope.directory, rules)


def _is_pytest(word: Word) -> bool:
    return bool((_PYTEST if word.known else _PYTEST_VARIABLE).match(get_program_name(word)))


def _get_addopts(command: ShellCommand, scope: ShellScope) -> tuple[Word, ...]:
    """Return the words that `PYTEST_ADDOPTS` adds before pytest's arguments."""
    own_value = dict(command.environment).get("PYTEST_ADDOPTS")
    values = (own_value,) if own_value is not None else scope.variables.get("PYTEST_ADDOPTS", ())
    return tuple(Word(text, value.known) for value in values for text in value.text.split())


def _find_in_alias(
    command: ShellCommand, scope: ShellScope, rules: Rules
) -> Iterator[PytestRun] | None:
    """Return the runs of a shell alias; None if the command is no alias."""
    name = command.words[0].text if command.words else ""
    text = scope.aliases.get(name)
    if text is None or not scope.limits.spend(text):
        return None
    rest = " ".join(word.source_text for word in command.words[1:])
    layer = ShellScript(f"{text} {rest}", same_shell=True, stdin=command.stdin)
    return _find_in_alias_text(name, layer, scope, rules)


def _find_in_alias_text(
    name: str, layer: ShellScript, scope: ShellScope, rules: Rules
) -> Iterator[PytestRun]:
    """Yield the runs in an alias's text, in which the alias itself is not expanded."""
    text = scope.aliases.pop(name)
    yield from find_pytest_runs([layer], scope, rules)
    scope.aliases.setdefault(name, text)
