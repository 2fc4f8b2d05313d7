"""Classification of commands other than pytest that run tests: other runners and aliases. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ci_agent_eval.steering.policy.model import Rules, RunnerProgram
from ci_agent_eval.steering.policy.options import is_option, take_option
from ci_agent_eval.steering.policy.pytest_arguments import (
    SuiteSelection,
    classify_pytest_arguments,
    is_option_variable,
)
from ci_agent_eval.steering.policy.words import ShellCommand, Word, get_program_name
from ci_agent_eval.steering.runners import RUNNER_NAMES, load_runners

_OFF = frozenset({"false", "0", "no"})
"""Values that switch an option off."""
_VERSION = re.compile(r"(?<=.)@.*$")
"""The version in `vitest@latest`."""


_ANY_ORDER = frozenset({"make", "gmake", "just", "task", "rake"})
"""Programs that take several targets; with `-n` they run nothing."""
_SCRIPT_RUNNERS = frozenset({"npm", "yarn", "pnpm", "bun"})
"""`npm test` is short for `npm run test`."""
_INFO_OPTIONS = frozenset(
    {"-h", "--help", "--version", "-l", "--list", "--dry-run", "--just-print"}
)
_SELECTS = re.compile(r"-|(?:\./)?tests?/|.*(?:::|\.py$)")
"""What selects tests, among values and arguments that may mean anything, such as `VERBOSE=1`."""


@dataclass(slots=True)
class _ParsedCommand:
    """A runner's command: its subcommand, options and targets."""

    alone: str | None = None
    """What the subcommand runs without targets; None if it is unknown."""
    options: list[tuple[str, Word]] = field(default_factory=list)
    targets: list[Word] = field(default_factory=list)
    passed: Sequence[Word] = ()
    """The words after `--`."""
    wrapped: Sequence[Word] = ()
    """Another program of the runner, with its arguments."""


def classify_runner_command(
    words: Sequence[Word], directory: str | None, rules: Rules, programs: Sequence[RunnerProgram]
) -> SuiteSelection | None:
    """Classify a command of the runners; None if it runs no tests of theirs."""
    program = _find_program(words[0], programs)
    if program is None:
        return None
    parsed = _parse_command(words[1:], program, programs)
    if not _runs_tests(parsed, program):
        return None
    selection = _classify_own_words(parsed, program)
    if selection.reach != "full":
        return selection
    if parsed.wrapped:
        return classify_runner_command(parsed.wrapped, directory, rules, programs)
    inner: SuiteSelection | None = None
    if program.passes_to == "pytest":
        inner = classify_pytest_arguments(parsed.passed, directory, rules)
    elif program.passes_to and parsed.passed:
        passed_words = (Word(program.passes_to), *parsed.passed)
        inner = classify_runner_command(passed_words, directory, rules, programs)
    return selection if inner is None or inner.reach == "full" else inner


def _find_program(word: Word, programs: Sequence[RunnerProgram]) -> RunnerProgram | None:
    name = _VERSION.sub("", get_program_name(word)) if word.known else ""
    return next((program for program in programs if name in program.names), None)


def _runs_tests(parsed: _ParsedCommand, program: RunnerProgram) -> bool:
    if parsed.wrapped:
        return True
    if parsed.alone is None or (parsed.targets and not program.takes_targets):
        return False
    if program.goals and not any(word.text in program.goals for word in parsed.targets):
        return False
    required = [
        (value, program.required[name])
        for name, value in parsed.options
        if name in program.required
    ]
    return not required or any(
        value.known and re.search(pattern, part)
        for value, pattern in required
        for part in value.text.split(",")
    )


def _classify_own_words(parsed: _ParsedCommand, program: RunnerProgram) -> SuiteSelection:
    reason = _explain_nothing(parsed, program)
    if reason:
        return SuiteSelection("nothing", reason, program.runner)
    reason = _explain_narrowing(parsed, program)
    if reason:
        return SuiteSelection("targeted", reason, program.runner)
    reason = "nothing narrows it, so every test runs"
    return SuiteSelection("full", reason, program.runner, _list_selecting(parsed, program))


def _explain_nothing(parsed: _ParsedCommand, program: RunnerProgram) -> str | None:
    """Return the reason why no test runs; None if tests run."""
    if parsed.alone == "nothing":
        return "this command runs no test"
    for name, value in parsed.options:
        if name in program.nothing and value.text not in _OFF:
            return f"{name} runs no test"
    return None


def _explain_narrowing(parsed: _ParsedCommand, program: RunnerProgram) -> str | None:
    """Return the reason for a narrowed run; None if nothing narrows it."""
    for name, value in parsed.options:
        if name in program.narrowing and _narrows(value, program):
            return f"{name} selects tests"
    targets = () if program.goals or parsed.wrapped else parsed.targets
    if any(word.text in program.whole for word in targets):
        return None
    if targets:
        return f"{targets[0].source_text} names what to run"
    return "it runs only a part of the tests" if parsed.alone == "targeted" else None


def _narrows(value: Word, program: RunnerProgram) -> bool:
    if not value.text or value.text in _OFF or value.text in program.whole_values:
        return False
    return not all(part.startswith("!") for part in value.text.split(","))


def _list_selecting(parsed: _ParsedCommand, program: RunnerProgram) -> tuple[str, ...]:
    """Return the sorted options that change which tests a full run has."""
    options = program.selecting | program.required.keys()
    return tuple(
        sorted({f"{name}={value.text}" for name, value in parsed.options if name in options})
    )


def _parse_command(
    words: Sequence[Word], program: RunnerProgram, programs: Sequence[RunnerProgram]
) -> _ParsedCommand:
    """Parse the words after a runner's program."""
    parsed = _ParsedCommand()
    others = [each for each in programs if each.runner == program.runner and each != program]
    at = 0
    while at < len(words):
        word = words[at]
        if word.text in {"--", "-args"}:
            parsed.passed = words[at + 1 :] if word.text == "--" else ()
            break
        if is_option(word):
            options, at = take_option(words, at, program.arities, program.style)
            parsed.options += [(name, value or Word("true")) for name, value in options]
            continue
        may_wrap = len(parsed.targets) < 2 and all(
            w.text in program.wrappers for w in parsed.targets
        )
        if program.wrappers and may_wrap and _find_program(word, others):
            parsed.wrapped = words[at:]
            break
        at += 1
        if not is_option_variable(word) and (parsed.targets or word.text[:1] != "+"):
            parsed.targets.append(word)
    _take_subcommand(parsed, program)
    return parsed


def _take_subcommand(parsed: _ParsedCommand, program: RunnerProgram) -> None:
    """Remove the longest subcommand of the program from the targets."""
    texts = [word.text for word in parsed.targets]
    length = -1
    for phrase, alone in program.commands.items():
        pattern = phrase.split()
        is_match = len(pattern) <= len(texts) and all(
            expected in {"*", text} for text, expected in zip(texts, pattern, strict=False)
        )
        if is_match and len(pattern) > length:
            length, parsed.alone = len(pattern), alone
    parsed.targets = parsed.targets[max(length, 0) :]


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
        own = classify_runner_command(command.words, directory, rules, load_runners(RUNNER_NAMES))
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
