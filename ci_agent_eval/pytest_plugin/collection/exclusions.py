"""What a collection leaves out as a whole: by the command line, or where a file skips itself.

What pytest's ini file and the settings of the suite leave out defines the suite. It is no
restriction of this one run, so that a scenario that it takes away is missing.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from ci_agent_eval.contract.results import CollectionError, CollectionSkip, Session
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.episodes.endings import shorten_message
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.redaction import Redactor


class CollectionOutcome:
    """Keeps which files could not be collected, and which were skipped."""

    def __init__(self, config: pytest.Config, redactor: Redactor) -> None:
        self._config = config
        self._redactor = redactor
        self._places = RepositoryPaths.of(config.rootpath, os.environ)
        self.errors: dict[str, str] = {}
        self._skips: dict[str, str] = {}

    def add(self, report: pytest.CollectReport) -> None:
        """Keep a file that failed or was skipped; every xdist worker reports the same."""
        if report.failed:
            self.errors[self._redactor.text(report.nodeid)] = report.longreprtext
        elif report.skipped:
            path = self._config.rootpath / report.nodeid.partition("::")[0]
            self._skips[self._places.relative(path) or report.nodeid] = _get_skip_reason(report)

    def restrict(self, session: Session) -> Session:
        """Return the session with what the command line leaves out on purpose."""
        if options.PARSER not in self._config.stash:
            return session
        asked = _parse_run_arguments(self._config)
        paths = _list_named_paths(asked, self._config, self._places)
        clean = self._redactor.text
        update: dict[str, Any] = {
            "restrictions": tuple(map(clean, _list_restrictions(asked))),
            "paths": tuple(map(clean, paths)),
        }
        return session.model_copy(update=update)

    def update(self) -> dict[str, Any]:
        """Return the fields of `session.json` that tell the outcome."""
        clean = self._redactor.text
        return {
            "collection_errors": tuple(
                CollectionError(nodeid=nodeid, message=shorten_message(clean(text)))
                for nodeid, text in sorted(self.errors.items())
            ),
            "collection_skips": tuple(
                CollectionSkip(file=clean(file), reason=shorten_message(clean(reason)))
                for file, reason in sorted(self._skips.items())
            ),
        }


def _get_skip_reason(report: pytest.CollectReport) -> str:
    """Return why a file was skipped, without the word that pytest puts before it."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return str(reason).removeprefix("Skipped: ")


_RESTRICTING = {
    "keyword": "-k",
    "markexpr": "-m",
    "deselect": "--deselect",
    "ignore": "--ignore",
    "ignore_glob": "--ignore-glob",
    "lf": "--lf",
    "stepwise": "--stepwise",
}
"""pytest's options that leave tests out, by where its parser puts them."""


def _list_run_arguments(config: pytest.Config) -> list[str]:
    """Return the arguments of this one run; those of a plain `pytest` and `PYTEST_ADDOPTS`."""
    given = config.option.episode_asked
    own = json.loads(given) if given else [str(each) for each in config.invocation_params.args]
    return [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *own]


def _parse_run_arguments(config: pytest.Config) -> Any:
    """Return the arguments of this one run as pytest's own parser reads them, without defaults."""
    return config.stash[options.PARSER].parse_known_args(_list_run_arguments(config))


def _list_restrictions(asked: Any) -> Iterator[str]:
    """Yield the arguments that leave tests out, as they may be written on a command line."""
    for name, option in _RESTRICTING.items():
        value = getattr(asked, name, None)
        for each in value if isinstance(value, list) else [value]:
            if each:
                yield option if each is True else f"{option} {shlex.quote(str(each))}"
    yield from (path for path in asked.file_or_dir if "::" in path)


def _list_named_paths(asked: Any, config: pytest.Config, places: RepositoryPaths) -> Sequence[str]:
    """Return the files and folders that were named, relative to the repository root."""
    named = [path for path in asked.file_or_dir if "::" not in path]
    found = (places.relative(os.path.normpath(config.invocation_params.dir / p)) for p in named)
    return [path or given for path, given in zip(found, named, strict=True)]
