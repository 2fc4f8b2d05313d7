"""`--episode-changes`: leave out the scenarios that a change has not affected, as they declare.

The change itself must not decide what it can affect. So `depends_on` counts as the merge base has
it: it must be written out in the test's own file or scenario file, and a change of that file runs
the scenario.
"""

from __future__ import annotations

import ast
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from ci_agent_eval.authoring.scenarios import ARGUMENT, ATTRIBUTE
from ci_agent_eval.contract.affected import ChangePlan
from ci_agent_eval.engine.cassette.store import build_cassette_path
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.iterations import get_shared_case
from ci_agent_eval.pytest_plugin.collection.removed_episodes import build_collected_episode
from ci_agent_eval.pytest_plugin.collection.shared_conversations import find_session_name
from ci_agent_eval.pytest_plugin.episodes.marker import parse_declared_files
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.pytest_plugin.parts import get_parts
from ci_agent_eval.redaction import Redactor

KEY = "depends_on"


def leave_out_unaffected(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """Keep the items that the change can have affected; return the others.

    The selection is kept as a part of the session.
    """
    plan = ChangePlan.model_validate_json(Path(str(config.option.episode_changes)).read_bytes())
    repo = RepositoryPaths.find(config.rootpath, os.environ)
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if detection.is_episode(item):
            groups[build_collected_episode(item).scenario_id].append(item)
    if repo.root.resolve() == Path(plan.top):
        declared = [_join_items(name, group, repo) for name, group in groups.items()]
        found = select_affected(declared, plan.changed, plan.ignore)
    else:
        found = AffectedSelection(full_run=f"the tests are not in the repository {plan.top}")
    get_parts(config).left_out = found
    others = [item for name in found.left_out for item in groups[name]]
    left_out = set(map(id, others))
    items[:] = [item for item in items if id(item) not in left_out]
    return others


def _join_items(name: str, items: list[pytest.Item], repo: RepositoryPaths) -> DeclaredScenario:
    """Return the files of all iterations and cases; without those of one, it always runs."""
    own = frozenset(path for item in items for path in _list_own_files(item, name, repo))
    found = [_find_declared(item) for item in items]
    declared = frozenset(pattern for one in found for pattern in one or ())
    is_known = None not in found and all(repo.relative(item.path) for item in items)
    return DeclaredScenario(name, own, declared if is_known else None)


def _list_own_files(item: pytest.Item, scenario: str, repo: RepositoryPaths) -> Iterator[str]:
    folder = options.get_cassette_dir(item.config, item.path)
    redact = Redactor.from_environ(os.environ).text
    names = (redact(scenario + get_shared_case(item)), redact(scenario))
    paths = [item.path, *(build_cassette_path(folder, one) for one in names)]
    if (one := _get_file_scenario(item)) is not None:
        paths.append(repo.root / one.file)
    yield from filter(None, map(repo.relative, (*paths, *(path.resolve() for path in paths))))
    for above in PurePosixPath(repo.relative(item.path) or "").parents:
        yield str(above / "conftest.py")


def _get_file_scenario(item: pytest.Item) -> Any:
    """Return the scenario of a scenario file that the item runs; None: it runs none."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    return params.get(ARGUMENT) if hasattr(getattr(item, "function", None), ATTRIBUTE) else None


def _find_declared(item: pytest.Item) -> frozenset[str] | None:
    """Return the declared patterns of an item.

    None: there are none, or some that are not written out in its own files.
    """
    is_alone = find_session_name(item) is None
    if not is_alone or detection.returns_episode(item) or not detection.is_marked(item):
        return None
    given = [
        parse_declared_files(mark.kwargs[KEY])
        for mark in item.iter_markers(detection.NAME)
        if mark.kwargs.get(KEY) is not None
    ]
    scenario = _get_file_scenario(item)
    own = [scenario.entry.depends_on] if scenario is not None and scenario.entry.depends_on else []
    written = _read_declarations(item.path, _name_definitions(item))
    if written is None or len(given) != len(own) + len(written):
        return None
    declared = frozenset(pattern for one in (*own, *written) for pattern in one)
    used = frozenset(pattern for one in given for pattern in one)
    return declared if declared and used <= declared else None


def _name_definitions(item: pytest.Item) -> tuple[str, ...]:
    """Return the names of the classes around a test, and of its function."""
    classes = (node.name for node in item.listchain() if isinstance(node, pytest.Class))
    return (*classes, getattr(item, "originalname", None) or item.name)


@lru_cache(1024)
def _read_declarations(path: Path, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...] | None:
    """Return each `depends_on` that a file writes out for a test; None: one cannot be read."""
    try:
        scope: ast.AST = ast.parse(path.read_bytes())
        found = _list_marks(scope)
        for name in names:
            (scope,) = (
                one for one in ast.iter_child_nodes(scope) if getattr(one, "name", "") == name
            )
            found += [*getattr(scope, "decorator_list", ()), *_list_marks(scope)]
        return tuple(
            parse_declared_files(ast.literal_eval(keyword.value))
            for node in found
            for keyword in ast.walk(node)
            if isinstance(keyword, ast.keyword) and keyword.arg == KEY
        )
    except (OSError, SyntaxError, ValueError, InputError):
        return None


def _list_marks(scope: ast.AST) -> list[ast.AST]:
    """Return the values that a module or class assigns to `pytestmark`."""
    return [
        node.value
        for node in ast.iter_child_nodes(scope)
        if isinstance(node, ast.Assign)
        and any(isinstance(one, ast.Name) and one.id == "pytestmark" for one in node.targets)
    ]


ALWAYS = (
    *("*.toml", "*.ini", "*.cfg", ".git*", "*/.git*"),
    *("*.lock", "*.lockb", "*-lock.json", "*-lock.yaml", "npm-shrinkwrap.json", "go.sum"),
    *("requirements*", "*/requirements*", "*constraints*.txt"),
)
"""Settings, workflows and lock files: with a change of one of them, everything runs."""


@dataclass(frozen=True, slots=True)
class DeclaredScenario:
    """A collected scenario with the files that can change its result."""

    scenario_id: str
    own: frozenset[str]
    """Its test file, scenario file, cassettes and conftests."""
    declared: frozenset[str] | None
    """The patterns of `depends_on`; None: it declares nothing, and always runs."""

    @property
    def patterns(self) -> frozenset[str]:
        """All of them."""
        return self.own | (self.declared or frozenset())


@dataclass(frozen=True, slots=True)
class AffectedSelection:
    """The scenarios that a change left out, or why it left out none."""

    left_out: tuple[str, ...] = ()
    """Their ids, sorted."""
    full_run: str | None = None
    """Why everything runs; None: the declarations decided."""

    def describe(self) -> str:
        """Return a note about what runs; empty if all scenarios are affected."""
        if self.full_run is not None:
            return f"--affected: everything runs: {self.full_run}"
        number = len(self.left_out)
        return f"--affected: {number} left out, not affected (declared)" if number else ""


def select_affected(
    scenarios: Sequence[DeclaredScenario], changed: Iterable[str], ignore: Sequence[str]
) -> AffectedSelection:
    """Return the scenarios none of whose files changed; none if a change may concern everything."""
    changed = sorted(changed)
    patterns = frozenset[str]().union(*(one.patterns for one in scenarios))
    for path in changed:
        if _matches(path, ALWAYS):
            return AffectedSelection(full_run=f"{path} changed, a settings or lock file")
        if not _matches(path, patterns) and not _matches(path, ignore):
            reason = f"{path} changed, which no depends_on and no ignore matches"
            return AffectedSelection(full_run=reason)
    found = (
        one.scenario_id
        for one in scenarios
        if one.declared is not None and not any(_matches(path, one.patterns) for path in changed)
    )
    return AffectedSelection(tuple(sorted(found)))


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(_matches_pattern(path, pattern.rstrip("/")) for pattern in patterns)


def _matches_pattern(path: str, pattern: str) -> bool:
    """Return whether a pattern is the path, a folder above it, or matches one of the two."""
    forms = (pattern, pattern.replace("**/", ""))
    return path == pattern or any(
        fnmatchcase(path, form) or fnmatchcase(path, f"{form}/*") for form in forms
    )
