"""Would this command run the whole suite? The one question of steering, answered for text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from ci_agent_eval.steering.policy.model import Finding, Rules, Shell
from ci_agent_eval.steering.policy.normal import normal_form
from ci_agent_eval.steering.policy.option_parser import Layer
from ci_agent_eval.steering.policy.runs import Run, runs_in
from ci_agent_eval.steering.policy.words import Command, Effort, Scope, Text, known
from ci_agent_eval.steering.shells.documents import without_documents

LONGEST = 65_536
"""Characters of a text that is read; a longer one is answered without, and let through."""
_LONGEST_DOCUMENTS = 2_000_000
"""Characters of a text whose here-documents are set aside before that is counted."""
_NO_RULES = Rules()
_EFFORT = 300_000
"""Characters that are read beside those of the command: of texts within it, and of values."""
_QUOTING = str.maketrans("", "", "'\"\\^`\r\n")
_PUT_TOGETHER = re.compile(r"[${%]|powershell|pwsh", re.IGNORECASE)
"""What can stand for a word that is nowhere written: expansions, and encoded commands."""
_NOT_NAMED = "nothing in it names pytest"
_NAMES = ("pytest", "py.test", "ptw", "hatch", "rye")
"""One of these is in every text that runs pytest and has no expansion."""


def detect(text: str, *, shell: Shell = "bash", rules: Rules = _NO_RULES) -> Finding:
    """Say what a shell would do with a text. Never raises.

    Steering is no security boundary: what cannot be followed to its end counts as no full run.
    """
    plain = plain_of(text)
    long = len(plain) > LONGEST
    if long and (shell != "bash" or not _is_mostly_documents(plain)):
        return _unread(plain)
    normal = " ".join(plain.split()) if long else normal_form(plain, shell)
    if not _may_run(plain, rules):
        return Finding(False, False, _NOT_NAMED, normal=normal)
    return _finding([Text(plain, shell)], normal, rules, named=_is_named(plain))


def detect_argv(words: Sequence[str], *, rules: Rules = _NO_RULES) -> Finding:
    """Say what a program started with these words would do. Never raises."""
    if len(words) == 1 and " " in words[0].strip():
        return detect(words[0], rules=rules)
    plain = [plain_of(word) for word in words]
    if sum(map(len, plain)) > LONGEST:
        return _unread(" ".join(plain))
    named = _is_named(" ".join(plain))
    return _finding([Command(known(*plain))], shlex.join(plain), rules, named=named)


def plain_of(text: str) -> str:
    """Return the text without what no shell can be given: NUL, and halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")


def _is_mostly_documents(text: str) -> bool:
    """Say whether a long text of bash is short but for its here-documents, such as new files."""
    return len(text) <= _LONGEST_DOCUMENTS and len(without_documents(text)[0]) <= LONGEST


def _unread(text: str) -> Finding:
    reason = f"it is longer than {LONGEST} characters and was not read, so it is let through"
    return Finding(False, False, reason, normal=" ".join(text.split()))


def _may_run(text: str, rules: Rules) -> bool:
    """Can it run pytest at all? Sound and quick: most commands of an agent cannot."""
    bare = text.translate(_QUOTING).casefold()
    if any(name in bare for name in _NAMES) or _PUT_TOGETHER.search(text):
        return True
    return any(alias.split()[0].casefold() in bare for alias in rules.aliases if alias.split())


def _is_named(text: str) -> bool:
    return any(name in text.translate(_QUOTING).casefold() for name in ("pytest", "py.test"))


def _finding(layers: Iterable[Layer], normal: str, rules: Rules, *, named: bool) -> Finding:
    scope = Scope(Effort(characters=_EFFORT + len(normal)))
    runs = list(runs_in(layers, scope, rules))
    for reach in ("full", "targeted", "nothing"):
        for run in runs:
            if run.verdict.reach == reach:
                return _found(run, normal)
    reason = "it names pytest, but no command in it runs it" if named else _NOT_NAMED
    if scope.effort.spent:
        reason = "it is too long or too deep to be followed to its end, so it is let through"
    return Finding(False, False, reason, normal=normal)


def _found(run: Run, normal: str) -> Finding:
    return Finding(
        pytest=True,
        full_suite=run.verdict.reach == "full",
        reason=run.verdict.reason,
        command=run.command,
        normal=normal,
    )
