"""Classification of pytest's arguments: a full run, a targeted run, or no run."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ci_agent_eval.steering.policy.model import Rules
from ci_agent_eval.steering.policy.pytest_options import (
    ARITY,
    CANCELLED_BY,
    EXPRESSION_OPTIONS,
    INFO_OPTIONS,
    NARROWING_OPTIONS,
    UNNARROWED_VALUES,
)
from ci_agent_eval.steering.policy.words import Word

Reach = Literal["full", "targeted", "nothing"]

_OPTIONS_BY_NAME = re.compile(r"^\"?\$\{?\w*(ARGS|OPTS|OPTIONS?|FLAGS?)\b", re.IGNORECASE)
"""Variables that contain options, judging by their names; they do not narrow a run."""
_LOOKS_LIKE_PATH = re.compile(r"[/\\]|::|\.(?:py|ipynb|md|rst|txt|ya?ml)$|^tests?$|^\.+$")
_DRIVE = re.compile(r"^[A-Za-z]:(?=/)")


@dataclass(frozen=True, slots=True)
class SuiteSelection:
    """The extent of a run, with the reason for this classification."""

    reach: Reach
    reason: str


@dataclass(slots=True)
class _ParsedArguments:
    """Pytest's options and targets."""

    options: dict[str, Word | None] = field(default_factory=dict)
    targets: list[Word] = field(default_factory=list)


def classify_pytest_arguments(
    words: Sequence[Word], directory: str | None, rules: Rules
) -> SuiteSelection:
    """Classify a run of pytest in `directory`, which is None if unknown."""
    arguments = _parse_arguments(words)
    info_option = next((name for name in arguments.options if name in INFO_OPTIONS), None)
    if info_option:
        return SuiteSelection("nothing", f"{info_option} runs no test")
    reason = _explain_narrowing(arguments)
    if reason:
        return _apply_collect_limit(SuiteSelection("targeted", reason), words, rules)
    return _classify_targets(arguments, words, directory, rules)


def _classify_targets(
    arguments: _ParsedArguments, words: Sequence[Word], directory: str | None, rules: Rules
) -> SuiteSelection:
    root = next((word for word in arguments.targets if _is_root(word, directory)), None)
    if root is not None:
        reason = f"{root.source_text} is the whole project, so every test runs"
        return SuiteSelection("full", reason)
    if not arguments.targets:
        reason = "no path, node id, -k, -m or --lf narrows it, so every test runs"
        return SuiteSelection("full", reason)
    if rules.bare_directory_is_full and all(map(_is_directory, arguments.targets)):
        name = arguments.targets[0].source_text
        reason = f"{name} is a bare directory, which counts as a full run here"
        return SuiteSelection("full", reason)
    target = next((word for word in arguments.targets if word.known), arguments.targets[0])
    suffix = "names what to run" if target.known else "is taken to name what to run"
    selection = SuiteSelection("targeted", f"{target.source_text} {suffix}")
    return _apply_collect_limit(selection, words, rules)


def _apply_collect_limit(
    selection: SuiteSelection, words: Sequence[Word], rules: Rules
) -> SuiteSelection:
    if rules.max_collected is None or rules.count is None or not all(w.known for w in words):
        return selection
    collected = rules.count(tuple(word.text for word in words))
    if collected is None or collected <= rules.max_collected:
        return selection
    return SuiteSelection("full", f"it collects {collected} tests, more than {rules.max_collected}")


def _explain_narrowing(arguments: _ParsedArguments) -> str | None:
    """Return the reason for a narrowed run; None if no option narrows it."""
    options = arguments.options
    for name in sorted(EXPRESSION_OPTIONS & options.keys()):
        value = options[name]
        if value is not None and (value.text.strip() if name == "-k" else value.text):
            return f"{name} {value.source_text} selects tests"
    cancelled = {CANCELLED_BY[name] for name in options if name in CANCELLED_BY}
    cancelled |= {
        name
        for name, value in options.items()
        if value and value.text == UNNARROWED_VALUES.get(name)
    }
    parts = [name for name in options if name in NARROWING_OPTIONS and name not in cancelled]
    return f"{parts[0]} runs a part of the tests" if parts else None


def _parse_arguments(words: Sequence[Word]) -> _ParsedArguments:
    arguments = _ParsedArguments()
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word.text == "--":
            arguments.targets.extend(words[at:])
            break
        if word.text.startswith("-") and len(word.text) > 1:
            at = _take_option(arguments, words, at)
        elif word.known or not _OPTIONS_BY_NAME.match(word.text):
            arguments.targets.append(word)
    return arguments


def _take_option(arguments: _ParsedArguments, words: Sequence[Word], at: int) -> int:
    """Parse the option before `at`; return the index of the next argument."""
    word = words[at - 1]
    name, equals, value = word.text.partition("=")
    if name in ARITY or name.startswith("--"):
        arguments.options[name] = Word(value, word.known) if equals else None
        return at if equals else _take_values(arguments, name, words, at)
    return _take_cluster(arguments, words, at)


def _take_cluster(arguments: _ParsedArguments, words: Sequence[Word], at: int) -> int:
    """Parse clustered short options, such as `-xvk name` and `-n4`."""
    word = words[at - 1]
    for index, letter in enumerate(word.text[1:], 2):
        name, rest = f"-{letter}", word.text[index:]
        if ARITY.get(name, "0") == "0":
            arguments.options.setdefault(name, None)
        elif rest:
            arguments.options[name] = Word(rest.removeprefix("="), word.known)
            break
        else:
            return _take_values(arguments, name, words, at)
    return at


def _take_values(arguments: _ParsedArguments, name: str, words: Sequence[Word], at: int) -> int:
    maximum = {"0": 0, "1": 1, "2": 2, "?": 1, "+": len(words), None: 1}[ARITY.get(name)]
    end = at
    while end < len(words) and end - at < maximum and not _is_option(words[end]):
        if name not in ARITY and not _is_foreign_value(words[end]):
            break
        end += 1
    arguments.options[name] = words[at] if end > at else None
    return end


def _is_option(word: Word) -> bool:
    return word.text.startswith("-") and len(word.text) > 1


def _is_foreign_value(word: Word) -> bool:
    """Return whether a word after an unknown option is its value and no target."""
    return word.known and not _LOOKS_LIKE_PATH.search(word.text)


def _is_root(word: Word, directory: str | None) -> bool:
    """Return whether a target contains the working directory of pytest."""
    if not word.known or "::" in word.text or word.text.startswith("@"):
        return False
    text = _DRIVE.sub("", word.text.replace("\\", "/"))
    target = posixpath.normpath(text) if text else "."
    if set(target.split("/")) <= {"*", "**", "."} or set(target.split("/")) == {".."}:
        return True
    return target == "/" or (directory is not None and _is_above(target, directory))


def _is_above(target: str, directory: str) -> bool:
    path = posixpath.normpath(posixpath.join(directory, target))
    if path == "." or set(path.split("/")) == {".."}:
        return True
    return f"{directory}/".startswith(f"{path}/")


def _is_directory(word: Word) -> bool:
    last = word.text.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return word.known and not re.search(r"::|[*?\[]|.\.\w", last) and not last.startswith("@")
