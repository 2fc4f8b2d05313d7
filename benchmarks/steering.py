"""Steering: decisions a second, hostile commands, and what a coding agent waits for its hook.

The commands are those of tests/unit/steering/policy/cases.txt; no answer is stored between rounds.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter, process_time
from typing import NamedTuple

from benchmarks.processes import ENVIRON, Row
from ci_agent_eval.steering.policy.detection import MAX_TEXT_CHARACTERS, detect_in_text
from tests.unit.steering.policy.test_cases import cases

ROUNDS, HOOK_RUNS = 9, 40
HOSTILE = (")", "A=(", "a|", '"$(', "X=$X$X;")
HOOK = [str(Path(sys.executable).with_name("agent-eval")), "steer", "hook"]
HOOK_OPTIONS = ["--enable-pytest-full-suite-steering"]
EVENTS = (
    ("a tool that runs no commands", "Read", "", "; target at most 2 ×"),
    ("a command without a runner", "Bash", "git status", "; target at most 2 ×"),
    ("a targeted run", "Bash", "cd app && pytest -q tests/test_a.py | tail -20", ""),
    ("a full run, held back", "Bash", "cd app && timeout 600 pytest -q", "; target under 150 ms"),
)


def measure() -> Iterator[Row]:
    """Measure the decisions, then the hook."""
    commands = [(case.command, case.shell) for case in cases()]
    rounds = []
    for _ in range(ROUNDS + 1):
        started = process_time()
        for text, shell in commands:
            detect_in_text(text, shell=shell)
        rounds.append((process_time() - started) / len(commands))
    each = statistics.median(rounds[1:])
    yield Row(
        "steering: a decision, mean of all cases",
        f"{each * 1e6:.0f} µs",
        f"{len(commands):,} commands; target under 200 µs",
    )
    worst = max(
        _time_longest("pytest;" + unit * (MAX_TEXT_CHARACTERS // len(unit) - 10))
        for unit in HOSTILE
    )
    yield Row("steering: 65 kB of hostile text", f"{worst * 1000:.0f} ms", "target under 200 ms")
    yield from _measure_hook()


def _time_longest(text: str) -> float:
    times = []
    for _ in range(3):
        started = perf_counter()
        detect_in_text(text)
        times.append(perf_counter() - started)
    return max(times)


class Spent(NamedTuple):
    """Milliseconds of a process."""

    wall: float
    processor: float


def _measure_hook() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for remark, tool, command, target in EVENTS:
            pairs = []
            for number in range(HOOK_RUNS):
                event = {
                    "hook_event_name": "PreToolUse",
                    "session_id": f"{remark} {number}",
                    "tool_name": tool,
                    "tool_input": {"command": command},
                }
                words = [*HOOK, *HOOK_OPTIONS, "--store", str(folder / "sessions")]
                python = _spend([sys.executable, "-c", "pass"], folder, b"")
                pairs.append((python, _spend(words, folder, json.dumps(event).encode())))
            wall = statistics.median(hook.wall for _, hook in pairs)
            times = statistics.median(hook.processor / python.processor for python, hook in pairs)
            ratio = f"{times:.1f} × the processor time of Python's start{target}"
            yield Row(f"steering hook: {remark}", f"{wall:.0f} ms", ratio)


def _spend(command: list[str], folder: Path, event: bytes) -> Spent:
    before, started = getrusage(RUSAGE_CHILDREN), perf_counter()
    subprocess.run(command, input=event, cwd=folder, env=ENVIRON, capture_output=True, check=True)
    after, elapsed = getrusage(RUSAGE_CHILDREN), perf_counter() - started
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(elapsed * 1000, used * 1000)
