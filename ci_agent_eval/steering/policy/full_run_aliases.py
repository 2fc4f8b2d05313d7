"""Commands that the user says count as a full run, such as `make test` and `tox`."""

from __future__ import annotations

from collections.abc import Sequence

from ci_agent_eval.steering.policy.model import Rules
from ci_agent_eval.steering.policy.pytest_arguments import SuiteSelection, classify_pytest_arguments
from ci_agent_eval.steering.policy.words import ShellCommand, Word, get_program_name

_ANY_ORDER = frozenset({"make", "gmake", "just", "task", "rake"})
"""They take several targets at once."""
_SCRIPT_RUNNERS = frozenset({"npm", "yarn", "pnpm", "bun"})
"""`npm test` is short for `npm run test`."""
_INFO_OPTIONS = frozenset(
    {"-h", "--help", "--version", "-l", "--list", "--dry-run", "--just-print"}
)


def classify_alias(
    command: ShellCommand, directory: str | None, rules: Rules
) -> SuiteSelection | None:
    """Say what a command does that the user named; None if he named no such command.

    What stands behind `--`, or in a value such as `ARGS="-k name"`, may narrow it as it would
    narrow pytest.
    """
    for alias in rules.aliases:
        if not _matches_alias(command.words, alias.split()):
            continue
        idle = next((word.text for word in command.words[1:] if word.text in _INFO_OPTIONS), None)
        if idle:
            return SuiteSelection("nothing", f"{idle} runs no test")
        for passed_on in _get_passed_arguments(command.words):
            verdict = classify_pytest_arguments(passed_on, directory, rules)
            if verdict.reach != "full":
                return verdict
        return SuiteSelection("full", f"{alias} counts as a full run here")
    return None


def _matches_alias(words: Sequence[Word], names: Sequence[str]) -> bool:
    if not words or not names or get_program_name(words[0]) != names[0].casefold():
        return False
    left = list(names[1:])
    after_option = False
    for word in words[1:]:
        if not left or word.text == "--":
            break
        if word.text == left[0]:
            left.pop(0)
        elif names[0] in _SCRIPT_RUNNERS and word.text in {"run", "run-script"}:
            continue
        elif not _may_skip(word, after_option=after_option) and names[0] not in _ANY_ORDER:
            break
        after_option = word.text.startswith("-")
    return not left


def _may_skip(word: Word, *, after_option: bool) -> bool:
    return word.text.startswith("-") or "=" in word.text or after_option


def _get_passed_arguments(words: Sequence[Word]) -> list[list[Word]]:
    """Return the arguments that the command passes on to pytest."""
    found = [
        [Word(part) for part in word.text.partition("=")[2].split()]
        for word in words[1:]
        if "=" in word.text and not word.text.startswith("-")
    ]
    dashes = next((at for at, word in enumerate(words) if word.text == "--"), None)
    return found if dashes is None else [*found, list(words[dashes + 1 :])]
