"""Detection of collected episodes that were deselected by something other than the command line.

Made only for runs that write a report or list their scenarios.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Episode, Mode
from ci_agent_eval.contract.results import (
    CollectionError,
    CollectionSkip,
    ListedScenario,
    RemovedScenario,
    ScenarioListing,
    Session,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.detection import is_episode
from ci_agent_eval.pytest_plugin.collection.iterations import describe_case
from ci_agent_eval.pytest_plugin.episodes.endings import MAX_CHARACTERS, MAX_LINES, shorten_message
from ci_agent_eval.pytest_plugin.episodes.episode_files import redact_model
from ci_agent_eval.pytest_plugin.episodes.marker import (
    build_episode_from_marker,
    get_default_scenario,
)
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import is_evaluation
from ci_agent_eval.pytest_plugin.parts import get_parts
from ci_agent_eval.recording import build_initial_episode
from ci_agent_eval.redaction import Redactor

_HOOK_PACKAGES = ("pluggy", "ci_agent_eval")
"""Packages whose frames are between a hook and its caller."""


class RemovedEpisodes:
    """Watches the collection for items and for the code that deselects them."""

    def __init__(self, config: pytest.Config) -> None:
        self._repo = RepositoryPaths.find(config.rootpath, os.environ)
        self._items: list[pytest.Item] = []
        self._excluded: Counter[str] = Counter()
        self._removers: dict[str, str] = {}

    def note_collected(self, item: pytest.Item) -> None:
        """Keep every item, before a plugin can deselect it."""
        self._items.append(item)

    def note_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Distinguish deselection by pytest's own options from other deselection."""
        caller = _find_hook_caller(sys._getframe(1))  # noqa: SLF001 - inspect.stack reads whole files
        name = str(caller.f_globals.get("__name__", ""))
        if name.partition(".")[0] == "_pytest":
            self._excluded.update(item.nodeid for item in items)
            return
        remover = self._repo.relative(caller.f_code.co_filename) or name
        self._removers.update((item.nodeid, remover) for item in items)

    def list_scenarios(self, selected: Sequence[pytest.Item]) -> tuple[RemovedScenario, ...]:
        """Return the scenarios whose episodes are neither selected nor excluded on purpose."""
        expected = Counter(item.nodeid for item in selected) + self._excluded
        found: Counter[tuple[str, str, str]] = Counter()
        for item in self._items:
            if expected[item.nodeid]:
                expected[item.nodeid] -= 1
            elif is_episode(item):
                episode = build_collected_episode(item)
                found[episode.scenario_id, episode.gate, self._removers.get(item.nodeid, "")] += 1
        return tuple(_build_removed_scenarios(found))


def _build_removed_scenarios(found: Counter[tuple[str, str, str]]) -> Iterator[RemovedScenario]:
    for (scenario, gate, remover), number in sorted(found.items()):
        values = {
            "scenario_id": scenario,
            "gate": gate,
            "iterations": number,
            "by": remover or None,
        }
        yield RemovedScenario.model_validate(values)


def build_collected_episode(item: pytest.Item) -> Episode:
    """Build an item's episode from its marker; from its scenario alone if the marker is invalid."""
    mode: Mode = "evaluation" if is_evaluation(item) else "strict"
    try:
        return build_episode_from_marker(item, scenario_id=get_default_scenario(item), mode=mode)
    except InputError:
        return build_initial_episode(get_default_scenario(item), mode=mode)


def _find_hook_caller(frame: FrameType | None) -> FrameType:
    """Return the innermost frame that called a hook."""
    assert frame is not None, "pytest is always among the callers"  # noqa: S101 - of any hook
    name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return _find_hook_caller(frame.f_back) if name in _HOOK_PACKAGES else frame


class ScenarioListWriter:
    """Writes the scenarios of a collection to a file."""

    def __init__(self, config: pytest.Config) -> None:
        self._path = Path(str(config.option.episode_list))
        self._redactor = Redactor.from_environ(os.environ)
        self._repo = RepositoryPaths.find(config.rootpath, os.environ)
        self._collection = CollectionOutcome(config, self._redactor)
        self._items: Sequence[pytest.Item] = ()

    def note_collected(self, report: pytest.CollectReport) -> None:
        """Keep files that could not be collected or were skipped."""
        self._collection.add(report)

    def select(self, session: pytest.Session) -> None:
        """Keep the selected episodes."""
        self._items = [item for item in session.items if detection.is_episode(item)]

    def write(self, session: pytest.Session) -> None:
        """Write the file."""
        config = session.config
        removed = get_parts(config).removed
        found = Session(
            state="finished",
            exit_status=int(session.exitstatus),
            selected=len(self._items),
            removed=() if removed is None else removed.list_scenarios(self._items),
        )
        update = self._collection.list_session_fields()
        listing = ScenarioListing(
            session=self._collection.add_restrictions(found).model_copy(update=update),
            scenarios=tuple(self._list_scenarios()),
        )
        text = canonical_json(redact_model(listing, self._redactor))
        self._path.write_text(text, encoding="ascii")

    def _list_scenarios(self) -> Iterator[ListedScenario]:
        for item in self._items:
            episode, (file, _) = build_collected_episode(item), self._repo.locate_item(item)
            yield ListedScenario(
                scenario_id=episode.scenario_id,
                gate=episode.gate,
                file=file,
                was=episode.was,
                named_at_run_time=detection.returns_episode(item),
                case=describe_case(item),
            )


class CollectionOutcome:
    """The files that could not be collected and the files that were skipped."""

    def __init__(self, config: pytest.Config, redactor: Redactor) -> None:
        self._config = config
        self._redactor = redactor
        self._repo = RepositoryPaths.find(config.rootpath, os.environ)
        self.errors: dict[str, str] = {}
        self._skips: dict[str, str] = {}

    def add(self, report: pytest.CollectReport) -> None:
        """Keep a file that failed or was skipped; every xdist worker reports the same."""
        if report.failed:
            self.errors[self._redactor.text(report.nodeid)] = report.longreprtext
        elif report.skipped:
            path = self._config.rootpath / report.nodeid.partition("::")[0]
            self._skips[self._repo.relative(path) or report.nodeid] = _get_skip_reason(report)

    def add_restrictions(self, session: Session) -> Session:
        """Return the session with the exclusions of the command line."""
        if get_parts(self._config).parser is None:
            return session
        arguments = _parse_run_arguments(self._config)
        paths = _list_named_paths(arguments, self._config, self._repo)
        clean = self._redactor.text
        update: dict[str, Any] = {
            "restrictions": tuple(map(clean, _list_restrictions(arguments))),
            "paths": tuple(map(clean, paths)),
        }
        return session.model_copy(update=update)

    def list_session_fields(self) -> dict[str, Any]:
        """Return the fields of `session.json` about collection errors and skips."""
        clean = self._redactor.text
        return {
            "collection_errors": tuple(
                CollectionError(nodeid=nodeid, message=_shorten_traceback(clean(text)))
                for nodeid, text in sorted(self.errors.items())
            ),
            "collection_skips": tuple(
                CollectionSkip(file=clean(file), reason=shorten_message(clean(reason)))
                for file, reason in sorted(self._skips.items())
            ),
        }


def _shorten_traceback(text: str) -> str:
    """Return the end of a traceback, which names the error."""
    lines = text.rstrip().splitlines()[-MAX_LINES:]
    while len(lines) > 1 and sum(map(len, lines)) + len(lines) > MAX_CHARACTERS:
        del lines[0]
    return shorten_message("\n".join(lines))


def _get_skip_reason(report: pytest.CollectReport) -> str:
    """Return why a file was skipped, without pytest's prefix."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return str(reason).removeprefix("Skipped: ")


_RESTRICTING_OPTIONS = {
    "keyword": "-k",
    "markexpr": "-m",
    "deselect": "--deselect",
    "ignore": "--ignore",
    "ignore_glob": "--ignore-glob",
    "lf": "--lf",
    "stepwise": "--stepwise",
}
"""pytest's options that exclude tests, by their names in the parsed arguments."""


def _list_run_arguments(config: pytest.Config) -> list[str]:
    """Return the arguments of this run, from `PYTEST_ADDOPTS` and the command line."""
    option = config.option.episode_asked
    arguments = (
        json.loads(option) if option else [str(each) for each in config.invocation_params.args]
    )
    return [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *arguments]


def _parse_run_arguments(config: pytest.Config) -> Any:
    """Parse the arguments of this run with pytest's own parser, without defaults."""
    parser = get_parts(config).parser
    assert parser is not None  # noqa: S101 - the caller has seen it
    return parser.parse_known_args(_list_run_arguments(config))


def _list_restrictions(arguments: Any) -> Iterator[str]:
    """Yield the arguments that exclude tests, quoted for a command line."""
    for name, option in _RESTRICTING_OPTIONS.items():
        value = getattr(arguments, name, None)
        for each in value if isinstance(value, list) else [value]:
            if each:
                yield option if each is True else f"{option} {shlex.quote(str(each))}"
    yield from (path for path in arguments.file_or_dir if "::" in path)


def _list_named_paths(
    arguments: Any, config: pytest.Config, repo: RepositoryPaths
) -> Sequence[str]:
    """Return the named files and folders, relative to the repository root."""
    named = [path for path in arguments.file_or_dir if "::" not in path]
    found = (repo.relative(os.path.normpath(config.invocation_params.dir / p)) for p in named)
    return [path or name for path, name in zip(found, named, strict=True)]
