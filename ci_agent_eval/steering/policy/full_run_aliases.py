"""Commands that settings define as full runs, such as `make test` and `tox`."""

from __future__ import annotations

from collections.abc import Sequence

from ci_agent_eval.steering.policy.model import Rules
from ci_agent_eval.steering.policy.pytest_arguments import SuiteSelection, classify_pytest_arguments
from ci_agent_eval.steering.policy.runner_commands import classify_runner_command
from ci_agent_eval.steering.policy.words import ShellCommand, Word, get_program_name

_ANY_ORDER = frozenset({"make", "gmake", "just", "task", "rake"})
"""Programs that take several targets."""
_SCRIPT_RUNNERS = frozenset({"npm", "yarn", "pnpm", "bun"})
"""`npm test` is short for `npm run test`."""
_INFO_OPTIONS = frozenset(
    {"-h", "--help", "--version", "-l", "--list", "--dry-run", "--just-print"}
)


def classify_alias(
    command: ShellCommand, directory: str | None, rules: Rules
) -> SuiteSelection | None:
    """Classify a command that the settings name as an alias; None for other commands.

    Arguments after `--`, or in a value such as `ARGS="-k name"`, may narrow the run as they
    narrow pytest; a runner with its own rules, such as cargo, follows these.
    """
    for alias in rules.aliases:
        if not _matches_alias(command.words, alias.split()):
            continue
        own = classify_runner_command(command, directory, rules, rules.alias_runners)
        if own is not None and own.reach != "full":
            return own
        info_option = next(
            (word.text for word in command.words[1:] if word.text in _INFO_OPTIONS), None
        )
        if info_option:
            return SuiteSelection("nothing", f"{info_option} runs no test")
        for arguments in _get_passed_arguments(command.words):
            selection = classify_pytest_arguments(arguments, directory, rules)
            if selection.reach != "full":
                return selection
        return SuiteSelection("full", f"{alias} counts as a full run here", runner=alias)
    return None


def _matches_alias(words: Sequence[Word], names: Sequence[str]) -> bool:
    if not words or not names or get_program_name(words[0]) != names[0].casefold():
        return False
    remaining = list(names[1:])
    after_option = False
    for word in words[1:]:
        if not remaining or word.text == "--":
            break
        if word.text == remaining[0]:
            remaining.pop(0)
        elif names[0] in _SCRIPT_RUNNERS and word.text in {"run", "run-script"}:
            continue
        elif not _may_skip(word, after_option=after_option) and names[0] not in _ANY_ORDER:
            break
        after_option = word.text.startswith("-")
    return not remaining


def _may_skip(word: Word, *, after_option: bool) -> bool:
    return word.text.startswith("-") or "=" in word.text or after_option


def _get_passed_arguments(words: Sequence[Word]) -> list[list[Word]]:
    """Return the groups of arguments that the command passes to pytest."""
    found = [
        [Word(part) for part in word.text.partition("=")[2].split()]
        for word in words[1:]
        if "=" in word.text and not word.text.startswith("-")
    ]
    dashes_at = next((at for at, word in enumerate(words) if word.text == "--"), None)
    return found if dashes_at is None else [*found, list(words[dashes_at + 1 :])]
