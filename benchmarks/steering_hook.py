"""`make bench`: what a coding agent waits for its hook; writes STEERING_HOOK.md anew.

Whole processes, start-up included, with the file of sessions on disk. The target of the hook is
under 150 ms.
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
HOOK = [sys.executable, "-m", "ci_agent_eval", "steer", "hook"]
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
    Case("a tool that runs no commands", "Read", "", ENABLED),
    Case("a command without pytest", "Bash", "git status && ls -l src", ENABLED),
    Case("a targeted run", "Bash", "cd app && pytest -q tests/test_a.py | tail -20", ENABLED),
    Case("a full run, held back", "Bash", "cd app && timeout 600 pytest -q | tail -20", ENABLED),
    Case("the same, configured in YAML", "Bash", "cd app && pytest -q", ("--config", "s.yaml")),
)


def timed(case: Case, folder: Path, run: int) -> tuple[float, float]:
    """Return the milliseconds of one process: from its start to its end, and of the processor."""
    store = ("--store", str(folder / "sessions"))
    before, started = _processor(), perf_counter()
    done = subprocess.run(
        [*HOOK, *case.options, *store],
        input=case.event(run),
        cwd=folder,
        # As installed: pip compiles what it installs.
        env={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
        capture_output=True,
        check=True,
    )
    elapsed, spent = perf_counter() - started, _processor() - before
    assert not done.stderr, done.stderr
    assert bool(done.stdout) is case.remark.startswith(("a full", "the same")), case
    return elapsed * 1000, spent * 1000


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
            timed(case, folder, -1 - number)
            times = [timed(case, folder, number * RUNS + run) for run in range(RUNS)]
            walls, spent = [wall for wall, _ in times], median(each for _, each in times)
            middle, most = median(walls), quantiles(walls, n=20)[-1]
            # A busy machine makes a process wait, and does not make it slow.
            assert spent < TARGET_MS, f"{case.remark}: {spent:.0f} ms"
            yield f"| {case.remark} | {middle:.0f} ms | {most:.0f} ms | {spent:.0f} ms |"


def page() -> str:
    """Render the page that records the figures."""
    return "\n".join(
        [
            "# What a coding agent waits for its hook",
            "",
            f"Measured by `make bench` on: {machine()}.",
            "",
            f"`agent-eval steer hook`, {RUNS} processes each, start-up of Python included, with",
            f"the file of sessions on disk. The target is under {TARGET_MS} ms.",
            "",
            "| event | median | 95th percentile | processor time |",
            "|---|---:|---:|---:|",
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
