"""The episodes of a session: one process's, from their selection to their last line."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pytest

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import JournalLine
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.detection import EPISODE, RECORDER, EpisodeItem
from ci_agent_eval.pytest_plugin.endings import Ending, EpisodeFailed, ending_of
from ci_agent_eval.pytest_plugin.figures import PREFIX, junit_properties, summary_facts
from ci_agent_eval.pytest_plugin.marker import draft_from_marker
from ci_agent_eval.pytest_plugin.places import Places
from ci_agent_eval.pytest_plugin.redacted import redacted
from ci_agent_eval.pytest_plugin.terminal import ATTRIBUTE
from ci_agent_eval.recorder import EpisodeRecorder, complaints, draft_episode
from ci_agent_eval.redact import Redactor
from ci_agent_eval.run_folder import Journal, ReportFolder

LOST = "the process ended before the episode did"
"""Reason of an episode that left nothing but its start."""


class EpisodeSession:
    """What the plugin's hooks call; one for each process that runs tests."""

    def __init__(self, places: Places, redactor: Redactor, folder: ReportFolder | None) -> None:
        self._places = places
        self._redactor = redactor
        self._folder = folder
        self._journal: Journal | None = None

    @classmethod
    def of(cls, config: pytest.Config) -> EpisodeSession:
        """Set up for the process that `config` belongs to."""
        directory = options.report_dir(config)
        folder = None if directory is None else ReportFolder(directory)
        episodes = cls(
            Places.of(config.rootpath, os.environ), Redactor.from_environ(os.environ), folder
        )
        episodes._journal = folder.journal(options.worker_id(config)) if folder else None
        return episodes

    def select(self, items: Sequence[pytest.Item]) -> None:
        """Take up the items that are episodes, and note how many there are.

        Two node ids may be the same once secrets are out of them; the later one, in the
        order of the full ids, gets a number. The same item twice is two iterations.
        """
        seen: Counter[str] = Counter()
        names: dict[str, str] = {}
        for nodeid in sorted({item.nodeid for item in items}):
            clean = self._redactor.text(nodeid)
            seen[clean] += 1
            names[nodeid] = clean if seen[clean] == 1 else f"{clean}#{seen[clean]}"
        repeats: Counter[str] = Counter()
        for item in items:
            repeats[item.nodeid] += 1
            self._take_up(item, EpisodeItem(names[item.nodeid], repeats[item.nodeid]))
        if self._folder is not None:
            self._folder.note_selected(len(items))

    def _take_up(self, item: pytest.Item, state: EpisodeItem) -> None:
        item.stash[EPISODE] = state
        names: list[str] | None = getattr(item, "fixturenames", None)
        if names is not None and RECORDER not in names:
            # A marked test that asks for no fixture of ours is timed all the same. The list is
            # replaced, not appended to: the items of one parametrized test share it.
            item.fixturenames = [*names, RECORDER]  # type: ignore[attr-defined]

    def begin(self, item: pytest.Item) -> None:
        """Write down that the episode has started, as it would be if nothing more came."""
        state = item.stash[EPISODE]
        # pytest-rerunfailures counts in `execution_count`, also over a worker that crashed.
        state.attempt = max(state.attempt + 1, getattr(item, "execution_count", 1))
        state.recorder = state.ended = None
        state.draft = self._draft(item, state)
        self._write("started", _lost(state.draft))

    def confirm(self, item: pytest.Item) -> None:
        """End the setup of a test whose marker cannot be read with the reason."""
        problem = item.stash[EPISODE].problem
        if problem is not None:
            raise pytest.UsageError(problem)

    def _draft(self, item: pytest.Item, state: EpisodeItem) -> Episode:
        file, line = self._places.of_item(item)
        identity: Any = {"iteration": state.iteration, "attempt": state.attempt}
        try:
            return draft_from_marker(item, nodeid=state.nodeid, file=file, line=line, **identity)
        except InputError as error:
            state.problem = str(error)
            return draft_episode(
                state.nodeid, nodeid=state.nodeid, file=file, line=line, **identity
            )

    def recorder(self, item: pytest.Item, clock: Callable[[], float]) -> EpisodeRecorder:
        """Return the recorder of the item's episode, which starts now."""
        if EPISODE not in item.stash:
            # Asked for with `request.getfixturevalue` alone: unknown until now.
            item.stash[EPISODE] = EpisodeItem(self._redactor.text(item.nodeid))
            self.begin(item)
        state = item.stash[EPISODE]
        if state.draft is None:
            raise pytest.UsageError(f"{item.nodeid}: the episode was asked for before its setup")
        state.recorder = EpisodeRecorder.from_draft(
            state.draft, clock=clock, locate=self._places.of_caller
        )
        return state.recorder

    def judge(self, item: pytest.Item) -> None:
        """Fail a test that returned, over failed checks and hard budgets not kept."""
        state = item.stash[EPISODE]
        state.ended = _end(state, Ending("passed"))
        if lines := complaints(state.ended):
            raise EpisodeFailed(_sentence(state.ended, lines), pytrace=False)

    def interrupt(self, item: pytest.Item, interruption: BaseException) -> None:
        """Write down what there is of an episode that Ctrl-C or `pytest.exit` ended."""
        reason = f"interrupted: {type(interruption).__name__}"
        self._write("ended", _end(item.stash[EPISODE], Ending("error", reason)))

    def record(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> None:
        """Write down how a phase ended, where it ended the episode, and mark the report."""
        state = item.stash[EPISODE]
        ended = self._after(state, call, report)
        if ended is not None:
            state.ended = ended
            self._write("ended", ended)
        current = state.ended or (state.draft and _lost(state.draft))
        if current is not None:
            self._mark(item, report, redacted(current, self._redactor))

    def _after(
        self, state: EpisodeItem, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> Episode | None:
        """Return the episode as the phase leaves it; None where the phase changes nothing."""
        ending = ending_of(call, report, self._places)
        if report.when == "teardown":
            return _after_teardown(state, ending)
        if report.when == "setup" and report.passed:
            return None
        if state.ended is None:
            return _end(state, ending)
        return _after_judgement(state.ended, call, ending)

    def _mark(self, item: pytest.Item, report: pytest.TestReport, episode: Episode) -> None:
        """Put the episode's figures where JUnit and the terminal summary find them."""
        others = [entry for entry in item.user_properties if not entry[0].startswith(PREFIX)]
        item.user_properties[:] = [*others, *junit_properties(episode)]
        report.user_properties = list(item.user_properties)
        setattr(report, ATTRIBUTE, summary_facts(episode))

    def _write(self, event: Literal["started", "ended"], episode: Episode) -> None:
        if self._journal is not None:
            line = JournalLine(event=event, episode=redacted(episode, self._redactor))
            self._journal.write(line)


def _sentence(episode: Episode, lines: Sequence[str]) -> str:
    """Return the failure's message; the only complaint stands on the first line."""
    title = f"episode {episode.scenario_id!r}"
    if len(lines) == 1:
        return f"{title}: {lines[0]}"
    return "\n  ".join([f"{title}: {len(lines)} problems", *lines])


def _lost(draft: Episode) -> Episode:
    return _with(draft, Ending("error", LOST))


def _end(state: EpisodeItem, ending: Ending) -> Episode:
    """Freeze the episode as it is; without a recorder its setup never got so far."""
    if state.recorder is not None:
        return state.recorder.finish(
            ending.outcome, ending.reason, failed_assertion=ending.assertion
        )
    assert state.draft is not None, "an episode begins before it ends"  # noqa: S101 - see begin
    return _with(state.draft, ending)


def _with(episode: Episode, ending: Ending) -> Episode:
    return episode.model_copy(update={"outcome": ending.outcome, "reason": ending.reason})


def _after_judgement(episode: Episode, call: pytest.CallInfo[None], ending: Ending) -> Episode:
    """Keep the judgement, unless an xfail turned a failure or a success round."""
    complained = call.excinfo is not None and isinstance(call.excinfo.value, EpisodeFailed)
    if ending.outcome == "passed" or (complained and ending.outcome == "failed"):
        return episode
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
