"""Classification of the commands of test runners other than pytest, by their rules. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ci_agent_eval.steering.policy.model import Rules
from ci_agent_eval.steering.policy.pytest_arguments import (
    SuiteSelection,
    classify_pytest_arguments,
    is_option_variable,
)
from ci_agent_eval.steering.policy.runner_program import RunnerProgram
from ci_agent_eval.steering.policy.words import ShellCommand, Word, get_program_name

_OFF = frozenset({"false", "0", "no"})
"""Values that switch an option off."""
_VERSION = re.compile(r"(?<=.)@.*$")
"""The version in `vitest@latest`."""


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
    command: ShellCommand, directory: str | None, rules: Rules, programs: Sequence[RunnerProgram]
) -> SuiteSelection | None:
    """Classify a command of the runners; None if it runs no tests of theirs."""
    return _classify_words(command.words, directory, rules, programs) if command.words else None


def _classify_words(
    words: Sequence[Word], directory: str | None, rules: Rules, programs: Sequence[RunnerProgram]
) -> SuiteSelection | None:
    program = _find_program(words[0], programs)
    if program is None:
        return None
    parsed = _CommandParser(program, programs).parse(words[1:])
    if not _runs_tests(parsed, program):
        return None
    selection = _classify_own_words(parsed, program)
    if selection.reach != "full":
        return selection
    if parsed.wrapped:
        return _classify_words(parsed.wrapped, directory, rules, programs)
    inner: SuiteSelection | None = None
    if program.passes_to == "pytest":
        inner = classify_pytest_arguments(parsed.passed, directory, rules)
    elif program.passes_to and parsed.passed:
        passed_words = (Word(program.passes_to), *parsed.passed)
        inner = _classify_words(passed_words, directory, rules, programs)
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
    given = [
        (value, program.required[name])
        for name, value in parsed.options
        if name in program.required
    ]
    return not given or any(
        value.known and re.search(pattern, part)
        for value, pattern in given
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


class _CommandParser:
    """Parses the words after a runner's program."""

    def __init__(self, program: RunnerProgram, programs: Sequence[RunnerProgram]) -> None:
        self._program = program
        self._others = [each for each in programs if each.runner == program.runner]
        self._phrases = {tuple(phrase.split()): alone for phrase, alone in program.commands.items()}

    def parse(self, words: Sequence[Word]) -> _ParsedCommand:
        """Return the parsed words."""
        parsed = _ParsedCommand(self._phrases.get(()))
        phrase: tuple[str, ...] | None = ()
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word.text in {"--", "-args"}:
                parsed.passed = rest if word.text == "--" else ()
                break
            if word.text[:1] == "-" and len(word.text) > 1:
                parsed.options.extend(self._take_option(word, rest))
            elif is_option_variable(word) or (not phrase and word.text[:1] == "+"):
                continue
            elif phrase is not None and self._is_wrapped(phrase, word):
                parsed.wrapped = [word, *rest]
                break
            else:
                phrase = self._take_word(parsed, phrase, word)
        return parsed

    def _take_word(
        self, parsed: _ParsedCommand, phrase: tuple[str, ...] | None, word: Word
    ) -> tuple[str, ...] | None:
        """Add a word to the subcommand or to the targets; return the subcommand so far."""
        if phrase is not None:
            longer = (*phrase, word.text)
            found = [each for each in self._phrases if _matches(longer, each[: len(longer)])]
            if found:
                exact = next((each for each in found if len(each) == len(longer)), None)
                parsed.alone = self._phrases[exact] if exact else parsed.alone
                return longer
        parsed.targets.append(word)
        return None

    def _is_wrapped(self, phrase: tuple[str, ...], word: Word) -> bool:
        wrappers = self._program.wrappers
        if not wrappers or len(phrase) > 1 or not wrappers.issuperset(phrase):
            return False
        return _find_program(word, self._others) not in {None, self._program}

    def _take_option(self, word: Word, rest: list[Word]) -> Iterator[tuple[str, Word]]:
        """Yield the options in a word with their values, and remove these from the rest."""
        program = self._program
        name, equals, value = word.text.partition("=")
        if program.style == "go":
            name = f"-{name.lstrip('-')}"
        if equals:
            yield name, Word(value, word.known)
        elif name in program.valued:
            yield name, rest.pop(0) if rest else Word("")
        elif name in program.optional:
            yield name, rest.pop(0) if rest and rest[0].text[:1] != "-" else Word("true")
        elif (
            name.startswith("--")
            or program.style == "go"
            or name in program.nothing | program.narrowing
        ):
            yield name, Word("true")
        else:
            yield from self._take_cluster(word, rest)

    def _take_cluster(self, word: Word, rest: list[Word]) -> Iterator[tuple[str, Word]]:
        letters = word.text[1:] if self._program.style == "posix" else word.text[1:2]
        for index, letter in enumerate(letters, 2):
            name, value = f"-{letter}", word.text[index:]
            if name in self._program.valued | self._program.optional:
                if value or name in self._program.valued:
                    yield (
                        name,
                        Word(value, word.known) if value else (rest.pop(0) if rest else Word("")),
                    )
                return
            yield name, Word("true")


def _matches(phrase: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    return len(phrase) == len(pattern) and all(
        expected in {"*", text} for text, expected in zip(phrase, pattern, strict=True)
    )
