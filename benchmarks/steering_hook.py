"""`make bench`: what a coding agent waits for its hook; writes STEERING_HOOK.md anew.

Whole processes, start-up included, with the file of sessions on disk. The target of the hook is
under 150 ms, and for a command that cannot run tests under twice the time of `python -c pass`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median, quantiles
from time import perf_counter

from measure import ROOT, machine

RUNS = 40
TARGET_MS = 150
PYTHON = [sys.executable, "-c", "pass"]
# As installed.
HOOK = [str(Path(sys.executable).with_name("agent-eval")), "steer", "hook"]
CONFIG = """\
session:
  pytest_full_suite_steering_enabled: true
  dangerous_commands_enabled: true
  steering_rules: [{name: no-curl, pattern: '\\bcurl\\b', message: Use the client.}]
"""


@dataclass(frozen=True)
class Case:
    """An event, and what the hook is told."""

    remark: str
    tool: str
    command: str
    options: tuple[str, ...]
    factor: float | None = None
    """The most that it may take, in times of `python -c pass`."""

    def event(self, run: int) -> bytes:
        """Return the event; each has a session of its own."""
        event = {
            "hook_event_name": "PreToolUse",
            "session_id": f"session {run}",
            "tool_name": self.tool,
            "tool_input": {"command": self.command},
        }
        return json.dumps(event).encode()


ENABLED = ("--enable-pytest-full-suite-steering",)
CASES = (
    Case("a tool that runs no commands", "Read", "", ENABLED, 2),
    Case("a command without a runner", "Bash", "git status && ls -l src", ENABLED, 2),
    Case("a targeted run", "Bash", "cd app && pytest -q tests/test_a.py | tail -20", ENABLED),
    Case("a full run, held back", "Bash", "cd app && timeout 600 pytest -q | tail -20", ENABLED),
    Case(
        "a full run, with settings in YAML", "Bash", "cd app && pytest -q", ("--config", "s.yaml")
    ),
)


def timed(command: list[str], folder: Path, event: bytes = b"") -> tuple[float, float, bool]:
    """Return the milliseconds of a process and of the processor, and whether it said something."""
    before, started = _processor(), perf_counter()
    done = subprocess.run(
        command,
        input=event,
        cwd=folder,
        # As installed: pip compiles what it installs.
        env={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
        capture_output=True,
        check=True,
    )
    elapsed, spent = perf_counter() - started, _processor() - before
    assert not done.stderr, done.stderr
    return elapsed * 1000, spent * 1000, bool(done.stdout)


def _processor() -> float:
    """Return the seconds of processor time of all processes that have ended."""
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def rows() -> Iterator[str]:
    """Render a row for each case."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "s.yaml").write_text(CONFIG)
        for number, case in enumerate(CASES):
            command = [*HOOK, *case.options, "--store", str(folder / "sessions")]
            timed(command, folder, case.event(-1 - number))
            # In turns, as the machine's speed changes.
            pairs = [
                (timed(PYTHON, folder), timed(command, folder, case.event(number * RUNS + run)))
                for run in range(RUNS)
            ]
            assert all(said is case.remark.startswith("a full") for _, (_, _, said) in pairs), case
            yield row(case, pairs)


def row(
    case: Case, pairs: list[tuple[tuple[float, float, bool], tuple[float, float, bool]]]
) -> str:
    """Render the row of a case; each pair has a start of Python and one of the hook."""
    walls = [wall for _, (wall, _, _) in pairs]
    # A busy machine makes a process wait, and does not make it slow.
    start, spent = (median(times[at][1] for times in pairs) for at in (0, 1))
    assert spent < TARGET_MS, f"{case.remark}: {spent:.0f} ms"
    assert case.factor is None or spent < case.factor * start, f"{case.remark}: {spent / start:.2f}"
    return (
        f"| {case.remark} | {median(walls):.0f} ms | {quantiles(walls, n=20)[-1]:.0f} ms "
        f"| {spent:.0f} ms | {spent / start:.1f} |"
    )


def page() -> str:
    """Render the page that records the figures."""
    return "\n".join(
        [
            "# What a coding agent waits for its hook",
            "",
            f"Measured by `make bench` on: {machine()}.",
            "",
            f"`agent-eval steer hook`, {RUNS} processes each, start-up of Python included, with",
            f"the file of sessions on disk. The target is under {TARGET_MS} ms, and for the first",
            "two under twice the processor time of `python -c pass`, run in turns with them.",
            "",
            "| event | median | 95th percentile | processor time | times `python -c pass` |",
            "|---|---:|---:|---:|---:|",
            *rows(),
            "",
        ]
    )


def main() -> None:
    """Measure, print and record."""
    text = page()
    print(text)
    (ROOT / "benchmarks/STEERING_HOOK.md").write_text(text)


if __name__ == "__main__":
    main()
