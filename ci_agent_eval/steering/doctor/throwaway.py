"""A throwaway home and project in which an agent runs with copies of the settings."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ci_agent_eval.steering.doctor.agent_launch import AgentLaunch, LaunchPlace
from ci_agent_eval.steering.doctor.scripted_model import ScriptedModel
from ci_agent_eval.steering.doctor.settings_copy import copy_settings
from ci_agent_eval.steering.hook.agent_settings import AgentSettings
from ci_agent_eval.steering.locations import CONFIG_NAME
from ci_agent_eval.steering.settings_loader import MESSAGE_VARIABLE

TIME_LIMIT_S = 300.0
"""Seconds until an agent that does not end is killed."""

MESSAGE = "agent-eval steer doctor holds this full run."
"""The steering message of a launch, which shows in the call's result that it was held."""

_TERM_S = 5.0
"""Seconds between the signals that end an agent."""

_DEAD_PROXY = "http://127.0.0.1:9"
"""Nothing listens on the discard port, so requests to other hosts fail."""


@dataclass(frozen=True, slots=True)
class AgentRun:
    """A launch of an agent: its exit code, its output, and the results of its calls."""

    exit_code: int | None
    """None if it did not end in time."""
    output: str
    results: tuple[str, ...]

    @property
    def is_held(self) -> bool:
        """Whether the first command was held back with the message."""
        return bool(self.results) and MESSAGE in self.results[0]


@contextmanager
def make_place(
    launch: AgentLaunch, settings: AgentSettings, root: Path, user_folder: Path
) -> Iterator[LaunchPlace]:
    """Yield a new home and project with copies of the settings of `root` and `user_folder`."""
    with TemporaryDirectory(prefix="agent-eval-doctor-", ignore_cleanup_errors=True) as name:
        top = Path(name).resolve()
        place = LaunchPlace("", top / "home", top / "project")
        (place.project / "tests").mkdir(parents=True)
        (place.project / "tests/test_one.py").write_text("def test_one():\n    pass\n")
        folder = place.home / settings.user_folder
        moved = {str(root): str(place.project), str(user_folder): str(folder)}
        if (root / CONFIG_NAME).is_file():
            shutil.copyfile(root / CONFIG_NAME, place.project / CONFIG_NAME)
        files = {root / file: place.project / file for file in launch.project_files}
        files |= {user_folder / file: folder / file for file in launch.user_files}
        problems = [copy_settings(*each, settings, moved) for each in files.items()]
        if launch.user_settings:
            _add_members(folder / launch.user_files[0], launch.user_settings)
        place.home.mkdir(exist_ok=True)
        yield replace(place, problems=tuple(filter(None, problems)))


def run_agent(
    program: Path, launch: AgentLaunch, place: LaunchPlace, path: str, *, trusted: bool
) -> AgentRun:
    """Run the agent, whose model asks for one full run. `path` is the PATH of the run."""
    with ScriptedModel([["pytest -q"]]) as model:
        place = replace(place, url=model.url)
        command = build_command(program, launch, place, trusted=trusted)
        environ = build_agent_environ(launch, place, path, trusted=trusted)
        exit_code, output = run_limited(command, place.project, environ)
        return AgentRun(exit_code, output, tuple(model.tool_results))


def build_command(
    program: Path, launch: AgentLaunch, place: LaunchPlace, *, trusted: bool
) -> Sequence[str]:
    """Return the command line of a launch."""
    trust = launch.build_trust(place) if trusted else ()
    return [str(program), *launch.build_arguments(place), *trust]


def build_agent_environ(
    launch: AgentLaunch, place: LaunchPlace, path: str, *, trusted: bool
) -> Mapping[str, str]:
    """Return the environment of a launch."""
    trust = launch.trust_environ if trusted else {}
    return {**build_environ(place, path), **launch.build_environ(place), **trust}


def build_environ(place: LaunchPlace, path: str) -> dict[str, str]:
    """Return an environment that leads to the throwaway home, and to no other host."""
    home = place.home
    return {
        "PATH": path,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "HTTP_PROXY": _DEAD_PROXY,
        "HTTPS_PROXY": _DEAD_PROXY,
        "NO_PROXY": "127.0.0.1,localhost",
        MESSAGE_VARIABLE: MESSAGE,
    }


def run_limited(
    command: Sequence[str],
    folder: Path,
    environ: Mapping[str, str],
    stdin: str = "",
    time_limit_s: float = TIME_LIMIT_S,
) -> tuple[int | None, str]:
    """Run a command; return its exit code, None if it was killed, and its output.

    Remaining processes of its group are killed.
    """
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return 127, str(error)
    with process:
        try:
            is_ended, output = _read_output(process, stdin.encode(), time_limit_s)
        finally:
            _signal_group(process, signal.SIGKILL)
    return process.returncode if is_ended else None, output.decode("utf-8", "replace")


def _read_output(
    process: subprocess.Popen[bytes], stdin: bytes, time_limit_s: float
) -> tuple[bool, bytes]:
    """Return whether the process ended in time, and its output; else end its group."""
    try:
        return True, process.communicate(stdin, timeout=time_limit_s)[0]
    except subprocess.TimeoutExpired as error:
        output = error.output
    for number in (signal.SIGTERM, signal.SIGKILL):
        _signal_group(process, number)
        try:
            return False, process.communicate(timeout=_TERM_S)[0]
        except subprocess.TimeoutExpired as error:
            output = error.output  # Processes that left the group may hold the pipe open.
    return False, output or b""


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _add_members(path: Path, members: Mapping[str, Any]) -> None:
    document = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for key, value in members.items():
        former = document.get(key)
        document[key] = {**former, **value} if isinstance(former, dict) else value
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), "utf-8")
