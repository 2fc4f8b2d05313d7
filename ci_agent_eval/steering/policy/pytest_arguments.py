"""Classification of pytest's arguments: a full run, a targeted run, or no run."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ci_agent_eval.steering.policy.model import Arity, Rules
from ci_agent_eval.steering.policy.options import Option, is_option, take_option
from ci_agent_eval.steering.policy.words import Word
from ci_agent_eval.steering.tables import read_sections

OPTIONS = {name: frozenset(words) for name, words in read_sections("pytest_options.txt").items()}
"""The sets of options in the table, by their names."""
_ARITIES: Mapping[str, Arity] = {"": "0", "=": "1", "==": "2", "?": "?", "+": "+"}
ARITY = {
    option.rstrip("=?+"): _ARITIES[option[len(option.rstrip("=?+")) :]]
    for option in OPTIONS["arity"]
}
"""Arities of the options by their spelling."""
CANCELLED_BY = {"--testmon-noselect": "--testmon", "--no-testmon": "--testmon"}
"""Options that cancel a narrowing option."""
_UNNARROWED_VALUES = {"--picked": "first"}
"""Values with which a narrowing option only orders the run."""

Reach = Literal["full", "targeted", "nothing"]

_OPTIONS_BY_NAME = re.compile(r"^\"?\$\{?\w*(ARGS|OPTS|OPTIONS?|FLAGS?)\b", re.IGNORECASE)
"""Variables that contain options, judging by their names; they do not narrow a run."""
_DRIVE = re.compile(r"^[A-Za-z]:(?=/)")


@dataclass(frozen=True, slots=True)
class SuiteSelection:
    """The extent of a run, with the reason for this classification.

    `arguments` are the sorted arguments that select tests, such as `--ignore=tests/slow`; see
    `RunIntent.selection`.
    """

    reach: Reach
    reason: str
    runner: str = "pytest"
    arguments: tuple[str, ...] = ()


def classify_pytest_arguments(
    words: Sequence[Word], directory: str | None, rules: Rules
) -> SuiteSelection:
    """Classify a run of pytest in `directory`, which is None if unknown."""
    options, targets = _parse_arguments(words)
    info_option = next((name for name, _ in options if name in OPTIONS["info"]), None)
    if info_option:
        return SuiteSelection("nothing", f"{info_option} runs no test")
    narrowing = _find_narrowing(dict(options))
    selection = _classify_selection(narrowing, targets, directory, rules)
    selecting = [*narrowing, *filter(_selects_tests, options)]
    names = {name if value is None else f"{name}={value.text}" for name, value in selecting}
    return replace(selection, arguments=tuple(sorted({*names, *selection.arguments})))


def _classify_selection(
    narrowing: Sequence[Option], targets: Sequence[Word], directory: str | None, rules: Rules
) -> SuiteSelection:
    paths = tuple(normalize_path(word.text) for word in targets)
    root = next((word for word in targets if _is_root(word, directory)), None)
    if narrowing:
        reason = _explain_narrowing(*narrowing[0])
        return SuiteSelection("targeted", reason, arguments=() if root else paths)
    if root is not None:
        reason = f"{root.source_text} is the whole project, so every test runs"
        return SuiteSelection("full", reason)
    if not targets:
        reason = "no path, node id, -k, -m or --lf narrows it, so every test runs"
        return SuiteSelection("full", reason)
    if rules.bare_directory == "full" and all(map(_is_directory, targets)):
        reason = f"{targets[0].source_text} is a bare directory, which counts as a full run here"
        return SuiteSelection("full", reason, arguments=paths)
    if rules.bare_directory == "covers_testpaths" and _covers_testpaths(targets, directory, rules):
        names = " ".join(word.source_text for word in targets)
        return SuiteSelection("full", f"{names} covers pytest's testpaths, so every test runs")
    target = next((word for word in targets if word.known), targets[0])
    suffix = "names what to run" if target.known else "is taken to name what to run"
    return SuiteSelection("targeted", f"{target.source_text} {suffix}", arguments=paths)


def _covers_testpaths(targets: Sequence[Word], directory: str | None, rules: Rules) -> bool:
    """Return whether each of the project's `testpaths` is in a directory among the targets."""
    if directory is None or rules.find_project is None:
        return False
    project = rules.find_project(directory)
    if project is None or not project.testpaths:
        return False
    covered = [
        posixpath.normpath(posixpath.join(project.folder, normalize_path(word.text)))
        for word in targets
        if _is_directory(word)
    ]
    return all(
        any(f"{testpath}/".startswith(f"{path}/") for path in covered)
        for testpath in project.testpaths
    )


def _find_narrowing(options: Mapping[str, Word | None]) -> list[Option]:
    """Return the options that narrow the run, expressions first."""
    expressions = [
        (name, value)
        for name in sorted(OPTIONS["expression"] & options.keys())
        if (value := options[name]) and (value.text.strip() if name == "-k" else value.text)
    ]
    cancelled = {CANCELLED_BY[name] for name in options if name in CANCELLED_BY}
    cancelled |= {
        name
        for name, value in options.items()
        if value and value.text == _UNNARROWED_VALUES.get(name)
    }
    parts = [each for each in options.items() if each[0] in OPTIONS["narrowing"] - cancelled]
    return [*expressions, *parts]


def _explain_narrowing(name: str, value: Word | None) -> str:
    if name in OPTIONS["expression"] and value is not None:
        return f"{name} {value.source_text} selects tests"
    return f"{name} runs a part of the tests"


def _selects_tests(option: Option) -> bool:
    """Return whether an option selects tests; those of the project mostly do: `--run-slow`."""
    name, value = option
    if name in {"-o", "--override-ini"} and value is not None:
        return value.text.partition("=")[0] in OPTIONS["selecting-keys"]
    return name in OPTIONS["selecting"] or (name.startswith("--") and name not in ARITY)


def _parse_arguments(words: Sequence[Word]) -> tuple[list[Option], list[Word]]:
    """Return the options and the targets."""
    options: list[Option] = []
    targets: list[Word] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word.text == "--":
            return options, [*targets, *words[at + 1 :]]
        if is_option(word):
            parsed, at = take_option(words, at, ARITY, "argparse")
            options += parsed
            continue
        at += 1
        if not is_option_variable(word):
            targets.append(word)
    return options, targets


def is_option_variable(word: Word) -> bool:
    """Return whether a word is a variable that contains options, judging by its name."""
    return not word.known and _OPTIONS_BY_NAME.match(word.text) is not None


def _is_root(word: Word, directory: str | None) -> bool:
    """Return whether a target contains the working directory of pytest."""
    if not word.known or "::" in word.text or word.text.startswith("@"):
        return False
    target = normalize_path(word.text)
    if set(target.split("/")) <= {"*", "**", "."} or set(target.split("/")) == {".."}:
        return True
    return target == "/" or (directory is not None and _is_above(target, directory))


def normalize_path(text: str) -> str:
    """Return a path with `/` and without a drive, `.` and `..` where possible."""
    path = _DRIVE.sub("", text.replace("\\", "/"))
    return posixpath.normpath(path) if path else "."


def _is_above(target: str, directory: str) -> bool:
    path = posixpath.normpath(posixpath.join(directory, target))
    if path == "." or set(path.split("/")) == {".."}:
        return True
    return f"{directory}/".startswith(f"{path}/")


def _is_directory(word: Word) -> bool:
    last = word.text.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return word.known and not re.search(r"::|[*?\[]|.\.\w", last) and not last.startswith("@")
