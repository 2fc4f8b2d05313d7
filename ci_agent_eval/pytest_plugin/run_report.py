"""The run's `session.json`, written at its start and its end, and `results.json`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.contract.clock import read_clock
from ci_agent_eval.contract.findings import SuiteStop
from ci_agent_eval.contract.results import AdaptiveStop, Experiment, Session
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.collection.removed_episodes import CollectionOutcome
from ci_agent_eval.pytest_plugin.collection.selection import (
    get_requested_shard,
    get_workflow_attempt,
)
from ci_agent_eval.pytest_plugin.episodes.episode_files import redact_model
from ci_agent_eval.pytest_plugin.episodes.episode_summary import build_summary_record
from ci_agent_eval.pytest_plugin.parts import Parts, get_parts
from ci_agent_eval.redaction import Redactor
from ci_agent_eval.storage.run_folder import ReportFolder

_NOTED = ("selected", "deselected", "shard", "removed", "left_out")
"""Fields of the session that the selection of the episodes fills in."""


class RunReport:
    """Watches the session and writes its report files."""

    def __init__(
        self,
        folder: ReportFolder,
        session: Session,
        redactor: Redactor,
        collection: CollectionOutcome,
    ) -> None:
        self._folder = folder
        self._session = session
        self._redactor = redactor
        self._collection = collection
        self._started = read_clock()
        self._had_internal_error = False
        self._interruptions: list[BaseException] = []
        self._errors = collection.errors
        self._adaptive_stops: list[dict[str, Any]] = []

    @classmethod
    def start(cls, config: pytest.Config, directory: Path) -> RunReport:
        """Clear the directory, and write that the run has begun."""
        folder = ReportFolder(directory)
        redactor = Redactor.from_environ(os.environ)
        collection = CollectionOutcome(config, redactor)
        session = Session(
            state="running",
            suite=options.get_suite_name(config),
            watched=config.option.episode_watched,
            commit=config.option.episode_commit or None,
            run=os.environ.get("GITHUB_RUN_ID") or None,
            attempt=get_workflow_attempt(os.environ),
            shard=get_requested_shard(config, os.environ) if config.option.shard else None,
        )
        session = collection.add_restrictions(session)
        try:
            folder.prepare()
            if not config.option.episode_watched:  # otherwise `agent-eval run` holds the lock
                lock = ExitStack()
                lock.enter_context(folder.hold_lock())
                config.add_cleanup(lock.close)
            folder.clear()
            folder.write_session(session)
        except (InputError, OSError) as error:
            raise pytest.UsageError(f"--episode-report-dir: {error}") from None
        return cls(folder, session, redactor, collection)

    def load_summary_records(self) -> list[dict[str, Any]]:
        """Return the summary records of all episodes in the journals."""
        return [
            build_summary_record(episode) for episode in self._folder.merge_journals().episodes()
        ]

    def add_adaptive_stops(self, output: Mapping[str, Any]) -> None:
        """Keep why the adaptive scenarios of an xdist worker stopped."""
        self._adaptive_stops += output.get(options.ADAPTIVE_STOPS, ())

    def note_without_episodes(self, parts: Parts) -> None:
        """Note that no episode is selected, without the modules that episodes need."""
        removed = () if parts.removed is None else parts.removed.list_scenarios(())
        left_out = () if parts.left_out is None else parts.left_out.left_out
        self._folder.note_selected(
            {
                "selected": 0,
                "deselected": parts.deselected,
                "shard": parts.shard,
                "removed": tuple(redact_model(scenario, self._redactor) for scenario in removed),
                "left_out": tuple(map(self._redactor.text, left_out)),
            }
        )

    def note_collected(self, report: pytest.CollectReport) -> None:
        """Keep files that could not be collected or were skipped."""
        self._collection.add(report)

    def note_interruption(self, error: BaseException) -> None:
        """Remember that the run was interrupted."""
        self._interruptions.append(error)

    def note_internal_error(self) -> None:
        """Remember that pytest had an internal error."""
        self._had_internal_error = True

    def _was_interrupted(self, stopped: str | None) -> bool:
        """Distinguish Ctrl-C from pytest's own stops: after collection errors, and at a limit.

        xdist stops at a limit with a subclass of KeyboardInterrupt.
        """
        planned = bool(self._errors) or stopped is not None
        foreign = (pytest.exit.Exception,)
        return self._had_internal_error or any(
            not planned or type(error) is KeyboardInterrupt or isinstance(error, foreign)
            for error in self._interruptions
        )

    def write(self, session: pytest.Session) -> None:
        """Write the results after every worker has finished, then the session."""
        limit = session.shouldfail or session.shouldstop
        stopped = self._redactor.text(str(limit)) if limit else None
        interrupted = self._was_interrupted(stopped)
        unreadable = self._folder.write_results(
            self._session.suite,
            complete=not (interrupted or stopped or self._errors),
            experiment=_find_experiment(session.config),
        )
        self._errors.update(dict.fromkeys(unreadable, "this line of the journal is broken"))
        noted = self._folder.session()
        self._folder.write_session(
            self._session.model_copy(
                update={
                    "state": "interrupted" if interrupted else "finished",
                    "exit_status": int(session.exitstatus),
                    **{name: getattr(noted, name) for name in _NOTED},
                    "stopped": stopped,
                    "unafforded": self._list_unafforded(session),
                    "suite_stop": _get_suite_stop(session),
                    "adaptive_stops": self._list_adaptive_stops(session),
                    **self._collection.list_session_fields(),
                    "wall_time_s": round(read_clock() - self._started, 3),
                }
            )
        )

    def _list_unafforded(self, session: pytest.Session) -> tuple[str, ...]:
        """Return the required scenarios of which a suite budget left iterations out."""
        found = get_parts(session.config).budgets
        if found is None or _get_suite_stop(session) is None:
            return ()
        started = {key[1:3] for key in self._folder.merge_journals().places}
        tests = found.list_required()
        left_out = {name for nodeid, number, name in tests if (nodeid, number) not in started}
        return tuple(sorted(map(self._redactor.text, left_out)))

    def _list_adaptive_stops(self, session: pytest.Session) -> tuple[AdaptiveStop, ...]:
        """Return why each adaptive scenario stopped, in all processes, sorted by scenario."""
        episodes = get_parts(session.config).episodes
        own = [] if episodes is None else episodes.dump_adaptive_stops()
        given = [AdaptiveStop.model_validate(stop) for stop in (*own, *self._adaptive_stops)]
        found: dict[tuple[str, str], AdaptiveStop] = {}
        # Of two processes that ran iterations of a scenario, the one that decided counts.
        for stop in sorted(given, key=lambda stop: (stop.cause == "unfinished", stop.cause)):
            found.setdefault((stop.scenario_id, stop.agent or ""), stop)
        if _get_suite_stop(session) is not None:
            found = {key: _blame_budget(stop) for key, stop in found.items()}
        return tuple(found[key] for key in sorted(found))


def _find_experiment(config: pytest.Config) -> Experiment | None:
    experiment = get_parts(config).experiment
    return None if experiment is None else experiment.build_experiment(config)


def _blame_budget(stop: AdaptiveStop) -> AdaptiveStop:
    return stop.model_copy(update={"cause": "budget"}) if stop.cause == "unfinished" else stop


def _get_suite_stop(session: pytest.Session) -> SuiteStop | None:
    """Return the suite budget that stopped the session, or None."""
    found = get_parts(session.config).budgets
    if found is None or session.shouldfail or not session.shouldstop:
        return None
    return found.cause if isinstance(found.cause, SuiteStop) else None
