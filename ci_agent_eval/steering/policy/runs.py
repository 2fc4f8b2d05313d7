"""The runs of pytest in a command, a text or Python source, through all that wraps them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ci_agent_eval.steering.policy.aliases import verdict_of_alias
from ci_agent_eval.steering.policy.model import Rules
from ci_agent_eval.steering.policy.option_parser import Layer
from ci_agent_eval.steering.policy.pytest_arguments import Verdict, classify
from ci_agent_eval.steering.policy.unwrap import unwrap
from ci_agent_eval.steering.policy.words import Code, Command, Scope, Text, Word, program_of
from ci_agent_eval.steering.shells import reader_of

_LAYERS = 40
"""Wrappers around wrappers that are taken off one command."""
_PYTEST = re.compile(r"^(pytest|py\.test)(-?\d[\d.]*)?([@=~<>!\[].*)?$")
_PYTEST_BY_NAME = re.compile(
    r"^(pytest|py\.test)$|^\$\{?(\w+_)?pytest(_(cmd|bin|exe|command|path))?\}?$"
)
"""What a program that only the shell knows is by its name: `$VENV/bin/pytest`, `$PYTEST`."""
_MOVES = frozenset({"cd", "pushd", "chdir", "set-location", "sl", "push-location"})


@dataclass(frozen=True, slots=True)
class Run:
    """A command that runs pytest, or counts as if it did."""

    command: str
    verdict: Verdict


def runs_in(layers: Iterable[Layer], scope: Scope, rules: Rules) -> Iterator[Run]:
    """Yield the runs in what a shell or a program is given, in the order they start."""
    for layer in layers:
        if isinstance(layer, Command):
            yield from _in_command(layer, scope, rules)
        elif isinstance(layer, Text):
            yield from _in_text(layer, scope, rules)
        else:
            yield from _in_code(layer, scope, rules)


def _spend(text: str, scope: Scope) -> bool:
    scope.effort.calls -= 1
    scope.effort.characters -= len(text)
    return scope.effort.calls >= 0 and scope.effort.characters >= 0


def _in_text(text: Text, scope: Scope, rules: Rules) -> Iterator[Run]:
    if not _spend(text.text, scope):
        return
    inner = scope if text.same_shell else scope.inner(text)
    for command in reader_of(text.shell)(text.text, inner):
        yield from _in_command(command, inner, rules)


def _in_code(code: Code, scope: Scope, rules: Rules) -> Iterator[Run]:
    if _spend(code.text, scope):
        from ci_agent_eval.steering.policy.python_code import layers_of_code  # noqa: PLC0415 - seldom

        yield from runs_in(layers_of_code(code), scope, rules)


def _in_command(command: Command, scope: Scope, rules: Rules) -> Iterator[Run]:
    aliased = _of_alias(command, scope, rules)
    if aliased is not None:
        yield from aliased
        return
    shown = command
    for _ in range(_LAYERS):
        verdict = _verdict(command, scope, rules)
        if verdict is not None:
            yield Run(shown.shown, verdict)
            return
        layers = unwrap(command, scope)
        if layers is None:
            _follow(command, scope)
            return
        if len(layers) != 1 or not isinstance(layers[0], Command):
            yield from runs_in(layers, scope, rules)
            return
        command = layers[0]


def _verdict(command: Command, scope: Scope, rules: Rules) -> Verdict | None:
    if not command.words:
        return None
    if rules.aliases:
        verdict = verdict_of_alias(command, scope.directory, rules)
        if verdict is not None:
            return verdict
    if not _is_pytest(command.words[0]):
        return None
    return classify((*_added(command, scope), *command.words[1:]), scope.directory, rules)


def _is_pytest(word: Word) -> bool:
    return bool((_PYTEST if word.known else _PYTEST_BY_NAME).match(program_of(word)))


def _added(command: Command, scope: Scope) -> tuple[Word, ...]:
    """Return the words that `PYTEST_ADDOPTS` puts before pytest's own."""
    own = dict(command.environment).get("PYTEST_ADDOPTS")
    values = (own,) if own is not None else scope.variables.get("PYTEST_ADDOPTS", ())
    return tuple(Word(text, value.known) for value in values for text in value.text.split())


def _of_alias(command: Command, scope: Scope, rules: Rules) -> Iterator[Run] | None:
    """Return the runs of the shell's alias that a command begins with; None if it is none."""
    name = command.words[0].text if command.words else ""
    text = scope.aliases.get(name)
    if text is None or not _spend(text, scope):
        return None
    rest = " ".join(word.shown for word in command.words[1:])
    layer = Text(f"{text} {rest}", same_shell=True, stdin=command.stdin)
    return _without_alias(name, layer, scope, rules)


def _without_alias(name: str, layer: Text, scope: Scope, rules: Rules) -> Iterator[Run]:
    """Read an alias's text, within which it does not expand itself."""
    text = scope.aliases.pop(name)
    yield from runs_in([layer], scope, rules)
    scope.aliases.setdefault(name, text)


def _follow(command: Command, scope: Scope) -> None:
    """Follow a command that changes what later words mean."""
    name = program_of(command.words[0])
    if name in _MOVES:
        _move(command, scope)
    elif name == "popd":
        scope.directory = None
    elif name in {"alias", "set-alias", "new-alias"}:
        _define(command, scope)
    elif name == "set" and "--" in [word.text for word in command.words]:
        start = [word.text for word in command.words].index("--")
        scope.parameters = command.words[start + 1 :]


def _define(command: Command, scope: Scope) -> None:
    words = [word for word in command.words[1:] if not word.text.startswith("-")]
    if "=" not in "".join(word.text for word in words) and len(words) == 2:
        scope.aliases[words[0].text] = words[1].text
    for word in words:
        name, equals, text = word.text.partition("=")
        if equals and word.known:
            scope.aliases[name] = text


def _move(command: Command, scope: Scope) -> None:
    targets = [word for word in command.words[1:] if not word.text.startswith(("-", "/d"))]
    if not targets or not targets[-1].known or scope.directory is None:
        scope.directory = None
        return
    target = targets[-1].text.replace("\\", "/")
    scope.directory = posixpath.normpath(posixpath.join(scope.directory, target))
