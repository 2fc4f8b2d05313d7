"""The results of the tests that one process runs; each report carries its test's result.

A test whose process ends is an error, because the report of its setup says so until it has ended.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Outcome, Score
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.results import ExperimentItem, ExperimentResult, build_item
from ci_agent_eval.opik.decorators.decorators import LINKED_ATTRIBUTE, LinkedArguments
from ci_agent_eval.opik.experiments.push import load_opik_file
from ci_agent_eval.pytest_plugin.collection.detection import REPORTED_EPISODE
from ci_agent_eval.pytest_plugin.episodes.endings import (
    Ending,
    add_subtest_endings,
    determine_ending,
)
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.pytest_plugin.opik.experiment_options import SCORE, ExperimentSettings
from ci_agent_eval.pytest_plugin.opik.experiment_report import ATTRIBUTE, ExperimentReport
from ci_agent_eval.pytest_plugin.parts import get_parts
from ci_agent_eval.recording import list_failure_reasons
from ci_agent_eval.redaction import Redactor, make_distinct_names

PROCESS_ENDED = "the process ended before the test did"
"""Reason of a test of which no more is known than its setup."""

_DEFAULT = LinkedArguments("input", "expected_output", "metadata")


@dataclass(slots=True)
class _Trial:
    """One test from its setup on."""

    started: str
    item: ExperimentItem
    is_called: bool = False
    outcome: Outcome | None = None
    """Its outcome, once a phase ended it."""
    failed_subtests: list[Ending] = field(default_factory=list)


class ExperimentTests:
    """Adds each test's result to its reports."""

    def __init__(
        self, score: str, names: Mapping[str, str], redactor: Redactor, repo: RepositoryPaths
    ) -> None:
        self._score = score
        self._names = names
        self._redactor = redactor
        self._repo = repo
        self._trials: dict[str, _Trial] = {}

    @classmethod
    def start(cls, config: pytest.Config, items: Sequence[pytest.Item]) -> None:
        """Observe these tests, and on the main process start the experiment."""
        settings = ExperimentSettings.from_config(config, load_opik_file(os.environ, Path.home()))
        redactor = Redactor.from_environ(os.environ)
        names = make_distinct_names((item.nodeid for item in items), redactor.text)
        repo = RepositoryPaths.find(config.rootpath, os.environ)
        get_parts(config).trials = cls(settings.get_text(SCORE), names, redactor, repo)
        ExperimentReport.start(config)

    def begin(self, item: pytest.Item) -> None:
        """Begin the test; an earlier attempt is forgotten."""
        if (name := self._names.get(item.nodeid)) is not None:
            self._trials[item.nodeid] = _Trial(_format_now(), build_item(name))

    def note_called(self, item: pytest.Item) -> None:
        """Note that the test has returned or raised."""
        if item.nodeid in self._trials:
            self._trials[item.nodeid].is_called = True

    def note_report(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> None:
        """Add the result so far to the report of a phase that changes it."""
        trial = self._trials.get(item.nodeid)
        if trial is None:
            return
        if report.when == "call" and not trial.is_called:
            self._keep_subtest(item, call, report)
        elif report.when == "setup" and report.passed:
            started = self._build_result(item, trial, outcome="error", reason=PROCESS_ENDED)
            self._add_result(report, started)
        elif report.when == "call" or (not report.passed and trial.outcome != "failed"):
            if report.when == "setup":
                self.link(item)
            ending = self._determine_ending(item, call, report)
            ending = add_subtest_endings(ending, trial.failed_subtests)
            self._add_result(report, self._build_ended_result(item, trial, ending))

    @staticmethod
    def _add_result(report: pytest.TestReport, result: ExperimentResult) -> None:
        setattr(report, ATTRIBUTE, canonical_json(result))

    def link(self, item: pytest.Item) -> None:
        """Link the test to its item, before the test can change its arguments."""
        if (trial := self._trials.get(item.nodeid)) is None:
            return
        linked: LinkedArguments = getattr(getattr(item, "obj", None), LINKED_ATTRIBUTE, _DEFAULT)
        arguments = get_test_arguments(item)
        parts = (linked.input, linked.expected_output, linked.metadata)
        values = (self._redactor.value(to_jsonable(arguments.get(key))) for key in parts)
        trial.item = build_item(self._names[item.nodeid], *values)

    def _keep_subtest(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> None:
        """Remember a failed subtest, because the test's own ending does not include it."""
        ending = self._determine_ending(item, call, report)
        if ending.outcome in {"failed", "error"}:
            self._trials[item.nodeid].failed_subtests.append(ending)

    def _determine_ending(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> Ending:
        return determine_ending(call, report, self._repo, self._repo.relative(item.path))

    def _build_result(self, item: pytest.Item, trial: _Trial, **fields: Any) -> ExperimentResult:
        nodeid = self._names[item.nodeid]
        return ExperimentResult(nodeid=nodeid, item=trial.item, started=trial.started, **fields)

    def _build_ended_result(
        self, item: pytest.Item, trial: _Trial, ending: Ending
    ) -> ExperimentResult:
        episode = item.stash.get(REPORTED_EPISODE, None)
        outcome, reason = ending.outcome, ending.reason
        if episode is not None:
            is_over = episode.outcome == "passed" and not episode.is_passing()
            outcome = "failed" if is_over else episode.outcome
            reason = (
                "; ".join(list_failure_reasons(episode)) if is_over else episode.reason or reason
            )
        trial.outcome = outcome
        return self._build_result(
            item,
            trial,
            outcome=outcome,
            reason=None if reason is None else self._redactor.text(reason),
            scores=tuple(self._iter_scores(outcome, () if episode is None else episode.scores)),
            ended=_format_now(),
        )

    def _iter_scores(self, outcome: str, more: Sequence[Score]) -> Iterator[Score]:
        """Yield whether the test passed, unless it was skipped, then the episode's scores."""
        if outcome != "skipped":
            name = self._redactor.text(self._score)
            yield Score(name=name, value=float(outcome == "passed"))
        yield from more


def get_test_arguments(item: pytest.Item) -> Mapping[str, Any]:
    """Return a test's arguments by name: parameters, fixtures in use, defaults."""
    found: dict[str, Any] = {}
    test = getattr(item, "obj", None)
    if callable(test):
        parameters = inspect.signature(test).parameters.values()
        found = {p.name: p.default for p in parameters if p.default is not p.empty}
    parametrized = getattr(getattr(item, "callspec", None), "params", {})
    return {**found, **parametrized, **getattr(item, "funcargs", {})}


def _format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
