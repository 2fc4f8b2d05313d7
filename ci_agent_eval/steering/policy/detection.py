"""Would this command run the whole suite? The one question of steering, answered for text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from ci_agent_eval.steering.policy.model import DetectionResult, Rules, Shell
from ci_agent_eval.steering.policy.normalization import normalize_command
from ci_agent_eval.steering.policy.option_parser import Layer
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
"""Characters of a text that is read; a longer one is answered without, and let through."""
_MAX_HEREDOC_CHARACTERS = 2_000_000
"""Characters of a text whose here-documents are set aside before that is counted."""
_NO_RULES = Rules()
_EXTRA_CHARACTERS = 300_000
"""Characters that are read beside those of the command: of texts within it, and of values."""
_QUOTING = str.maketrans("", "", "'\"\\^`\r\n")
_EXPANSION = re.compile(r"[${%]|powershell|pwsh", re.IGNORECASE)
"""What can stand for a word that is nowhere written: expansions, and encoded commands."""
_NOT_NAMED = "nothing in it names pytest"
_NAMES = ("pytest", "py.test", "ptw", "hatch", "rye")
"""One of these is in every text that runs pytest and has no expansion."""


def detect_in_text(
    text: str, *, shell: Shell = "bash", rules: Rules = _NO_RULES
) -> DetectionResult:
    """Say what a shell would do with a text. Never raises.

    Steering is no security boundary: what cannot be followed to its end counts as no full run.
    """
    plain = drop_invalid_characters(text)
    long = len(plain) > MAX_TEXT_CHARACTERS
    if long and (shell != "bash" or not _is_mostly_heredocs(plain)):
        return _build_unread_result(plain)
    normal = " ".join(plain.split()) if long else normalize_command(plain, shell)
    if not _may_run_pytest(plain, rules):
        return DetectionResult(False, False, _NOT_NAMED, normal_form=normal)
    return _detect_in_layers([ShellScript(plain, shell)], normal, rules, named=_names_pytest(plain))


def detect_in_argv(words: Sequence[str], *, rules: Rules = _NO_RULES) -> DetectionResult:
    """Say what a program started with these words would do. Never raises."""
    if len(words) == 1 and " " in words[0].strip():
        return detect_in_text(words[0], rules=rules)
    plain = [drop_invalid_characters(word) for word in words]
    if sum(map(len, plain)) > MAX_TEXT_CHARACTERS:
        return _build_unread_result(" ".join(plain))
    named = _names_pytest(" ".join(plain))
    return _detect_in_layers(
        [ShellCommand(make_words(*plain))], shlex.join(plain), rules, named=named
    )


def drop_invalid_characters(text: str) -> str:
    """Return the text without what no shell can be given: NUL, and halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")


def _is_mostly_heredocs(text: str) -> bool:
    """Say whether a long text of bash is short but for its here-documents, such as new files."""
    return (
        len(text) <= _MAX_HEREDOC_CHARACTERS
        and len(extract_heredocs(text)[0]) <= MAX_TEXT_CHARACTERS
    )


def _build_unread_result(text: str) -> DetectionResult:
    reason = (
        f"it is longer than {MAX_TEXT_CHARACTERS} characters and was not read, so it is let through"
    )
    return DetectionResult(False, False, reason, normal_form=" ".join(text.split()))


def _may_run_pytest(text: str, rules: Rules) -> bool:
    """Can it run pytest at all? Sound and quick: most commands of an agent cannot."""
    bare = text.translate(_QUOTING).casefold()
    if any(name in bare for name in _NAMES) or _EXPANSION.search(text):
        return True
    return any(alias.split()[0].casefold() in bare for alias in rules.aliases if alias.split())


def _names_pytest(text: str) -> bool:
    return any(name in text.translate(_QUOTING).casefold() for name in ("pytest", "py.test"))


def _detect_in_layers(
    layers: Iterable[Layer], normal: str, rules: Rules, *, named: bool
) -> DetectionResult:
    scope = ShellScope(ReadingLimits(characters=_EXTRA_CHARACTERS + len(normal)))
    runs = list(find_pytest_runs(layers, scope, rules))
    for reach in ("full", "targeted", "nothing"):
        for run in runs:
            if run.verdict.reach == reach:
                return _build_result(run, normal)
    reason = "it names pytest, but no command in it runs it" if named else _NOT_NAMED
    if scope.limits.spent:
        reason = "it is too long or too deep to be followed to its end, so it is let through"
    return DetectionResult(False, False, reason, normal_form=normal)


def _build_result(run: PytestRun, normal: str) -> DetectionResult:
    return DetectionResult(
        pytest=True,
        full_suite=run.verdict.reach == "full",
        reason=run.verdict.reason,
        command=run.command,
        normal_form=normal,
    )
