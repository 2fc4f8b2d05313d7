"""Exclusions of a whole collection: by the command line, or by files that skip themselves.

Exclusions by pytest's ini file or the suite's settings define the suite. They do not restrict this
one run, so a scenario that they remove is missing.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from ci_agent_eval.contract.results import CollectionError, CollectionSkip, Session
from ci_agent_eval.pytest_plugin.episodes.endings import MAX_CHARACTERS, MAX_LINES, shorten_message
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.pytest_plugin.parts import get_parts
from ci_agent_eval.redaction import Redactor


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
