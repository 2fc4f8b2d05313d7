"""What a collection leaves out as a whole: by the command line, or where a file skips itself."""

from __future__ import annotations

import os
from typing import Any

import pytest

from ci_agent_eval.contract.results import CollectionError, CollectionSkip, Session
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.collection import restrictions
from ci_agent_eval.pytest_plugin.episodes.endings import first_lines
from ci_agent_eval.pytest_plugin.episodes.places import Places
from ci_agent_eval.redaction import Redactor


class CollectionOutcome:
    """Keeps which files could not be collected, and which were skipped."""

    def __init__(self, config: pytest.Config, redactor: Redactor) -> None:
        self._config = config
        self._redactor = redactor
        self._places = Places.of(config.rootpath, os.environ)
        self.errors: dict[str, str] = {}
        self._skips: dict[str, str] = {}

    def add(self, report: pytest.CollectReport) -> None:
        """Keep a file that failed or was skipped; every xdist worker reports the same."""
        if report.failed:
            self.errors[self._redactor.text(report.nodeid)] = report.longreprtext
        elif report.skipped:
            path = self._config.rootpath / report.nodeid.partition("::")[0]
            self._skips[self._places.relative(path) or report.nodeid] = _skip_reason(report)

    def restrict(self, session: Session) -> Session:
        """Return the session with what the command line leaves out on purpose."""
        if options.PARSER not in self._config.stash:
            return session
        asked = restrictions.parse_asked(self._config)
        paths = restrictions.paths(asked, self._config, self._places)
        clean = self._redactor.text
        update: dict[str, Any] = {
            "restrictions": tuple(map(clean, restrictions.restrictions(asked))),
            "paths": tuple(map(clean, paths)),
        }
        return session.model_copy(update=update)

    def update(self) -> dict[str, Any]:
        """Return the fields of `session.json` that tell the outcome."""
        clean = self._redactor.text
        return {
            "collection_errors": tuple(
                CollectionError(nodeid=nodeid, message=first_lines(clean(text)))
                for nodeid, text in sorted(self.errors.items())
            ),
            "collection_skips": tuple(
                CollectionSkip(file=clean(file), reason=first_lines(clean(reason)))
                for file, reason in sorted(self._skips.items())
            ),
        }


def _skip_reason(report: pytest.CollectReport) -> str:
    """Return why a file was skipped, without the word that pytest puts before it."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return str(reason).removeprefix("Skipped: ")
