"""`--episode-resume`: keep the finished episodes of an earlier attempt, and run the rest.

A kept episode is reported in the order of the run like one that ran, so that JUnit, counts,
adaptive iterations, xdist and the exit status need no separate rule. Kept tests come first: a
run that is killed again has then written them again.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval import __version__
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import SESSION_NAME, Digests, KeptEpisodes, Session
from ci_agent_eval.contract.resume import FinishedTest, ResumeRequest
from ci_agent_eval.dependencies.environment import hash_variable
from ci_agent_eval.dependencies.recording.accesses import Access
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.adaptive_iterations import NAME as ADAPTIVE
from ci_agent_eval.pytest_plugin.adaptive_iterations import AdaptiveIterations, end_unused_fixtures
from ci_agent_eval.pytest_plugin.budgets import suite_budgets
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.iterations import get_iteration
from ci_agent_eval.pytest_plugin.collection.removed_episodes import build_collected_episode
from ci_agent_eval.pytest_plugin.collection.shared_conversations import find_session_name
from ci_agent_eval.pytest_plugin.concurrency.eligibility import OBSTACLE
from ci_agent_eval.recording import list_failure_reasons
from ci_agent_eval.recording.spending import sum_spending
from ci_agent_eval.storage.earlier_attempt import (
    EarlierAttempt,
    KeptTests,
    TestKey,
    list_kept_scenarios,
    note_finished,
)
from ci_agent_eval.storage.run_folder import ReportFolder
from ci_agent_eval.storage.start_conditions import (
    build_conditions,
    find_difference,
    hash_file_if_readable,
)

if TYPE_CHECKING:
    from ci_agent_eval.dependencies.git import GitRepository
    from ci_agent_eval.dependencies.recording.recorder import DependencyRecorder

_DECLARED = ("mode", "gate", "evidence", "min_pass_rate", "min_passes", "allowed_stops")
"""Fields of an episode that its test declares."""
_FILES = frozenset({"file", "outside_file", "absent"})
"""Kinds of accesses to a path at which a file is or could be."""
_ERRORS = (OSError, ValueError, subprocess.SubprocessError)
"""Errors of files, of names that are no text, and of git: then nothing can be kept later."""
_XDIST = "PYTEST_XDIST"
"""Beginning of variables whose values xdist chooses."""


class ResumableRun:
    """A plugin object that notes finished tests, and keeps those of an earlier attempt."""

    def __init__(
        self,
        file: str,
        repository: GitRepository,
        environ: Mapping[str, str],
        recorder: DependencyRecorder,
    ) -> None:
        self._request = ResumeRequest.model_validate_json(Path(file).read_bytes())
        self._top = repository.top
        self._repository = repository
        self._environ = environ
        self._recorder = recorder
        self._tracked: frozenset[str] | None = None
        self._kept: KeptTests | None = None
        self._keys: frozenset[TestKey] = frozenset()
        self._notes = True
        """Whether finished tests are noted."""
        self._scenarios: dict[TestKey, str] = {}
        """Scenario of each kept test that was reported."""

    def register(self, config: pytest.Config) -> None:
        """Register the object, and the one that notes finished tests."""
        config.pluginmanager.register(self, options.RESUMABLE)
        config.pluginmanager.register(_FinishedTests(self))

    def begin(
        self, config: pytest.Config, folder: ReportFolder, session: Session, now: int
    ) -> Session:
        """Take over what an earlier attempt has finished; return the session with the conditions.

        Called once, before the report folder is cleared. Raises pytest.UsageError if nothing may
        be kept and the request is strict.
        """
        with suppress(*_ERRORS):
            conditions = build_conditions(
                self._repository,
                self._environ,
                program=__version__,
                command=self._request.command,
                folder=config.invocation_params.dir,
                configuration=config.inipath,
                recorded_at=now,
            )
            session = session.model_copy(update={"conditions": conditions})
        if self._request.folder is None:
            return session
        try:
            return self._take_over(Path(self._request.folder), folder, session)
        except InputError as error:
            return _refuse(self._request, session, str(error))

    def _take_over(self, source: Path, folder: ReportFolder, session: Session) -> Session:
        earlier = EarlierAttempt.load(source)
        if earlier is None:
            return session
        if session.conditions is None:
            raise InputError("git has no commit here, or a new or changed file cannot be read")
        if earlier.session.suite != session.suite:
            raise InputError("it is of another suite")
        if earlier.session.run != session.run:
            raise InputError("it is of another workflow run")
        difference = find_difference(
            earlier.conditions, session.conditions, self._environ, self._top
        )
        if difference is not None:
            raise InputError(difference)
        earlier.write_kept(folder.path)
        found = earlier.conditions
        known = {"variables": found.variables, "files": found.files}
        return session.model_copy(
            update={
                "conditions": session.conditions.model_copy(update=known),
                "kept": KeptEpisodes(
                    run=earlier.session.run,
                    attempt=earlier.session.attempt,
                    recorded_at=found.recorded_at,
                ),
            }
        )

    def end(self, folder: ReportFolder, session: Session, *, is_whole: bool) -> Session:
        """Return the session with the number of kept episodes; a whole run needs no other file."""
        if is_whole:
            folder.remove_earlier()
        if session.kept is None:
            return session
        kept = session.kept.model_copy(update={"episodes": len(list_kept_scenarios(folder.path))})
        return session.model_copy(update={"kept": kept})

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Move the tests whose episodes are kept to the beginning, after all other hooks."""
        result = yield
        directory = options.get_report_dir(config)
        if directory is not None and self._request.folder is not None:
            self._kept = KeptTests.find(directory)
            self._keys = frozenset(_list_kept(items, self._kept))
            items.sort(key=lambda item: _get_key(item) not in self._keys)
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Let nothing start a kept test ahead of its turn, nor decide without its outcome."""
        adaptive: AdaptiveIterations | None = session.config.pluginmanager.get_plugin(ADAPTIVE)
        for item in session.items:
            if _get_key(item) in self._keys:
                item.stash[OBSTACLE] = "its episode is kept"
                if adaptive is not None:
                    adaptive.begin(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Report the kept episode of a test in place of its run."""
        key = _get_key(item)
        if self._kept is None or key not in self._keys or detection.EPISODE not in item.stash:
            return None
        attempts = self._kept.read(key)
        if not _has_declared(item, attempts[-1]):
            return None
        self._report(item, attempts)
        self._scenarios[key] = attempts[-1].scenario_id
        end_unused_fixtures(item, nextitem)
        return True

    def _report(self, item: pytest.Item, attempts: Sequence[Episode]) -> None:
        session: Any = item.config.pluginmanager.get_plugin(options.EPISODES)
        last, hook = attempts[-1], item.ihook
        _spend(item, attempts)
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        problems = () if last.mode == "evaluation" else list_failure_reasons(last)
        failed = bool(problems) or (last.mode != "evaluation" and last.outcome == "failed")
        text = "\n".join(problems) or last.reason or "it failed"
        for when in ("setup", "call", "teardown"):
            is_failure = when == "call" and failed
            report = pytest.TestReport(
                item.nodeid,
                item.location,
                dict.fromkeys(item.keywords, 1),
                "failed" if is_failure else "passed",
                f"kept of an earlier attempt: {text}" if is_failure else None,
                when,
            )
            if when == "call":
                session.keep(item, report, attempts)
            report.user_properties = list(item.user_properties)  # JUnit takes the teardown's
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def note_finished(self, item: pytest.Item) -> None:
        """Note that a test has ended with its teardown, with new accesses of its process."""
        directory, state = options.get_report_dir(item.config), item.stash[detection.EPISODE]
        kept = self._scenarios.get(_get_key(item))
        if directory is None or not self._notes or (kept is None and not state.attempt):
            return  # it was passed over
        self._notes = False  # for good, if it fails: no later line would have these accesses
        with suppress(*_ERRORS):
            found = self._recorder.list_new_accesses()
            finished = FinishedTest(
                nodeid=state.nodeid,
                iteration=state.iteration,
                kept=kept,
                variables=self._hash_variables(found),
                files=self._hash_files(found),
            )
            note_finished(directory, options.get_worker_id(item.config), finished)
            self._notes = True

    def _hash_variables(self, found: Iterable[Access]) -> Digests:
        names = sorted(name for kind, name in found if kind == "variable")
        return {
            name: hash_variable(name, self._environ.get(name))
            for name in names
            if not name.startswith(_XDIST)
        }

    def _hash_files(self, found: Iterable[Access]) -> Digests:
        """Return the hashes of the files that git does not track."""
        if self._tracked is None:
            self._tracked = self._repository.list_tracked()
        paths = {path for kind, path in found if kind in _FILES} - self._tracked
        # A listed folder is not compared, neither in the repository nor behind a link.
        paths |= {path for kind, path in found if kind == "symlink" and not Path(path).is_dir()}
        return {path: hash_file_if_readable(self._top / path) for path in sorted(paths)}


def refuse_outside_git(file: str, session: Session) -> Session:
    """Return the session of a run outside of a git repository, which keeps nothing.

    Raises pytest.UsageError if there is an earlier attempt and the request is strict.
    """
    request = ResumeRequest.model_validate_json(Path(file).read_bytes())
    if request.folder is None or not Path(request.folder, SESSION_NAME).exists():
        return session
    return _refuse(request, session, "without a git repository no files can be compared")


def _refuse(request: ResumeRequest, session: Session, problem: str) -> Session:
    """Return the session with the reason why nothing is kept; raise it if the request is strict."""
    if request.strict:
        name = Path(request.folder or "").name
        raise pytest.UsageError(f"--resume: nothing of {name} is kept, because {problem}") from None
    return session.model_copy(update={"kept": KeptEpisodes(refusal=problem)})


class _FinishedTests:
    """A plugin object that notes each test after all other hooks about it."""

    def __init__(self, run: ResumableRun) -> None:
        self._run = run

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Note that the test has finished; an interrupted one raises."""
        result = yield
        if detection.EPISODE in item.stash:
            self._run.note_finished(item)
        return result


def _get_key(item: pytest.Item) -> TestKey:
    """Return the identity of a test; one whose node id holds a secret is not kept."""
    return item.nodeid, get_iteration(item).number


def _list_kept(items: Sequence[pytest.Item], kept: KeptTests) -> list[TestKey]:
    """Return the tests to keep: none that runs twice, and of a session all tests or none."""
    times = Counter(map(_get_key, items))
    found = {key for key, number in times.items() if number == 1 and key in kept}
    rest = [item for item in items if not (_get_key(item) in found and detection.is_episode(item))]
    sessions = set(map(find_session_name, rest)) - {None}
    kept_items = (item for item in items if find_session_name(item) not in sessions)
    return [key for key in map(_get_key, kept_items) if key in found]


def _has_declared(item: pytest.Item, episode: Episode) -> bool:
    """Return whether an episode says of itself what its test declares."""
    declared, limits = build_collected_episode(item), get_iteration(item).limits
    return (
        all(getattr(declared, name) == getattr(episode, name) for name in _DECLARED)
        and (episode.iterations, episode.minimum_iterations) == (limits.total, limits.minimum)
        and (detection.returns_episode(item) or declared.scenario_id == episode.scenario_id)
    )


def _spend(item: pytest.Item, attempts: Iterable[Episode]) -> None:
    """Count what kept episodes have cost in the suite's budgets."""
    budgets = suite_budgets.get_suite_budgets(item.config)
    if budgets is None:
        return
    for episode in attempts:
        turns = episode.trajectory.turns if episode.trajectory is not None else ()
        spent = sum_spending(turns, episode.judge, episode.simulated_user)
        name = f"{item.nodeid}\n{episode.iteration}\n{episode.attempt}"
        budgets.spend(name, spent.cost_usd, spent.tokens)
