"""The episodes of a session: one process's, from their selection to their last line."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import Any, Literal

import pytest

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import JournalLine, RemovedScenario, Shard
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.collection.detection import EPISODE, RECORDER, SHOWN, EpisodeItem
from ci_agent_eval.pytest_plugin.collection.iterations import get_iteration
from ci_agent_eval.pytest_plugin.collection.notes import list_notes
from ci_agent_eval.pytest_plugin.episodes.conversations import get_default_scenario
from ci_agent_eval.pytest_plugin.episodes.endings import Ending, EpisodeFailed, determine_ending
from ci_agent_eval.pytest_plugin.episodes.episode_summary import (
    PREFIX,
    build_summary_record,
    is_result_property,
    list_junit_properties,
)
from ci_agent_eval.pytest_plugin.episodes.marker import build_episode_from_marker
from ci_agent_eval.pytest_plugin.episodes.model_redaction import redact_model
from ci_agent_eval.pytest_plugin.episodes.report_redaction import redact_report
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.pytest_plugin.episodes.subtests import (
    format_subtest_name,
    get_ending_after_subtests,
    is_of_subtest,
    record_subtest,
)
from ci_agent_eval.pytest_plugin.evaluation import measurement
from ci_agent_eval.pytest_plugin.evaluation.counting.install import AssertCounting
from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import is_evaluation
from ci_agent_eval.pytest_plugin.terminal import ATTRIBUTE, LOST, PLUGIN_NAME
from ci_agent_eval.recording import EpisodeRecorder, build_initial_episode, list_failure_reasons
from ci_agent_eval.recording.active_episode import (
    RunningEpisode,
    activate_episode,
    deactivate_episode,
)
from ci_agent_eval.redaction import Redactor, make_distinct_names
from ci_agent_eval.storage.run_folder import Journal, ReportFolder

NAME = "ci_agent_eval_episodes"
"""What pytest knows the session's episodes by."""


class EpisodeSession:
    """What the plugin's hooks call; one for each process that runs tests."""

    def __init__(
        self, places: RepositoryPaths, redactor: Redactor, folder: ReportFolder | None
    ) -> None:
        self._places = places
        self._redactor = redactor
        self._has_learned = False
        self._cleaned: tuple[Redactor, Episode, Episode] | None = None
        self._folder = folder
        self._journal: Journal | None = None
        self._counting: AssertCounting | None = None
        self._subtest: EpisodeItem | None = None
        self.notes: tuple[str, ...] = ()
        """What is worth saying of the selected episodes before they run."""

    @classmethod
    def of(cls, config: pytest.Config) -> EpisodeSession:
        """Set up for the process that `config` belongs to."""
        directory = options.get_report_dir(config)
        folder = None if directory is None else ReportFolder(directory)
        episodes = cls(
            RepositoryPaths.of(config.rootpath, os.environ),
            Redactor.from_environ(os.environ),
            folder,
        )
        episodes._counting = AssertCounting(config, episodes._places)
        episodes._journal = folder.journal(options.get_worker_id(config)) if folder else None
        config.pluginmanager.register(episodes, NAME)
        return episodes

    @staticmethod
    def of_running(config: pytest.Config) -> EpisodeSession:
        """Return the one that was set up for the process."""
        found = config.pluginmanager.get_plugin(NAME)
        assert isinstance(found, EpisodeSession)  # noqa: S101 - whoever asks is in an episode
        return found

    def select(
        self,
        items: Sequence[pytest.Item],
        deselected: int,
        shard: Shard | None = None,
        removed: Sequence[RemovedScenario] = (),
    ) -> None:
        """Take up the items that are episodes, and note how many there are.

        Two node ids may be the same once secrets are out of them; the later one, in the
        order of the full ids, gets a number. The same item twice is two iterations.
        """
        names = make_distinct_names((item.nodeid for item in items), self._redactor.text)
        scenarios = make_distinct_names(map(get_default_scenario, items), self._redactor.text)
        earlier: Counter[str] = Counter()
        for item in items:
            iteration = get_iteration(item)
            number = iteration.number + earlier[item.nodeid] * iteration.of
            earlier[item.nodeid] += 1
            scenario = scenarios[get_default_scenario(item)]
            self._take_up(item, EpisodeItem(names[item.nodeid], scenario, number))
        if self._folder is not None:
            clean = tuple(redact_model(scenario, self._redactor) for scenario in removed)
            self._folder.note_selected(len(items), deselected, shard, clean)
        if items:
            found = [
                *list_notes(items, options.get_iterations(items[0].config)),
                *_list_alone_notes(items),
            ]
            self.notes = tuple(self._redactor.text(note) for note in found)

    def _take_up(self, item: pytest.Item, state: EpisodeItem) -> None:
        item.stash[EPISODE] = state
        names: list[str] | None = getattr(item, "fixturenames", None)
        if names is not None and RECORDER not in names:
            # A marked test that asks for no fixture of ours is timed all the same. The list is
            # replaced, not appended to: the items of one parametrized test share it.
            item.fixturenames = [*names, RECORDER]  # type: ignore[attr-defined]

    def learn(self, secrets: frozenset[str]) -> None:
        """Keep these values, too, out of what is written and shown from now on."""
        self._redactor = self._redactor.with_secrets(secrets)
        self._has_learned = True

    def clean(self, report: pytest.TestReport) -> None:
        """Take secrets out of a report, once there are any that only this process knows.

        Whoever reads our output knows those of the environment by itself.
        """
        if self._has_learned:
            redact_report(report, self._redactor.text)

    def begin(self, item: pytest.Item, *, ahead: bool = False) -> None:
        """Write down that the episode has started, as it would be if nothing more came.

        One that is started ahead is not entered: its turn is to come.
        """
        state = item.stash[EPISODE]
        # pytest-rerunfailures counts in `execution_count`, also over a worker that crashed.
        state.attempt = max(state.attempt + 1, getattr(item, "execution_count", 1))
        state.recorder = state.ended = state.subtest = None
        state.called = False
        state.subtest_errors.clear()
        state.subtest_failures.clear()
        state.draft = self._draft(item, state)
        if state.draft.evidence == "required" and self._counting is not None:
            state.problem = self._counting.count_for(item) or state.problem
        state.running = RunningEpisode(state.draft.mode, locate=self._places.of_frame)
        if measurement.is_hypothesis_evaluation(item, state):
            state.running.mode, state.running.counts_once = "strict", True
        if not ahead:
            self.enter(item)
        self._write("started", _build_lost_episode(state.draft))

    def enter(self, item: pytest.Item) -> None:
        """Let what is asserted from now on be the item's, whose turn it is."""
        state = item.stash[EPISODE]
        if state.running is None:
            deactivate_episode()
        else:
            activate_episode(state.running)

    def confirm(self, item: pytest.Item) -> None:
        """End the setup of a test whose marker cannot be read with the reason."""
        problem = item.stash[EPISODE].problem
        if problem is not None:
            raise pytest.UsageError(problem)

    def _draft(self, item: pytest.Item, state: EpisodeItem) -> Episode:
        file, line = self._places.of_item(item)
        mode = "evaluation" if is_evaluation(item) else "strict"
        identity: Any = {
            "iteration": state.iteration,
            "iterations": get_iteration(item).of,
            "attempt": state.attempt,
            "mode": mode,
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

    def recorder(
        self, item: pytest.Item, clock: Callable[[], float], fixture: Callable[[str], Any]
    ) -> EpisodeRecorder:
        """Return the recorder of the item's episode, which starts now.

        `fixture` gives the item's fixtures by name, to those who find the running episode.
        """
        if EPISODE not in item.stash:
            # Asked for with `request.getfixturevalue` alone: unknown until now.
            name = self._redactor.text(item.nodeid)
            item.stash[EPISODE] = EpisodeItem(name, name)
            self.begin(item)
        state = item.stash[EPISODE]
        if state.draft is None:
            raise pytest.UsageError(f"{item.nodeid}: the episode was asked for before its setup")
        state.recorder = EpisodeRecorder.from_initial_episode(
            state.draft, clock=clock, locate=self._places.of_caller
        )
        if (running := state.running) is not None:
            running.recorder, running.fixture = state.recorder, fixture
            for assertion in running.early_assertions:
                state.recorder.keep(assertion)
            running.early_assertions.clear()
        return state.recorder

    def call(self, item: pytest.Item) -> None:
        """Count what is asserted from now on: the test is called."""
        if (running := item.stash[EPISODE].running) is not None:
            running.is_called = True

    def judge(self, item: pytest.Item) -> None:
        """Fail a test that returned, over failed checks and hard budgets not kept."""
        state = item.stash[EPISODE]
        state.called = True
        measurement.record_unittest_failures(item, state, self._places)
        measurement.record_soft_failures(item, state)
        measurement.record_property_assertion(state)
        state.subtest_errors += measurement.abandon_unawaited_checks(state)
        if not state.subtest_errors:
            state.subtest_errors += measurement.check_for_assertions(state)
        state.ended = measurement.note_uncounted_asserts(
            item, _finish_episode(state, get_ending_after_subtests(state))
        )
        if measurement.is_measured(item, state) and not state.subtest_errors:
            return
        if lines := (*list_failure_reasons(state.ended), *state.subtest_errors):
            raise measurement.build_failure(state, _format_failure(state.ended, lines))

    def raised(self, item: pytest.Item, error: BaseException) -> None:
        """Fail a test that skipped itself after a check or a subtest had failed."""
        state = item.stash[EPISODE]
        state.called = True
        measurement.record_soft_failures(item, state)
        failed = state.recorder is not None and state.recorder.failed_checks
        if not measurement.is_own_skip(error, state) or not (failed or state.subtest_errors):
            return
        if measurement.is_measured(item, state) and not state.subtest_errors:
            return
        reason = measurement.get_skip_reason(error)
        state.ended = _finish_episode(
            state, get_ending_after_subtests(state, Ending("skipped", reason))
        )
        lines = (
            *list_failure_reasons(state.ended),
            *state.subtest_errors,
            f"then skipped: {reason or ''}",
        )
        raise EpisodeFailed(_format_failure(state.ended, lines), pytrace=False) from None

    def interrupt(self, item: pytest.Item, interruption: BaseException) -> None:
        """Write down what there is of an episode that Ctrl-C or `pytest.exit` ended."""
        self.cut_off(item, f"interrupted: {type(interruption).__name__}")

    def cut_off(self, item: pytest.Item, reason: str) -> None:
        """Write down what there is of an episode that ended for a reason outside of it.

        No report will come of it, so the terminal summary is told here.
        """
        state = item.stash[EPISODE]
        ended = _finish_episode(state, Ending("error", reason))
        # It has not ended: this says more of it than the line of its start.
        self._write("started", ended, state.draft)
        facts = build_summary_record(self._redacted(ended))
        if (reports := item.config.pluginmanager.get_plugin(PLUGIN_NAME)) is not None:
            reports.keep(facts)

    def measure(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Take a failure out of the call of an evaluation: it is measured, and fails no test."""
        state = item.stash[EPISODE]
        if call.when != "call" or call.excinfo is None or not measurement.is_measured(item, state):
            return
        ending = measurement.determine_measured_ending(call.excinfo, state, self._places)
        if ending is None:
            return
        if state.called:
            state.ended = _finish_episode(state, ending)
        else:
            state.subtest, self._subtest = ending, state
        call.excinfo = None

    def record(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> None:
        """Write down how a phase ended, where it ended the episode, and mark the report."""
        state = item.stash[EPISODE]
        ending = determine_ending(call, report, self._places, self._places.relative(item.path))
        if state.is_evaluation and measurement.failed_in_shared_teardown(call):
            ending = Ending("passed")
        if call.when == "call" and not state.called:
            self._begin_subtest(state, call, ending)
            report.user_properties = [
                e for e in report.user_properties if not is_result_property(e[0])
            ]
            return
        ended = _update_after_phase(state, call, report, ending)
        if ended is not None:
            state.ended = ended
            self._write("ended", ended, state.draft)
        current = state.ended or (state.draft and _build_lost_episode(state.draft))
        if current is not None:
            self._mark(item, report, self._redacted(current))
        if report.when == "teardown":
            deactivate_episode()

    def _begin_subtest(
        self, state: EpisodeItem, call: pytest.CallInfo[None], ending: Ending
    ) -> None:
        """Take up a subtest that failed; only its report, which comes next, has its name."""
        if ending.outcome in {"failed", "error"} and call.excinfo is not None:
            state.subtest = ending
            state.subtest_failures.append(call.excinfo.value)
            self._subtest = state

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Leave the episode with its test, however that ends, and let go of it."""
        try:
            return (yield)
        finally:
            deactivate_episode()
            if EPISODE in item.stash:
                item.stash[EPISODE].forget()
                item.stash[SHOWN] = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Put the failed subtest, which has its name now, into its episode."""
        state, self._subtest = self._subtest, None
        if state is not None:
            record_subtest(state, format_subtest_name(report))

    def _mark(self, item: pytest.Item, report: pytest.TestReport, episode: Episode) -> None:
        """Put the episode's figures where JUnit and the terminal summary find them."""
        state, properties = item.stash[EPISODE], item.user_properties
        others = [entry for entry in properties if not entry[0].startswith(PREFIX)]
        if state.facts is None or item.stash.get(SHOWN, None) is not episode:
            state.facts, item.stash[SHOWN] = build_summary_record(episode), episode
            own: list[tuple[str, object]] = list(list_junit_properties(episode))
        else:  # the teardown's report says what the call's did
            own = [entry for entry in properties if entry[0].startswith(PREFIX)]
        item.user_properties[:] = [*others, *own]
        report.user_properties = list(item.user_properties)
        setattr(report, ATTRIBUTE, state.facts)

    def _redacted(self, episode: Episode) -> Episode:
        """Return the episode without secrets; it is asked for by its line and by two reports."""
        known = self._cleaned
        if known is None or known[0] is not self._redactor or known[1] is not episode:
            known = (self._redactor, episode, redact_model(episode, self._redactor))
            self._cleaned = known
        return known[2]

    def _write(
        self,
        event: Literal["started", "ended"],
        episode: Episode,
        draft: Episode | None = None,
    ) -> None:
        if self._journal is not None:
            renamed = draft is not None and draft.scenario_id != episode.scenario_id
            started_as = self._redactor.text(draft.scenario_id) if draft and renamed else None
            line = JournalLine(event=event, episode=self._redacted(episode), started_as=started_as)
            self._journal.write(line)


def _list_alone_notes(items: Sequence[pytest.Item]) -> Sequence[str]:
    """Say which episodes run alone, where others are asked to run side by side."""
    if options.get_concurrency(items[0].config) == 1:
        return ()
    from ci_agent_eval.pytest_plugin.concurrency.eligibility import (  # noqa: PLC0415 - inert until used
        build_alone_notes,
    )

    return build_alone_notes(items)


def _format_failure(episode: Episode, lines: Sequence[str]) -> str:
    """Return the failure's message; the only complaint stands on the first line."""
    title = f"episode {episode.scenario_id!r}"
    if len(lines) == 1:
        return f"{title}: {lines[0]}"
    return "\n  ".join([f"{title}: {len(lines)} problems", *lines])


def _build_lost_episode(draft: Episode) -> Episode:
    return _replace_ending(draft, Ending("error", LOST))


def _update_after_phase(
    state: EpisodeItem, call: pytest.CallInfo[None], report: pytest.TestReport, ending: Ending
) -> Episode | None:
    """Return the episode as the phase leaves it; None where the phase changes nothing."""
    if report.when == "teardown":
        return measurement.add_late_assertions(state, _update_after_teardown(state, ending))
    if report.when == "setup" and report.passed:
        return None
    if state.ended is not None:
        return _update_after_judgement(state.ended, call, ending)
    if call.excinfo is not None and is_of_subtest(state, call.excinfo.value):
        ending = get_ending_after_subtests(state)
    return _finish_episode(state, ending)


def _finish_episode(state: EpisodeItem, ending: Ending) -> Episode:
    """Freeze the episode as it is; without a recorder its setup never got so far."""
    if state.running is not None:
        state.running.ended = True
    asserted = state.has_counted_assertion
    if state.recorder is not None:
        ended = state.recorder.finish(
            ending.outcome, ending.reason, failed_assertion=ending.assertion, asserted=asserted
        )
        return _replace_ending(ended, ending) if ending.expected else ended
    assert state.draft is not None, "an episode begins before it ends"  # noqa: S101 - see begin
    early = () if state.running is None else tuple(state.running.early_assertions)
    ended = measurement.add_assertions(_replace_ending(state.draft, ending), early, "in setup")
    return Episode.model_validate({**dict(ended), "asserted": asserted})


def _replace_ending(episode: Episode, ending: Ending) -> Episode:
    """Return the episode with another end; what was to fail is no more than a warning."""
    update: dict[str, Any] = {"outcome": ending.outcome, "reason": ending.reason}
    if ending.expected:
        update["assertions"] = tuple(
            a if a.passed else a.model_copy(update={"severity": "warning"})
            for a in episode.assertions
        )
    return episode.model_copy(update=update)


def _update_after_judgement(
    episode: Episode, call: pytest.CallInfo[None], ending: Ending
) -> Episode:
    """Keep the judgement, unless an xfail or another plugin turned it round."""
    complained = call.excinfo is not None and isinstance(call.excinfo.value, EpisodeFailed)
    is_known = complained or episode.outcome == "failed"
    if ending.outcome == "passed" or (is_known and ending.outcome == "failed"):
        return episode
    if ending.assertion is not None:
        # A plugin failed the test over something that its own episode does not know of.
        episode = measurement.add_assertions(episode, [ending.assertion], "after the test")
    return _replace_ending(episode, ending)


def _update_after_teardown(state: EpisodeItem, ending: Ending) -> Episode | None:
    """Make a broken teardown an error, unless the agent had failed before it."""
    if state.ended is None:
        return _finish_episode(state, Ending("skipped", "the test was set up but not called"))
    if ending.outcome == "passed":
        return None
    if state.ended.outcome == "failed":
        reason = f"{state.ended.reason or 'a check failed'}; then in teardown: {ending.reason}"
        return state.ended.model_copy(update={"reason": reason})
    return _replace_ending(state.ended, Ending("error", f"in teardown: {ending.reason}"))
