"""One run of one runner: a process tree that is measured and whose work is checked."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .capacity import ROOT, ModelProcess

TREE = Path(__file__).with_name("tree.py")
TIMEOUT_S = 300
"""For a run, and `EPISODE_TIMEOUT_S` more for each of its episodes."""
EPISODE_TIMEOUT_S = 0.1
CALLS = 2
"""Model calls of an episode."""
MAX_ERROR = 160
"""Characters of an error that the page shows."""

QUIET = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_NO_INSPECT_PROMPT": "1",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_SHARING": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}
"""What the documents of each name to keep it from the network, and pytest to what is named."""


@dataclass(frozen=True)
class Figure:
    """What a run took; of several runs the medians and the highest peak."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    processes: int
    calls_at_once: int = 0
    """The most calls that were open at the model server."""


@dataclass(frozen=True)
class Failure:
    """A run that did not do its work, and why."""

    reason: str


Result = Figure | Failure


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a run: nothing of the user's but the path."""
    own = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PROMPTFOO_CONFIG_DIR": str(folder / "promptfoo"),
        "BENCH_ROOT": str(ROOT),
        "LANG": "C.UTF-8",
    }
    return own | QUIET | more


def run(
    command: Sequence[str], folder: Path, env: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> tuple[Result, str]:
    """Run a command to its end; return what it took, and what it printed."""
    out, log = folder / "taken.json", folder / "output.log"
    with log.open("wb") as file:
        subprocess.run(
            [sys.executable, "-I", str(TREE), str(out), str(timeout_s), *command],
            cwd=folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            check=True,
        )
    taken, text = json.loads(out.read_text()), log.read_text(errors="replace")
    if taken["timed_out"]:
        return Failure(f"not done after {timeout_s:.0f} s"), text
    if taken["status"]:
        return Failure(f"exit code {taken['status']}: {first_error(text)}"), text
    figure = Figure(taken["seconds"], taken["cpu_seconds"], taken["peak_mb"], taken["processes"])
    return figure, text


def run_episodes(
    command: Sequence[str], server: ModelProcess, folder: Path, episodes: int, at_once: int
) -> Result:
    """Run episodes and hold against the server's count whether all of them were."""
    env = environment(
        folder,
        BENCH_URL=server.url,
        BENCH_EPISODES=str(episodes),
        BENCH_AT_ONCE=str(at_once),
    )
    server.taken_load()
    result, _ = run(command, folder, env, timeout_for(episodes))
    load = server.taken_load()
    if isinstance(result, Failure):
        return result
    if load["calls"] != episodes * CALLS:
        return Failure(f"made {load['calls']} model calls, not {episodes * CALLS}")
    return Figure(
        result.seconds, result.cpu_seconds, result.peak_mb, result.processes, load["peak"]
    )


def timeout_for(episodes: int) -> float:
    """Return the seconds after which a run of so many episodes is given up."""
    return TIMEOUT_S + episodes * EPISODE_TIMEOUT_S


def first_error(text: str) -> str:
    """Return the line of a log that says best what went wrong."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    marks = (lambda x: x.startswith("E  "), lambda x: re.match(r"[\w.]*(Error|ERROR)\b", x))
    for mark in marks:
        if found := [line for line in lines if mark(line)]:
            return found[0].removeprefix("E").strip()[:MAX_ERROR]
    return (lines[-1] if lines else "it printed nothing")[:MAX_ERROR]


def median(results: Sequence[Result]) -> Result:
    """Return the median of some runs; one that failed is what they all come to."""
    figures: list[Figure] = []
    for result in results:
        if isinstance(result, Failure):
            return result
        figures.append(result)
    return Figure(
        statistics.median(figure.seconds for figure in figures),
        statistics.median(figure.cpu_seconds for figure in figures),
        max(figure.peak_mb for figure in figures),
        max(figure.processes for figure in figures),
        max(figure.calls_at_once for figure in figures),
    )


def in_new_folder(
    command: Sequence[str], server: ModelProcess, episodes: int, at_once: int
) -> Result:
    """Run episodes in a folder of their own, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        return run_episodes(command, server, Path(folder), episodes, at_once)
