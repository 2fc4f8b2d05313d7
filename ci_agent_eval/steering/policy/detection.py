"""Detection of full-suite pytest runs in a command."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ci_agent_eval.steering.policy.mentions import may_run_tests, remove_quoting
from ci_agent_eval.steering.policy.model import DetectionResult, Rules, Shell
from ci_agent_eval.steering.policy.option_parser import Layer
from ci_agent_eval.steering.policy.pytest_arguments import normalize_path
from ci_agent_eval.steering.policy.pytest_runs import PytestRun, find_pytest_runs
from ci_agent_eval.steering.policy.words import (
    ReadingLimits,
    ShellCommand,
    ShellScope,
    ShellScript,
    make_words,
)
from ci_agent_eval.steering.shells.heredocs import extract_heredocs

MAX_TEXT_CHARACTERS = 65_536
"""Maximum length of a text that is parsed; longer texts are let through."""
_MAX_HEREDOC_CHARACTERS = 2_000_000
"""Maximum length of a text with here-documents, which do not count as parsed."""
_NO_RULES = Rules()
_EXTRA_CHARACTERS = 300_000
"""Maximum number of characters read beyond the command: of nested texts and of values."""
_NOT_NAMED = "nothing in it names pytest"


def detect_in_text(
    text: str, *, shell: Shell = "bash", rules: Rules = _NO_RULES, folder: str = "."
) -> DetectionResult:
    """Detect whether a shell text in a working folder runs the full suite. Never raises.

    Steering is no security boundary: a text that exceeds the limits counts as no full run.
    """
    plain = drop_invalid_characters(text)
    is_long = len(plain) > MAX_TEXT_CHARACTERS
    if is_long and (shell != "bash" or not _is_mostly_heredocs(plain)):
        return _build_unread_result()
    if not may_run_tests(plain, rules.commands):
        return DetectionResult(False, False, _NOT_NAMED)
    return _detect_in_layers([ShellScript(plain, shell)], plain, rules, folder)


def detect_in_argv(
    words: Sequence[str], *, rules: Rules = _NO_RULES, folder: str = "."
) -> DetectionResult:
    """Detect whether a program and its arguments run the full suite. Never raises."""
    if len(words) == 1 and " " in words[0].strip():
        return detect_in_text(words[0], rules=rules, folder=folder)
    plain = [drop_invalid_characters(word) for word in words]
    if sum(map(len, plain)) > MAX_TEXT_CHARACTERS:
        return _build_unread_result()
    text = " ".join(plain)
    if not may_run_tests(text, rules.commands):
        return DetectionResult(False, False, _NOT_NAMED)
    return _detect_in_layers([ShellCommand(make_words(*plain))], text, rules, folder)


def drop_invalid_characters(text: str) -> str:
    """Return the text without NUL and lone surrogates, which no shell accepts."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")


def _is_mostly_heredocs(text: str) -> bool:
    """Return whether a long bash text is short without its here-documents, such as new files."""
    if len(text) > _MAX_HEREDOC_CHARACTERS:
        return False
    return len(extract_heredocs(text)[0]) <= MAX_TEXT_CHARACTERS


def _build_unread_result() -> DetectionResult:
    reason = (
        f"it is longer than {MAX_TEXT_CHARACTERS} characters and was not read, so it is let through"
    )
    return DetectionResult(False, False, reason)


def _names_pytest(text: str) -> bool:
    return any(name in remove_quoting(text) for name in ("pytest", "py.test"))


def _detect_in_layers(
    layers: Iterable[Layer], text: str, rules: Rules, folder: str
) -> DetectionResult:
    """Detect full runs in the layers of a text."""
    limits = ReadingLimits(characters=_EXTRA_CHARACTERS + len(text))
    scope = ShellScope(limits, directory=normalize_path(folder))
    runs = list(find_pytest_runs(layers, scope, rules))
    for reach in ("full", "targeted", "nothing"):
        for run in runs:
            if run.selection.reach == reach:
                return _build_result(run, runs)
    reason = "it names pytest, but no command in it runs it" if _names_pytest(text) else _NOT_NAMED
    if scope.limits.is_spent:
        reason = "it is too long or too deep to be followed to its end, so it is let through"
    return DetectionResult(False, False, reason)


def _build_result(run: PytestRun, runs: Iterable[PytestRun]) -> DetectionResult:
    return DetectionResult(
        pytest=True,
        full_suite=run.selection.reach == "full",
        reason=run.selection.reason,
        command=run.command,
        targeted=run.selection.reach == "targeted",
        intents=tuple(
            dict.fromkeys(each.intent for each in runs if each.selection.reach == "full")
        ),
    )
