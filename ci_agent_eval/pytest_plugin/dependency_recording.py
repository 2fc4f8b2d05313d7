"""Recording what each episode depends on, into `dependencies.json` of the report folder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.dependencies.document import pack_dependencies
from ci_agent_eval.dependencies.environment import (
    get_platform,
    get_python_version,
    hash_distributions,
    hash_variable,
    is_always_read,
)
from ci_agent_eval.dependencies.git import GitRepository, find_repository, has_code
from ci_agent_eval.dependencies.model import RunDependencies
from ci_agent_eval.dependencies.recording.accesses import Accesses
from ci_agent_eval.dependencies.recording.part import ProcessPart, dump_part, parse_part
from ci_agent_eval.dependencies.recording.places import Places
from ci_agent_eval.dependencies.recording.recorder import DependencyRecorder
from ci_agent_eval.dependencies.recording.resolution import FileStates, resolve_dependencies
from ci_agent_eval.model_traffic import attribution
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.recording.active_episode import RunningEpisode, get_attributed_episode
from ci_agent_eval.storage.run_folder import ReportFolder

_REQUESTED = pytest.StashKey[tuple[str, ...]]()

_fixture: ContextVar[Accesses | None] = ContextVar("ci_agent_eval_fixture", default=None)
"""The shared fixture whose setup runs in this context."""

_WORKER = "PYTEST_XDIST_WORKER"
"""Variable of xdist's workers, which have no `workerinput` yet."""


@dataclass(frozen=True, slots=True)
class _Start:
    """The conditions at the start of a process."""

    repository: GitRepository
    environ: Mapping[str, str]
    seconds: float
    commit: str | None
    is_clean: bool


class DependencyRecording:
    """A plugin object that watches a process, and writes the run's dependencies at its end."""

    def __init__(self, start: _Start, recorder: DependencyRecorder) -> None:
        self._start = start
        self._recorder = recorder

    @classmethod
    def start(cls, config: pytest.Config) -> None:
        """Start to record, before any module of the project is imported; not without git."""
        environ = dict(os.environ)
        repository = find_repository(config.rootpath, environ)
        report_dir = config.known_args_namespace.episode_report_dir
        if repository is None or not report_dir:
            return
        is_clean = _WORKER not in environ and _is_clean(repository)
        ignored = (os.path.realpath(report_dir), os.path.realpath(sys.prefix), sys.prefix)
        folders, now = tuple(f"{one}{os.sep}" for one in ignored), time.time()
        recorder = DependencyRecorder(
            Places(str(repository.top), folders, now), _find_accesses, environ
        )
        start = _Start(repository, environ, now, repository.find_commit(), is_clean)
        config.pluginmanager.register(cls(start, recorder), options.RECORDING)
        config.add_cleanup(recorder.stop)
        recorder.start()

    def begin_episode(self) -> Accesses:
        """Return an empty record for an episode that begins."""
        return Accesses()

    def end_episode(
        self, item: pytest.Item, running: RunningEpisode, episode: Episode, patterns: Iterable[str]
    ) -> None:
        """Add an ended episode's accesses to its scenario."""
        found = running.accesses
        if found is None:
            return
        if _has_running_task(running):
            self._recorder.share(found)
        self._recorder.end_episode(
            found,
            episode.scenario_id,
            test_file=_find_test_file(item.path, self._start.repository.top),
            fixtures=(*getattr(item, "fixturenames", ()), *item.stash.get(_REQUESTED, ())),
            patterns=patterns,
            tools=episode.conditions.tools or (),
            requests=_list_request_hashes(running),
        )

    def write_part(self, folder: ReportFolder, worker: str) -> None:
        """Write what this process has seen; without a part, the run's record is incomplete."""
        with suppress(OSError):
            folder.write_part(worker, dump_part(self._recorder.build_part()))

    def write_dependencies(self, folder: ReportFolder) -> None:
        """Merge the parts of all processes and write the file."""
        parts, is_complete = _read_parts(folder)
        start, top = self._start, self._start.repository.top
        tracked = start.repository.list_tracked()
        states = FileStates(
            lambda path: _read_version(top / path),
            tracked.__contains__,
            lambda path: _is_new(top / path, start.seconds),
        )
        found = resolve_dependencies(parts, states, frozenset(_list_known_hosts(start.environ)))
        names = {
            name for one in (found.shared, *found.scenarios.values()) for name in one.variables
        }
        always = {name for name in start.environ if is_always_read(name)}
        run = RunDependencies(
            recorded_at=int(start.seconds),
            python=get_python_version(),
            platform=get_platform(),
            commit=start.commit,
            is_clean=start.is_clean,
            complete=is_complete and all(part.complete for part in parts),
            unit="function" if all(part.unit == "function" for part in parts) else "module",
            distributions=hash_distributions(),
            hashes=found.hashes,
            imports=found.imports,
            variables={
                name: hash_variable(name, start.environ.get(name))
                for name in sorted(names | always)
            },
            tools=dict.fromkeys(
                (tool for one in found.scenarios.values() for tool in one.tools), ""
            ),
            shared=found.shared.with_variables(always),
            scenarios=found.scenarios,
            requests=found.requests,
        )
        folder.write_dependencies(pack_dependencies(run))

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        """Attribute the setup of a shared fixture to all tests that use it."""
        if fixturedef.scope == "function":
            return (yield)
        token = _fixture.set(self._recorder.get_fixture(fixturedef.argname))
        try:
            return (yield)
        finally:
            _fixture.reset(token)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Keep the fixtures that a test requested while it ran; pytest forgets them."""
        item.stash[_REQUESTED] = tuple(
            getattr(getattr(item, "_request", None), "_fixture_defs", ())
        )

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Write this process's part after the last fixture is torn down."""
        yield
        directory = options.get_report_dir(session.config)
        if directory is not None:
            self.write_part(ReportFolder(directory), options.get_worker_id(session.config))


def _find_accesses() -> Accesses | None:
    if (fixture := _fixture.get()) is not None:
        return fixture
    running = get_attributed_episode()
    return None if running is None else running.accesses


def _is_clean(repository: GitRepository) -> bool:
    with suppress(OSError, subprocess.SubprocessError):
        return not repository.list_modified() and not has_code(repository.list_new())
    return False


def _has_running_task(running: RunningEpisode) -> bool:
    """Return whether a task of the running loop began in the episode, and may work for others."""
    asyncio = sys.modules.get("asyncio")
    with suppress(RuntimeError):  # no loop runs
        return asyncio is not None and any(map(running.owns_task, asyncio.all_tasks()))
    return False


@cache  # each look at the disk is observed, and costs more than the rest of an episode's end
def _find_test_file(path: Path, top: Path) -> str | None:
    """Return a test's file relative to the repository; None outside of it."""
    file = Path(os.path.realpath(path))
    return file.relative_to(top).as_posix() if file.is_relative_to(top) else None


def _list_request_hashes(running: RunningEpisode) -> Iterator[str]:
    """Yield a hash of each request to a model that the episode's traffic shows."""
    recorder = running.recorder
    traffic = None if recorder is None else recorder.recorded_turns.traffic
    for call in () if traffic is None else traffic.recorder.calls:
        yield sha256(call.body).hexdigest()


def _read_parts(folder: ReportFolder) -> tuple[list[ProcessPart], bool]:
    """Return the parts of all processes, and whether each process that ran tests left one."""
    parts, is_complete = [], True
    for content in folder.read_parts():
        try:
            parts.append(parse_part(content or b""))
        except (ValueError, KeyError, TypeError):
            is_complete = False
    return parts, is_complete


def _read_version(path: Path) -> bytes | None:
    """Return a file's bytes, or the target of a symbolic link; None if it is neither."""
    try:
        return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    except OSError:
        return None


def _is_new(path: Path, started: float) -> bool:
    """Return whether the run made or changed a file."""
    try:
        return path.lstat().st_ctime >= started
    except OSError:
        return False


def _list_known_hosts(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the hosts of models, which the requests name, and of proxies."""
    yield from attribution.list_model_hosts()
    for name, value in environ.items():
        if name.lower().rpartition("_")[2] == "proxy":
            with suppress(ValueError):
                yield urlsplit(value).hostname or ""
