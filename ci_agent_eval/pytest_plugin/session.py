"""The episodes of one process's session, from their selection to their last journal line."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.contract.base import build_models
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import RemovedScenario, Shard
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.collection.detection import (
    EPISODE,
    RECORDER,
    REPORTED_EPISODE,
)
from ci_agent_eval.pytest_plugin.collection.iterations import (
    describe_case,
    get_iteration,
    is_optional,
)
from ci_agent_eval.pytest_plugin.episodes.ended_episode import (
    build_lost_episode,
    call_episode_hooks,
    fail_late_records,
    finish_episode,
    list_problems,
    update_after_phase,
)
from ci_agent_eval.pytest_plugin.episodes.endings import (
    Ending,
    EpisodeFailed,
    EpisodeItem,
    determine_ending,
    format_subtest_name,
    get_ending_after_subtests,
    record_subtest,
)
from ci_agent_eval.pytest_plugin.episodes.episode_files import EpisodeFiles
from ci_agent_eval.pytest_plugin.episodes.episode_summary import (
    PREFIX,
    build_summary_record,
    is_result_property,
    list_junit_properties,
    list_notes,
    redact_report,
)
from ci_agent_eval.pytest_plugin.episodes.marker import (
    build_episode_from_marker,
    get_default_scenario,
)
from ci_agent_eval.pytest_plugin.episodes.repository_paths import CheckPlaces, RepositoryPaths
from ci_agent_eval.pytest_plugin.evaluation import measurement, rewritten_asserts
from ci_agent_eval.pytest_plugin.evaluation.assert_evidence import AssertEvidence
from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import is_evaluation
from ci_agent_eval.pytest_plugin.parts import get_parts
from ci_agent_eval.pytest_plugin.run import RECORD
from ci_agent_eval.recording import EpisodeRecorder, build_initial_episode, list_failure_reasons
from ci_agent_eval.recording.active_episode import (
    RunningEpisode,
    activate_episode,
    deactivate_episode,
)
from ci_agent_eval.redaction import make_distinct_names

if TYPE_CHECKING:
    from ci_agent_eval.pytest_plugin.adaptive_iterations import AdaptiveIterations
    from ci_agent_eval.pytest_plugin.collection.declared_files import AffectedSelection
    from ci_agent_eval.steering.policy.model import Rules


class EpisodeSession:
    """The object that the plugin's hooks call; one per process that runs tests."""

    def __init__(self, repo: RepositoryPaths, files: EpisodeFiles) -> None:
        self._repo = repo
        self.files = files
        """Writes and redacts the episodes."""
        self._evidence: AssertEvidence | None = None
        self._load_steering_rules: Callable[[], Rules] | None = None
        self._subtest: EpisodeItem | None = None
        self._places = CheckPlaces(repo)
        self.adaptive: AdaptiveIterations | None = None
        """The adaptive iterations of this process; None: it has none."""
        self.notes: tuple[str, ...] = ()
        """Notes about the selected episodes, printed before they run."""

    @classmethod
    def for_process(cls, config: pytest.Config) -> EpisodeSession:
        """Create the session of the process that `config` belongs to."""
        build_models()  # before threads of agents share them
        repo = RepositoryPaths.find(config.rootpath, os.environ)
        episodes = cls(repo, EpisodeFiles.for_process(config, repo.root))
        episodes._evidence = AssertEvidence(config, episodes._repo)
        rewritten_asserts.listen(episodes._evidence)
        episodes._load_steering_rules = _build_rules_loader(config.rootpath)
        is_debugging = config.getoption("usepdb", default=False)
        episodes._places = CheckPlaces(episodes._repo, keep=is_debugging)
        get_parts(config).episodes = episodes
        return episodes

    def select(
        self,
        items: Sequence[pytest.Item],
        deselected: int,
        shard: Shard | None = None,
        removed: Sequence[RemovedScenario] = (),
        selection: AffectedSelection | None = None,
    ) -> None:
        """Register the items that are episodes, and write how many there are.

        Two node ids may become equal once secrets are removed; the later one, in the order of the
        full ids, gets a number. The same item twice counts as two iterations.
        """
        names = make_distinct_names((item.nodeid for item in items), self.files.redact)
        scenarios = make_distinct_names(map(get_default_scenario, items), self.files.redact)
        earlier: Counter[str] = Counter()
        for item in items:
            iteration = get_iteration(item)
            number = iteration.number + earlier[item.nodeid] * iteration.limits.total
            earlier[item.nodeid] += 1
            scenario = scenarios[get_default_scenario(item)]
            self._register_item(item, EpisodeItem(names[item.nodeid], scenario, number))
        self.files.write_selected(
            selected=sum(1 for item in items if not is_optional(item)),
            deselected=deselected,
            shard=shard,
            removed=tuple(map(self.files.redact_model, removed)),
            left_out=tuple(map(self.files.redact, selection.left_out if selection else ())),
        )
        if items:
            self.adaptive = self._start_adaptive(items)
            adaptive = () if self.adaptive is None else (self.adaptive.describe(),)
            found = [*list_notes(items, options.get_iterations(items[0].config)), *adaptive]
            self.notes = tuple(self.files.redact(note) for note in found)
        if selection is not None and (note := selection.describe()):
            self.notes = (*self.notes, self.files.redact(note))

    def _start_adaptive(self, items: Sequence[pytest.Item]) -> AdaptiveIterations | None:
        """Return the adaptive iterations of these items; None: none is adaptive."""
        is_adaptive = any(get_iteration(item).limits.minimum is not None for item in items)
        if self.adaptive is None and not is_adaptive:
            return None
        from ci_agent_eval.pytest_plugin.adaptive_iterations import (  # noqa: PLC0415 - rarely needed
            AdaptiveIterations,
        )

        return AdaptiveIterations.start(items[0].config, items)

    def dump_adaptive_stops(self) -> list[dict[str, Any]]:
        """Return why the adaptive scenarios of this process stopped, as plain redacted data."""
        found = () if self.adaptive is None else self.adaptive.list_stops()
        return [self.files.redact_model(stop).model_dump() for stop in found]

    def _register_item(self, item: pytest.Item, state: EpisodeItem) -> None:
        item.stash[EPISODE] = state
        names: list[str] | None = getattr(item, "fixturenames", None)
        if names is not None and RECORDER not in names:
            # A marked test that uses no fixture of ours is timed too. The list is replaced, not
            # appended to: the items of one parametrized test share it.
            item.fixturenames = [*names, RECORDER]  # type: ignore[attr-defined]

    def redact_report(self, report: pytest.TestReport) -> None:
        """Redact a report if this process has secrets that its parent process does not know.

        A process that reads our output knows the secrets of the environment.
        """
        if self.files.has_own_secrets:
            redact_report(report, self.files.redact)

    def begin(self, item: pytest.Item, *, ahead: bool = False) -> None:
        """Write that the episode has started, as its result if nothing more follows.

        An episode that is started ahead of its turn is not activated yet.
        """
        state = item.stash[EPISODE]
        state.is_repeated = state.unreported is not None
        self._end_unreported(item)
        if self.adaptive is not None:
            self.adaptive.begin(item)
        # pytest-rerunfailures counts in `execution_count`, even after a worker crashed.
        state.attempt = max(state.attempt + 1, getattr(item, "execution_count", 1))
        state.recorder = state.final_episode = state.subtest = None
        state.called = False
        state.subtest_errors.clear()
        state.subtest_failures.clear()
        state.initial_episode = self._build_initial_episode(item, state)
        self._places.clear()
        if self._evidence is not None:
            self._evidence.begin(item)
        state.running = RunningEpisode(
            state.initial_episode.mode,
            locate=self._places.locate_frame,
            load_steering_rules=self._load_steering_rules,
        )
        if measurement.is_hypothesis_evaluation(item, state):
            state.running.mode, state.running.counts_once = "strict", True
        if not ahead:
            self.activate(item)
        self.files.write("started", build_lost_episode(state.initial_episode))

    def withdraw(self, item: pytest.Item) -> None:
        """Forget an episode that was started ahead and has to wait for its turn."""
        state = item.stash[EPISODE]
        state.attempt -= 1
        state.recorder = state.running = None

    def activate(self, item: pytest.Item) -> None:
        """Make this item's episode the active one."""
        state = item.stash[EPISODE]
        if state.running is None:
            deactivate_episode()
        else:
            activate_episode(state.running)

    def raise_marker_problem(self, item: pytest.Item) -> None:
        """Raise pytest.UsageError in the setup of a test with an invalid marker."""
        problem = item.stash[EPISODE].problem
        if problem is not None:
            raise pytest.UsageError(problem)

    def _build_initial_episode(self, item: pytest.Item, state: EpisodeItem) -> Episode:
        file, line = self._repo.locate_item(item)
        mode = "evaluation" if is_evaluation(item) else "strict"
        identity: Any = {
            "iteration": state.iteration,
            "iterations": get_iteration(item).limits.total,
            "minimum_iterations": get_iteration(item).limits.minimum,
            "attempt": state.attempt,
            "mode": mode,
            "case": describe_case(item),
        }
        try:
            return build_episode_from_marker(
                item,
                scenario_id=state.scenario_id,
                nodeid=state.nodeid,
                file=file,
                line=line,
                **identity,
            )
        except InputError as error:
            state.problem = str(error)
            return build_initial_episode(
                state.scenario_id, nodeid=state.nodeid, file=file, line=line, **identity
            )

    def build_recorder(
        self, item: pytest.Item, clock: Callable[[], float], fixture: Callable[[str], Any]
    ) -> EpisodeRecorder:
        """Return the recorder of the item's episode, which starts now.

        `fixture` returns the item's fixtures by name, for code that finds the running episode.
        """
        if EPISODE not in item.stash:
            # Requested only with `request.getfixturevalue`: unknown until now.
            name = self.files.redact(item.nodeid)
            item.stash[EPISODE] = EpisodeItem(name, name)
            self.begin(item)
        state = item.stash[EPISODE]
        if state.initial_episode is None:
            raise pytest.UsageError(f"{item.nodeid}: the episode was asked for before its setup")
        state.recorder = EpisodeRecorder(
            state.initial_episode, clock=clock, locate=self._places.locate_caller
        )
        if (running := state.running) is not None:
            running.recorder, running.fixture = state.recorder, fixture
            for assertion in running.early_assertions:
                state.recorder.record_assertion(assertion)
            running.early_assertions.clear()
        return state.recorder

    def mark_called(self, item: pytest.Item) -> None:
        """Count assertions from now on: the test function is called."""
        if (running := item.stash[EPISODE].running) is not None:
            running.is_called = True

    def note_call(self, item: pytest.Item, error: BaseException | None) -> None:
        """Keep how the test's call ended until its report is made."""

        def end() -> None:
            if error is not None:
                raise error

        item.stash[EPISODE].unreported = pytest.CallInfo.from_call(end, when="call")

    def _end_unreported(self, item: pytest.Item) -> None:
        """End an attempt that a plugin makes no report of, as pytest-retry runs a test again."""
        call = item.stash[EPISODE].unreported
        if call is not None:
            self.record_phase(item, call, pytest.TestReport.from_item_and_call(item, call))

    def raise_swallowed_exception(self, item: pytest.Item) -> None:
        """Raise the exception of a test function that a hook of another plugin swallowed."""
        running = item.stash[EPISODE].running
        if running is not None and running.raised is not None:
            raise running.raised

    def judge(self, item: pytest.Item) -> None:
        """Fail a test that returned, because of failed checks and exceeded hard budgets."""
        state = item.stash[EPISODE]
        state.called = True
        measurement.record_unittest_failures(item, state, self._repo)
        measurement.record_soft_failures(item, state)
        measurement.record_property_assertion(state)
        state.subtest_errors += measurement.abandon_unawaited_checks(state)
        state.subtest_errors += list_problems(state)
        if not state.subtest_errors:
            state.subtest_errors += measurement.check_for_assertions(state)
        episode = finish_episode(state, get_ending_after_subtests(state))
        state.final_episode = episode = measurement.note_uncounted_asserts(
            item, state, episode, self._evidence
        )
        if measurement.is_measured(item, state) and not state.subtest_errors:
            return
        if lines := (*list_failure_reasons(episode), *state.subtest_errors):
            failure = measurement.build_failure(state, _format_failure(episode, lines))
            raise failure.with_traceback(self._places.build_traceback(episode.failed_assertions))

    def handle_exception(self, item: pytest.Item, error: BaseException) -> None:
        """Fail a test that skipped itself after a check or a subtest had failed; note the cause."""
        state = item.stash[EPISODE]
        state.called = True
        for problem in measurement.abandon_unawaited_checks(state):
            error.add_note(problem)  # it may be the cause
        measurement.record_soft_failures(item, state)
        state.subtest_errors += list_problems(state)
        failed = state.recorder is not None and state.recorder.failed_checks
        if not measurement.is_own_skip(error, state) or not (failed or state.subtest_errors):
            return
        if measurement.is_measured(item, state) and not state.subtest_errors:
            return
        reason = measurement.get_skip_reason(error) or ""
        ending = get_ending_after_subtests(state, Ending("skipped", reason or None))
        state.final_episode = episode = finish_episode(state, ending)
        lines = [*list_failure_reasons(episode), *state.subtest_errors, f"then skipped: {reason}"]
        raise EpisodeFailed(_format_failure(episode, lines), pytrace=False) from None

    def interrupt(self, item: pytest.Item, interruption: BaseException) -> None:
        """Write the partial episode that Ctrl-C or `pytest.exit` ended."""
        self.cut_off(item, f"interrupted: {type(interruption).__name__}")

    def cut_off(self, item: pytest.Item, reason: str) -> None:
        """Write the partial episode that ended for an external reason.

        No report follows, so its record for the terminal summary is added here.
        """
        state = item.stash[EPISODE]
        ended = finish_episode(state, Ending("error", reason))
        # It has not ended: this line has more data than the one written at its start.
        self.files.write("started", ended, state.initial_episode)
        record = build_summary_record(self.files.redact_episode(ended))
        if (reports := get_parts(item.config).reports) is not None:
            reports.keep(record)

    def measure_failure(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Remove a failure from the call of an evaluation: it is measured and fails no test."""
        state = item.stash[EPISODE]
        if call.when != "call" or call.excinfo is None or not measurement.is_measured(item, state):
            return
        ending = measurement.determine_measured_ending(call.excinfo, state, self._repo)
        if ending is None or (state.called and list_problems(state)):
            return
        if state.called:
            state.final_episode = finish_episode(state, ending)
        else:
            state.subtest, self._subtest = ending, state
        call.excinfo = None

    def record_phase(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> None:
        """Write how a phase ended, if it ended the episode, and annotate the report."""
        state = item.stash[EPISODE]
        if call.when == "call" and state.called:
            if state.is_repeated and state.unreported is not None:
                call = state.unreported  # the report is that of the last attempt
            state.unreported = None
        if report.when == "teardown":
            self._end_unreported(item)
        ending = determine_ending(call, report, self._repo, self._repo.relative(item.path))
        if state.is_evaluation and measurement.failed_in_shared_teardown(call):
            ending = Ending("passed")
        if call.when == "call" and not state.called:
            self._begin_subtest(state, call, ending)
            figures = report.user_properties
            report.user_properties = [e for e in figures if not is_result_property(e[0])]
            return
        if report.when == "teardown":
            ending = fail_late_records(state, report, ending)
        initial = state.initial_episode
        final = update_after_phase(state, call, report, ending)
        self._write_final(state, final)  # before the hooks, which may stop the run
        if report.when == "teardown" and (ended := state.final_episode) is not None:
            self._write_final(
                state, call_episode_hooks(item, report, ended, self.files.redact_episode)
            )
        current = state.final_episode or (initial and build_lost_episode(initial))
        if current is not None:
            self._annotate_report(item, report, self.files.redact_episode(current))
        if report.when == "teardown":
            deactivate_episode()

    def _write_final(self, state: EpisodeItem, final: Episode | None) -> None:
        if final is not None:
            state.final_episode = final
            self.files.write("ended", final, state.initial_episode)

    def _begin_subtest(
        self, state: EpisodeItem, call: pytest.CallInfo[None], ending: Ending
    ) -> None:
        """Remember a failed subtest; only its report, which comes next, has its name."""
        if ending.outcome in {"failed", "error"} and call.excinfo is not None:
            state.subtest = ending
            state.subtest_failures.append(call.excinfo.value)
            self._subtest = state

    def end_test(self, item: pytest.Item) -> None:
        """Deactivate the episode after its test, and free its state."""
        deactivate_episode()
        if EPISODE in item.stash:
            if self.adaptive is not None:
                self.adaptive.end(item, item.stash[EPISODE].final_episode)
            item.stash[EPISODE].forget()
            item.stash[REPORTED_EPISODE] = None

    def note_report(self, report: pytest.TestReport) -> None:
        """Record the failed subtest, whose name is known now, in its episode."""
        state, self._subtest = self._subtest, None
        if state is not None:
            record_subtest(state, format_subtest_name(report))

    def _annotate_report(
        self, item: pytest.Item, report: pytest.TestReport, episode: Episode
    ) -> None:
        """Attach the episode's figures for JUnit and the terminal summary."""
        state, properties = item.stash[EPISODE], item.user_properties
        others = [entry for entry in properties if not entry[0].startswith(PREFIX)]
        if state.summary_record is None or item.stash.get(REPORTED_EPISODE, None) is not episode:
            state.summary_record = build_summary_record(episode)
            item.stash[REPORTED_EPISODE] = episode
            figures: list[tuple[str, object]] = list(list_junit_properties(episode))
        else:  # the teardown's report has the same figures as the call's
            figures = [entry for entry in properties if entry[0].startswith(PREFIX)]
        item.user_properties[:] = [*others, *figures]
        report.user_properties = list(item.user_properties)
        setattr(report, RECORD, state.summary_record)


def _format_failure(episode: Episode, lines: Sequence[str]) -> str:
    """Return the failure's message; a single problem is on the first line."""
    title = f"episode {episode.scenario_id!r}"
    if len(lines) == 1:
        return f"{title}: {lines[0]}"
    return "\n  ".join([f"{title}: {len(lines)} problems", *lines])


def _build_rules_loader(root: Path) -> Callable[[], Rules]:
    """Return a function that reads the rules of the settings file in `root`, at its first call.

    The function raises InputError if the file is invalid.
    """

    @cache
    def load_rules() -> Rules:
        from ci_agent_eval.steering.pytest_project import build_project_finder  # noqa: PLC0415 - inert until used
        from ci_agent_eval.steering.settings_loader import load_steering_settings  # noqa: PLC0415 - as above

        # Variables of the environment set no rules.
        rules = load_steering_settings(root=root, environ={}).rules
        return replace(rules, find_project=build_project_finder(root))

    return load_rules
