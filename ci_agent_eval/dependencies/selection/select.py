"""Select the scenarios that a change can have affected. Pure; the rules are in docs/affected.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ci_agent_eval.contract.dependencies import RECORDER_VERSION
from ci_agent_eval.dependencies.git import is_code_or_configuration
from ci_agent_eval.dependencies.model import Reached, RunDependencies
from ci_agent_eval.dependencies.selection.changes import TreeChanges
from ci_agent_eval.dependencies.selection.model import (
    ChangedDependency,
    EarlierProblem,
    FullRun,
    FullRunCause,
    SelectedScenario,
    Selection,
    SelectionReason,
    UnseenDependency,
)

_CONFIGURATION = (
    *("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini"),
    *("setup.cfg", "pyproject.toml", "setup.py", "agent-eval*.toml", "agent-eval-steering.y*ml"),
    *("requirements*.txt", "constraints*.txt", "*.lock", "Pipfile", "environment.y*ml"),
    *("poetry.toml", "pdm.toml", "uv.toml", "pylock*.toml", "package-lock.json", "pnpm-lock.yaml"),
    *(
        ".gitattributes",
        ".gitmodules",
        ".lfsconfig",
        ".python-version",
        "Dockerfile*",
        "action.yml",
    ),
)
"""Names of files whose every change runs everything."""
_CONFIGURATION_FOLDERS = (".github/workflows/", "requirements/")

SECONDS_PER_DAY = 86_400


@dataclass(frozen=True, slots=True)
class SelectionRules:
    """The limits of carrying results over."""

    now: int
    """Seconds since 1970 (UTC)."""
    max_age_days: float
    """Age at which a result expires, and everything runs."""


def select_affected(
    base: RunDependencies,
    problems: Mapping[str, EarlierProblem | None],
    changes: TreeChanges,
    rules: SelectionRules,
) -> Selection:
    """Select among the scenarios of `problems`: those of the baseline's results.

    A problem is the reason why a scenario runs whatever changed; None: it passed.
    """
    full_run = find_full_run(base, changes, rules)
    if full_run is not None:
        return Selection(full_run=full_run)
    selected, unchanged = [], []
    matcher = _ChangeMatcher(base, changes)
    for name in sorted(problems):
        reason = problems[name] or matcher.find_reason(name)
        if reason is None:
            unchanged.append(name)
        else:
            selected.append(SelectedScenario(name, reason))
    return Selection(tuple(selected), tuple(unchanged))


def find_full_run(
    base: RunDependencies, changes: TreeChanges, rules: SelectionRules
) -> FullRun | None:
    """Return the reason to run everything, or None."""
    return _find_unusable(base, rules) or next(_list_broad_changes(changes), None)


def _find_unusable(base: RunDependencies, rules: SelectionRules) -> FullRun | None:
    """Return why the recorded dependencies cannot be used, or None."""
    age = rules.now - base.recorded_at
    problems: tuple[tuple[bool, FullRunCause], ...] = (
        (base.recorder != RECORDER_VERSION, "other_recorder"),
        (not base.complete, "incomplete"),
        (not base.is_clean or base.commit is None, "unclean"),
        (not 0 <= age <= rules.max_age_days * SECONDS_PER_DAY, "expired"),
    )
    return next((FullRun(cause) for is_found, cause in problems if is_found), None)


def _list_broad_changes(changes: TreeChanges) -> Iterator[FullRun]:
    """Yield the changes that can affect every scenario."""
    for path, changed in changes.files.items():
        if is_configuration(path) or changed.is_special:
            yield FullRun("configuration", path)
        elif is_code_or_configuration(path) and changed.old is None:
            yield FullRun("file_added", path)
        elif is_code_or_configuration(path) and changed.new is None:
            yield FullRun("file_removed", path)


def is_configuration(path: str) -> bool:
    """Return whether every change of a file runs everything."""
    name = path.rpartition("/")[2]
    return path.startswith(_CONFIGURATION_FOLDERS) or any(
        fnmatchcase(name, pattern) for pattern in _CONFIGURATION
    )


class _ChangeMatcher:
    """Finds the first changed dependency of each scenario."""

    def __init__(self, base: RunDependencies, changes: TreeChanges) -> None:
        self._base = base
        self._changes = changes
        self._definitions = list(self._list_changed_definitions())
        self._changed_folders = list(_list_changed_folders(changes))
        self._shared = self._find_changed(base.shared)

    def find_reason(self, scenario_id: str) -> SelectionReason | None:
        """Return why a scenario that passed runs again, or None."""
        own = self._base.scenarios.get(scenario_id)
        if own is None:
            return "no_dependencies"
        # A child process is likely to use the repository's files alone.
        unknown = [
            one
            for one in self._base.shared.unknown | own.unknown
            if one.cause != "child_process" or self._changes.files
        ]
        if unknown:
            first = min(unknown, key=lambda one: (one.cause, one.detail))
            return UnseenDependency(first.cause, first.detail)
        return self._shared or self._find_changed(own)

    def _find_changed(self, reached: Reached) -> ChangedDependency | None:
        finders: tuple[Callable[[Reached], Iterator[ChangedDependency]], ...] = (
            self._list_functions,
            self._list_definitions,
            self._list_files,
        )
        return next((one for find in finders for one in find(reached)), None)

    def _list_functions(self, reached: Reached) -> Iterator[ChangedDependency]:
        files = self._changes.files
        for path, name in sorted(one for one in reached.functions if one[0] in files):
            if name and files[path].has_new_body(name):
                yield ChangedDependency("function", path, name)

    def _list_definitions(self, reached: Reached) -> Iterator[ChangedDependency]:
        files = reached.code_files
        for change, importers in self._definitions:
            if not importers.isdisjoint(files):
                yield change
        for path in sorted(reached.modules & self._changes.files.keys()):
            yield ChangedDependency("module", path)

    def _list_changed_definitions(self) -> Iterator[tuple[ChangedDependency, frozenset[str]]]:
        """Yield each file with changed definitions, and all files that import it."""
        is_whole = self._base.unit == "module"
        for path, change in self._changes.files.items():
            importers = self._base.find_importers(path)
            if importers is None:
                continue
            if is_whole and change.has_new_code:
                yield ChangedDependency("module", path), importers
            elif not is_whole and change.has_new_definitions:
                yield ChangedDependency("definitions", path), importers

    def _list_files(self, reached: Reached) -> Iterator[ChangedDependency]:
        for path in self._changes.files:
            if path in reached.files:
                yield ChangedDependency("file", path)
            elif path in reached.absent:
                yield ChangedDependency("absent_file", path)
            elif any(fnmatchcase(path, pattern) for pattern in reached.patterns):
                yield ChangedDependency("declared_file", path)
        for path, folders in self._changed_folders:
            if not reached.folders.isdisjoint(folders):
                yield ChangedDependency("folder", path)


def _list_changed_folders(changes: TreeChanges) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each new and deleted file with the folders whose listing it can change.

    A new file changes the listing of its folder and, if that is new, too, of the one above. Whether
    a deleted file was the last one of its folder is not asked: all folders above it count.
    """
    for path in changes.added:
        above = tuple(_list_folders(path))
        old = next((at for at, one in enumerate(above) if one in changes.folders), len(above))
        yield path, above[: old + 1]
    for path in changes.removed:
        yield path, tuple(_list_folders(path))


def _list_folders(path: str) -> Iterator[str]:
    """Yield the folders that a path is in, the innermost first; `.` is the root."""
    while path:
        path = path.rpartition("/")[0]
        yield path or "."
