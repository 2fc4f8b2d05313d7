"""Commands that settings define as full runs, such as `make test` and `tox`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from ci_agent_eval.steering.policy.model import Rules
from ci_agent_eval.steering.policy.pytest_arguments import SuiteSelection, classify_pytest_arguments
from ci_agent_eval.steering.policy.runner_commands import classify_runner_command
from ci_agent_eval.steering.policy.words import ShellCommand, Word, get_program_name

_ANY_ORDER = frozenset({"make", "gmake", "just", "task", "rake"})
"""Programs that take several targets; with `-n` they run nothing."""
_SCRIPT_RUNNERS = frozenset({"npm", "yarn", "pnpm", "bun"})
"""`npm test` is short for `npm run test`."""
_INFO_OPTIONS = frozenset(
    {"-h", "--help", "--version", "-l", "--list", "--dry-run", "--just-print"}
)
_SELECTS = re.compile(r"-|(?:\./)?tests?/|.*(?:::|\.py$)")
"""What selects tests, among values and arguments that may mean anything, such as `VERBOSE=1`."""


def classify_alias(
    command: ShellCommand, directory: str | None, rules: Rules
) -> SuiteSelection | None:
    """Classify a command that the settings name as an alias; None for other commands.

    Arguments after `--`, a recipe's of `just`, or in a value such as `ARGS="-k name"`, may narrow
    the run as they narrow pytest; a runner with its own rules, such as cargo, follows these.
    """
    for alias in rules.aliases:
        if not _matches_alias(command.words, alias.split()):
            continue
        own = classify_runner_command(command, directory, rules, rules.alias_runners)
        if own is not None and own.reach != "full":
            return own
        info_option = _find_info_option(command.words)
        if info_option:
            return SuiteSelection("nothing", f"{info_option} runs no test")
        for arguments in _get_passed_arguments(command.words, alias.split()[-1]):
            selection = classify_pytest_arguments(arguments, directory, rules)
            if selection.reach != "full":
                return selection
        return SuiteSelection("full", f"{alias} counts as a full run here", runner=alias)
    return None


def _matches_alias(words: Sequence[Word], names: Sequence[str]) -> bool:
    if not words or not names or not _is_program(words[0], names[0]):
        return False
    if list(names) == ["nox"] and _chooses_other_session(words):
        return False
    remaining = list(names[1:])
    after_option = False
    for word in words[1:]:
        if not remaining or word.text == "--":
            break
        is_option = word.text.startswith("-")
        if word.text == remaining[0]:
            remaining.pop(0)
        elif names[0] in _SCRIPT_RUNNERS and word.text in {"run", "run-script"}:
            continue
        elif not (after_option or is_option or "=" in word.text or names[0] in _ANY_ORDER):
            break
        after_option = is_option
    return not remaining


def _is_program(word: Word, name: str) -> bool:
    """Return whether a command's first word is an alias' program: by its path, if it names one."""
    if "/" in name:
        return f"/{word.text}".endswith("/" + name.removeprefix("./"))
    return get_program_name(word) == name.casefold()


def _chooses_other_session(words: Sequence[Word]) -> bool:
    """Return whether nox runs only sessions whose names are not of tests."""
    return any(
        option.text in {"-s", "--session", "--sessions", "-t", "--tags"}
        and "test" not in chosen.text
        for option, chosen in pairwise(words)
    )


def _find_info_option(words: Sequence[Word]) -> str | None:
    options = _INFO_OPTIONS | ({"-n"} if get_program_name(words[0]) in _ANY_ORDER else set())
    return next((word.text for word in words[1:] if word.text in options), None)


def _get_passed_arguments(words: Sequence[Word], target: str) -> list[list[Word]]:
    """Return the groups of arguments that the command passes to pytest.

    `target` is the last word of the alias; what follows it are the arguments of a recipe.
    """
    texts = [word.text for word in words]
    groups = [
        [Word(part) for part in text.partition("=")[2].split()]
        for text in texts[1:]
        if "=" in text and not text.startswith("-")
    ]
    if get_program_name(words[0]) == "just" and target in texts:
        groups.append(list(words[texts.index(target) + 1 :]))
    groups = [group for group in groups if any(_SELECTS.match(word.text) for word in group)]
    return [*groups, list(words[texts.index("--") + 1 :])] if "--" in texts else groups
