"""Would this command run the whole suite? The one question of steering, answered for text."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_agent_eval.steering.model import Finding, Rules, Shell
from ci_agent_eval.steering.pytest_arguments import Verdict, classify
from ci_agent_eval.steering.shells import reader_of
from ci_agent_eval.steering.unwrap import Layer, unwrap
from ci_agent_eval.steering.words import Code, Command, Scope, Text, Word, known, program_of

LONGEST = 100_000
"""Characters of a text that is read; a longer one is answered without."""
_LAYERS = 40
_NO_RULES = Rules()
_PYTEST = re.compile(r"^(pytest|py\.test)(-?\d[\d.]*)?([@=~<>].*)?$")
_QUOTING = str.maketrans("", "", "'\"\\^`\r\n")
_SURPRISES = re.compile(r"[${%]")
"""What may put a word together that is nowhere written."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A command that runs pytest, or counts as if."""

    command: str
    verdict: Verdict


def detect(text: str, *, shell: Shell = "bash", rules: Rules = _NO_RULES) -> Finding:
    """Say what a shell would do with a text. Never raises.

    A text of more than `LONGEST` characters is answered without reading it.
    """
    plain = text.replace("\0", "")
    if not _may_run(plain, rules):
        return Finding(False, False, "nothing in it names pytest", normal=_squeezed(plain))
    if len(plain) > LONGEST:
        reason = f"longer than {LONGEST} characters, so it was not read"
        return Finding(False, False, reason, normal=_squeezed(plain))
    commands = [Text(plain, shell)]
    return _finding(list(_runs_of(commands, Scope(), rules)), _squeezed(plain))


def detect_argv(words: Sequence[str], *, rules: Rules = _NO_RULES) -> Finding:
    """Say what a program started with these words would do. Never raises."""
    if len(words) == 1 and " " in words[0].strip():
        return detect(words[0], rules=rules)
    shown = shlex.join(words)
    command = Command(known(*(word.replace("\0", "") for word in words)))
    return _finding(list(_runs_of([command], Scope(), rules)), _squeezed(shown))


def _may_run(text: str, rules: Rules) -> bool:
    names = ("pytest", "py.test", "ptw", "hatch", "rye", *(a.split()[0] for a in rules.aliases if a.split()))
    bare = text.translate(_QUOTING).casefold()
    return any(name in bare for name in names) or _SURPRISES.search(text) is not None


def _squeezed(text: str) -> str:
    try:
        return shlex.join(shlex.split(text))
    except ValueError:
        return " ".join(text.split())


def _finding(runs: Sequence[_Run], normal: str) -> Finding:
    for reach in ("full", "targeted", "nothing"):
        for run in runs:
            if run.verdict.reach == reach:
                return Finding(True, reach == "full", run.verdict.reason, run.command, normal)
    return Finding(False, False, "no command in it runs pytest", normal=normal)


def _runs_of(layers: Sequence[Layer], scope: Scope, rules: Rules) -> Iterator[_Run]:
    for layer in layers:
        if isinstance(layer, Command):
            yield from _runs_of_command(layer, scope, rules)
        elif isinstance(layer, Text):
            yield from _runs_of_text(layer, scope, rules)
        else:
            yield from _runs_of_code(layer, scope, rules)


def _runs_of_text(text: Text, scope: Scope, rules: Rules) -> Iterator[_Run]:
    effort = scope.effort
    effort.calls -= 1
    effort.characters -= len(text.text)
    if effort.calls < 0 or effort.characters < 0:
        return
    inner = scope if text.same_shell else scope.inner(text)
    for command in reader_of(text.shell)(text.text, inner):
        yield from _runs_of_command(command, inner, rules)


def _runs_of_code(code: Code, scope: Scope, rules: Rules) -> Iterator[_Run]:
    return iter(())


def _runs_of_command(command: Command, scope: Scope, rules: Rules) -> Iterator[_Run]:
    shown = command.shown
    for _ in range(_LAYERS):
        if not command.words:
            return
        if _PYTEST.match(program_of(command.words[0])):
            words = (*_added(command, scope), *command.words[1:])
            yield _Run(shown, classify(words, scope.directory, rules))
            return
        layers = unwrap(command, scope)
        if layers is None:
            _change(command, scope)
            return
        if len(layers) == 1 and isinstance(layers[0], Command):
            command = layers[0]
            continue
        yield from _runs_of(layers, scope, rules)
        return


def _added(command: Command, scope: Scope) -> tuple[Word, ...]:
    """Return the words that `PYTEST_ADDOPTS` puts before pytest's own."""
    own = dict(command.environment).get("PYTEST_ADDOPTS")
    values = (own,) if own is not None else scope.variables.get("PYTEST_ADDOPTS", ())
    return tuple(Word(text, v.known) for v in values for text in v.text.split())


def _change(command: Command, scope: Scope) -> None:
    """Follow the commands that change what later words mean."""
    name = program_of(command.words[0])
    if name in {"cd", "pushd", "chdir", "set-location", "sl", "push-location"}:
        targets = [word for word in command.words[1:] if not word.text.startswith("-")]
        if not targets or not targets[-1].known or scope.directory is None:
            scope.directory = None
        else:
            target = targets[-1].text.replace("\\", "/")
            scope.directory = posixpath.normpath(posixpath.join(scope.directory, target))
