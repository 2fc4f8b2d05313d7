"""An experiment of the tests that one process runs; each is stored before it starts.

A test that ends its process is stored as an error; a test whose setup failed is stored too.
"""

from __future__ import annotations

import inspect
import os
import platform
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval import __version__
from ci_agent_eval.contract.episode import Score
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.errors import InputError
from ci_agent_eval.opik.decorators.decorators import LINKED_ATTRIBUTE, LinkedArguments
from ci_agent_eval.opik.experiments import (
    Experiment,
    ExperimentResult,
    ExperimentStore,
    ItemContent,
    ScoreRow,
    build_content,
    make_uuid7,
)
from ci_agent_eval.opik.experiments.opik_settings import load_opik_file
from ci_agent_eval.opik.experiments.push import SINK, find_usable_server
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.collection.detection import REPORTED_EPISODE
from ci_agent_eval.pytest_plugin.episodes.endings import Ending, determine_ending
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.pytest_plugin.episodes.subtests import add_subtest_endings
from ci_agent_eval.pytest_plugin.opik import experiment_end, experiment_options
from ci_agent_eval.recording import list_failure_reasons
from ci_agent_eval.redaction import Redactor, make_distinct_names

NAME = "ci_agent_eval_experiment"
_DEFAULT = LinkedArguments("input", "expected_output", "metadata")


def start_experiment(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Open the store and start an experiment of these tests.

    If the store cannot be opened, there is no experiment, no test fails, and the end of the session
    reports it.
    """
    settings = experiment_options.ExperimentSettings.from_config(
        config, load_opik_file(os.environ, Path.home())
    )
    end = experiment_end.register_experiment_end(config)
    redactor = Redactor.from_environ(os.environ)
    try:
        store = ExperimentStore.open(settings.store, create=True)
        config.add_cleanup(store.close)
        experiment = _build_experiment(config, settings, redactor)
        store.begin(experiment)
    except InputError as error:
        end.problems.append(str(error))
        return
    names = make_distinct_names((item.nodeid for item in items), redactor.text)
    repo = RepositoryPaths.find(config.rootpath, os.environ)
    writer = ExperimentWriter(
        store, experiment.uid, settings.get_text(experiment_options.SCORE), end.problems
    )
    config.pluginmanager.register(ExperimentTests(writer, names, redactor, repo), NAME)
    end.is_used = True


def _build_experiment(
    config: pytest.Config, settings: experiment_options.ExperimentSettings, redactor: Redactor
) -> Experiment:
    identity = experiment_options.get_experiment_identity(config)
    prefix = settings.get_text(experiment_options.PREFIX)
    configuration = {
        "agent_eval": __version__,
        "passed_score": settings.get_text(experiment_options.SCORE),
        "pytest": pytest.__version__,
        "python": platform.python_version(),
        "suite": options.get_suite_name(config),
    }
    wants_server = settings.get_flag(experiment_options.SERVER) is not False
    server = find_usable_server(os.environ, settings.opik_file) if wants_server else None
    commit = config.option.episode_commit or os.environ.get("GITHUB_SHA") or None
    return Experiment(
        uid=identity.uid,
        name=redactor.text(f"{prefix}-{identity.started}"),
        dataset=redactor.text(settings.get_text(experiment_options.DATASET)),
        started=identity.started,
        commit=None if commit is None else redactor.text(commit),
        settings=redactor.value(configuration),
        sink=None if server is None else SINK,
    )


@dataclass
class ExperimentWriter:
    """Writes to the store of a running experiment; stops after the first failure."""

    store: ExperimentStore
    uid: str
    score: str
    problems: list[str]
    lost: int = 0

    def write(self, writing: Callable[[ExperimentStore], None]) -> None:
        """Call `writing` with the store, unless the store has failed before."""
        if self.lost:
            self.lost += 1
            return
        try:
            writing(self.store)
        except InputError as error:
            self.lost = 1
            self.problems.append(f"{error}; results from there on are not in it")


class ExperimentTests:
    """A plugin object whose hooks record each test in the experiment."""

    def __init__(
        self,
        writer: ExperimentWriter,
        names: Mapping[str, str],
        redactor: Redactor,
        repo: RepositoryPaths,
    ) -> None:
        self._writer = writer
        self._names = names
        self._redactor = redactor
        self._repo = repo
        self._called: set[str] = set()
        self._subtests: dict[str, list[Ending]] = {}
        self._outcomes: dict[str, str] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None]:
        """Store the test with the result it has if no other hook follows."""
        if (name := self._names.get(item.nodeid)) is not None:
            self._called.discard(item.nodeid)
            self._outcomes.pop(item.nodeid, None)
            self._subtests.pop(item.nodeid, None)
            trace_id, now = _create_id(), _format_now()
            self._writer.write(lambda store: store.start(self._writer.uid, name, trace_id, now))
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """Link the test to its data set item, before the test can change its arguments."""
        self._link_item(item)
        try:
            return (yield)
        finally:
            self._called.add(item.nodeid)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Store how the test ended, once a phase ended it."""
        report = yield
        if item.nodeid in self._names:
            self._record(item, call, report)
        return report

    def _link_item(self, item: pytest.Item) -> None:
        if (name := self._names.get(item.nodeid)) is None:
            return
        content, item_id = self._build_content(item, name), _create_id()
        self._writer.write(lambda store: store.link(self._writer.uid, name, content, item_id))

    def _build_content(self, item: pytest.Item, name: str) -> ItemContent:
        linked: LinkedArguments = getattr(getattr(item, "obj", None), LINKED_ATTRIBUTE, _DEFAULT)
        given = get_test_arguments(item)

        def clean(key: str, missing: object) -> Any:
            return self._redactor.value(to_jsonable(given.get(key, missing)))

        return build_content(
            name,
            given=clean(linked.input, {}),
            expected_output=clean(linked.expected_output, None),
            metadata=clean(linked.metadata, None),
        )

    def _record(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> None:
        if report.when == "call" and item.nodeid not in self._called:
            self._keep_subtest(item, call, report)
            return
        outcome = self._outcomes.get(item.nodeid)
        if (report.when != "call" and report.passed) or (
            report.when == "teardown" and outcome == "failed"
        ):
            return
        if report.when == "setup":
            self._link_item(item)
        subtests = self._subtests.get(item.nodeid, ())
        self._store_result(
            item, add_subtest_endings(self._determine_ending(item, call, report), subtests)
        )

    def _keep_subtest(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> None:
        """Remember a failed subtest, because the test's own ending does not include it."""
        ending = self._determine_ending(item, call, report)
        if ending.outcome in {"failed", "error"}:
            self._subtests.setdefault(item.nodeid, []).append(ending)

    def _determine_ending(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> Ending:
        return determine_ending(call, report, self._repo, self._repo.relative(item.path))

    def _store_result(self, item: pytest.Item, ending: Ending) -> None:
        episode = item.stash.get(REPORTED_EPISODE, None)
        outcome, reason = ending.outcome, ending.reason
        if episode is not None:
            is_over = episode.outcome == "passed" and not episode.is_passing()
            outcome = "failed" if is_over else episode.outcome
            reason = (
                "; ".join(list_failure_reasons(episode)) if is_over else episode.reason or reason
            )
        self._outcomes[item.nodeid] = outcome
        result = ExperimentResult(
            nodeid=self._names[item.nodeid],
            outcome=outcome,
            reason=None if reason is None else self._redactor.text(reason),
            scores=tuple(self._iter_scores(outcome, () if episode is None else episode.scores)),
            ended=_format_now(),
        )
        self._writer.write(lambda store: store.end(self._writer.uid, result))

    def _iter_scores(self, outcome: str, more: Sequence[Score]) -> Iterator[ScoreRow]:
        """Yield whether the test passed, unless it was skipped, then the episode's scores."""
        if outcome != "skipped":
            yield ScoreRow(self._writer.score, float(outcome == "passed"))
        for score in more:
            yield ScoreRow(score.name, score.value, score.reason)


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


def _create_id() -> str:
    return make_uuid7(int(datetime.now(UTC).timestamp() * 1000), os.urandom(10))
