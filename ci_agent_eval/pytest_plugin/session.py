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
from ci_agent_eval.pytest_plugin.collection.iterations import iteration_of
from ci_agent_eval.pytest_plugin.collection.notes import notes
from ci_agent_eval.pytest_plugin.episodes.conversations import scenario_of
from ci_agent_eval.pytest_plugin.episodes.endings import Ending, EpisodeFailed, ending_of
from ci_agent_eval.pytest_plugin.episodes.figures import (
    PREFIX,
    is_figure,
    junit_properties,
    summary_facts,
)
from ci_agent_eval.pytest_plugin.episodes.marker import draft_from_marker
from ci_agent_eval.pytest_plugin.episodes.places import Places
from ci_agent_eval.pytest_plugin.episodes.redacted import redacted
from ci_agent_eval.pytest_plugin.episodes.report_redaction import clean
from ci_agent_eval.pytest_plugin.episodes.subtests import (
    ending_after_subtests,
    is_of_subtest,
    keep_subtest,
    subtest_name,
)
from ci_agent_eval.pytest_plugin.evaluation import measuring
from ci_agent_eval.pytest_plugin.evaluation.counting.install import AssertCounting
from ci_agent_eval.pytest_plugin.evaluation.files import is_evaluation
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

    def __init__(self, places: Places, redactor: Redactor, folder: ReportFolder | None) -> None:
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
        directory = options.report_dir(config)
        folder = None if directory is None else ReportFolder(directory)
        episodes = cls(
            Places.of(config.rootpath, os.environ), Redactor.from_environ(os.environ), folder
        )
        episodes._counting = AssertCounting(config, episodes._places)
        episodes._journal = folder.journal(options.worker_id(config)) if folder else None
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
        scenarios = make_distinct_names(map(scenario_of, items), self._redactor.text)
        earlier: Counter[str] = Counter()
        for item in items:
            iteration = iteration_of(item)
            number = iteration.number + earlier[item.nodeid] * iteration.of
            earlier[item.nodeid] += 1
            scenario = scenarios[scenario_of(item)]
            self._take_up(item, EpisodeItem(names[item.nodeid], scenario, number))
        if self._folder is not None:
            clean = tuple(redacted(scenario, self._redactor) for scenario in removed)
            self._folder.note_selected(len(items), deselected, shard, clean)
        if items:
            found = [*notes(items, options.iterations(items[0].config)), *_alone(items)]
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
        self._redactor = self._redactor.also(secrets)
        self._has_learned = True

    def clean(self, report: pytest.TestReport) -> None:
        """Take secrets out of a report, once there are any that only this process knows.

        Whoever reads our output knows those of the environment by itself.
        """
        if self._has_learned:
            clean(report, self._redactor.text)

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
        if measuring.runs_often(item, state):
            state.running.mode, state.running.counts_once = "strict", True
        if not ahead:
            self.enter(item)
        self._write("started", _lost(state.draft))

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
            "iterations": iteration_of(item).of,
            "attempt": state.attempt,
            "mode": mode,
        }
        try:
            return draft_from_marker(
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
        measuring.keep_unittest_failures(item, state, self._places)
        measuring.keep_soft_failures(item, state)
        measuring.keep_property(state)
        state.subtest_errors += measuring.unawaited(state)
        if not state.subtest_errors:
            state.subtest_errors += measuring.nothing_asserted(state)
        state.ended = measuring.with_uncounted(item, _end(state, ending_after_subtests(state)))
        if measuring.is_measured(item, state) and not state.subtest_errors:
            return
        if lines := (*list_failure_reasons(state.ended), *state.subtest_errors):
            raise measuring.failed(state, _sentence(state.ended, lines))

    def raised(self, item: pytest.Item, error: BaseException) -> None:
        """Fail a test that skipped itself after a check or a subtest had failed."""
        state = item.stash[EPISODE]
        state.called = True
        measuring.keep_soft_failures(item, state)
        failed = state.recorder is not None and state.recorder.failed_checks
        if not measuring.gives_up(error, state) or not (failed or state.subtest_errors):
            return
        if measuring.is_measured(item, state) and not state.subtest_errors:
            return
        reason = measuring.given_up(error)
        state.ended = _end(state, ending_after_subtests(state, Ending("skipped", reason)))
        lines = (
            *list_failure_reasons(state.ended),
            *state.subtest_errors,
            f"then skipped: {reason or ''}",
        )
        raise EpisodeFailed(_sentence(state.ended, lines), pytrace=False) from None

    def interrupt(self, item: pytest.Item, interruption: BaseException) -> None:
        """Write down what there is of an episode that Ctrl-C or `pytest.exit` ended."""
        self.cut_off(item, f"interrupted: {type(interruption).__name__}")

    def cut_off(self, item: pytest.Item, reason: str) -> None:
        """Write down what there is of an episode that ended for a reason outside of it.

        No report will come of it, so the terminal summary is told here.
        """
        state = item.stash[EPISODE]
        ended = _end(state, Ending("error", reason))
        # It has not ended: this says more of it than the line of its start.
        self._write("started", ended, state.draft)
        facts = summary_facts(self._redacted(ended))
        if (reports := item.config.pluginmanager.get_plugin(PLUGIN_NAME)) is not None:
            reports.keep(facts)

    def measure(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Take a failure out of the call of an evaluation: it is measured, and fails no test."""
        state = item.stash[EPISODE]
        if call.when != "call" or call.excinfo is None or not measuring.is_measured(item, state):
            return
        ending = measuring.ending_of(call.excinfo, state, self._places)
        if ending is None:
            return
        if state.called:
            state.ended = _end(state, ending)
        else:
            state.subtest, self._subtest = ending, state
        call.excinfo = None

    def record(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> None:
        """Write down how a phase ended, where it ended the episode, and mark the report."""
        state = item.stash[EPISODE]
        ending = ending_of(call, report, self._places, self._places.relative(item.path))
        if state.is_evaluation and measuring.is_of_shared_teardown(call):
            ending = Ending("passed")
        if call.when == "call" and not state.called:
            self._begin_subtest(state, call, ending)
            report.user_properties = [e for e in report.user_properties if not is_figure(e[0])]
            return
        ended = _after(state, call, report, ending)
        if ended is not None:
            state.ended = ended
            self._write("ended", ended, state.draft)
        current = state.ended or (state.draft and _lost(state.draft))
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
            keep_subtest(state, subtest_name(report))

    def _mark(self, item: pytest.Item, report: pytest.TestReport, episode: Episode) -> None:
        """Put the episode's figures where JUnit and the terminal summary find them."""
        state, properties = item.stash[EPISODE], item.user_properties
        others = [entry for entry in properties if not entry[0].startswith(PREFIX)]
        if state.facts is None or item.stash.get(SHOWN, None) is not episode:
            state.facts, item.stash[SHOWN] = summary_facts(episode), episode
            own: list[tuple[str, object]] = list(junit_properties(episode))
        else:  # the teardown's report says what the call's did
            own = [entry for entry in properties if entry[0].startswith(PREFIX)]
        item.user_properties[:] = [*others, *own]
        report.user_properties = list(item.user_properties)
        setattr(report, ATTRIBUTE, state.facts)

    def _redacted(self, episode: Episode) -> Episode:
        """Return the episode without secrets; it is asked for by its line and by two reports."""
        known = self._cleaned
        if known is None or known[0] is not self._redactor or known[1] is not episode:
            known = (self._redactor, episode, redacted(episode, self._redactor))
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


def _alone(items: Sequence[pytest.Item]) -> Sequence[str]:
    """Say which episodes run alone, where others are asked to run side by side."""
    if options.concurrency(items[0].config) == 1:
        return ()
    from ci_agent_eval.pytest_plugin.concurrency.eligible import (  # noqa: PLC0415 - inert until used
        alone_notes,
    )

    return alone_notes(items)


def _sentence(episode: Episode, lines: Sequence[str]) -> str:
    """Return the failure's message; the only complaint stands on the first line."""
    title = f"episode {episode.scenario_id!r}"
    if len(lines) == 1:
        return f"{title}: {lines[0]}"
    return "\n  ".join([f"{title}: {len(lines)} problems", *lines])


def _lost(draft: Episode) -> Episode:
    return _with(draft, Ending("error", LOST))


def _after(
    state: EpisodeItem, call: pytest.CallInfo[None], report: pytest.TestReport, ending: Ending
) -> Episode | None:
    """Return the episode as the phase leaves it; None where the phase changes nothing."""
    if report.when == "teardown":
        return measuring.after_teardown(state, _after_teardown(state, ending))
    if report.when == "setup" and report.passed:
        return None
    if state.ended is not None:
        return _after_judgement(state.ended, call, ending)
    if call.excinfo is not None and is_of_subtest(state, call.excinfo.value):
        ending = ending_after_subtests(state)
    return _end(state, ending)


def _end(state: EpisodeItem, ending: Ending) -> Episode:
    """Freeze the episode as it is; without a recorder its setup never got so far."""
    if state.running is not None:
        state.running.ended = True
    asserted = state.has_counted_assertion
    if state.recorder is not None:
        ended = state.recorder.finish(
            ending.outcome, ending.reason, failed_assertion=ending.assertion, asserted=asserted
        )
        return _with(ended, ending) if ending.expected else ended
    assert state.draft is not None, "an episode begins before it ends"  # noqa: S101 - see begin
    early = () if state.running is None else tuple(state.running.early_assertions)
    ended = measuring.also(_with(state.draft, ending), early, "in setup")
    return Episode.model_validate({**dict(ended), "asserted": asserted})


def _with(episode: Episode, ending: Ending) -> Episode:
    """Return the episode with another end; what was to fail is no more than a warning."""
    update: dict[str, Any] = {"outcome": ending.outcome, "reason": ending.reason}
    if ending.expected:
        update["assertions"] = tuple(
            a if a.passed else a.model_copy(update={"severity": "warning"})
            for a in episode.assertions
        )
    return episode.model_copy(update=update)


def _after_judgement(episode: Episode, call: pytest.CallInfo[None], ending: Ending) -> Episode:
    """Keep the judgement, unless an xfail or another plugin turned it round."""
    complained = call.excinfo is not None and isinstance(call.excinfo.value, EpisodeFailed)
    is_known = complained or episode.outcome == "failed"
    if ending.outcome == "passed" or (is_known and ending.outcome == "failed"):
        return episode
    if ending.assertion is not None:
        # A plugin failed the test over something that its own episode does not know of.
        episode = measuring.also(episode, [ending.assertion], "after the test")
    return _with(episode, ending)


def _after_teardown(state: EpisodeItem, ending: Ending) -> Episode | None:
    """Make a broken teardown an error, unless the agent had failed before it."""
    if state.ended is None:
        return _end(state, Ending("skipped", "the test was set up but not called"))
    if ending.outcome == "passed":
        return None
    if state.ended.outcome == "failed":
        reason = f"{state.ended.reason or 'a check failed'}; then in teardown: {ending.reason}"
        return state.ended.model_copy(update={"reason": reason})
    return _with(state.ended, Ending("error", f"in teardown: {ending.reason}"))
