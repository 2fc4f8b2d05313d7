"""Recording dependencies, and selecting by them among 2,000 scenarios; writes DEPENDENCIES.md.

Recording by function needs Python 3.12: run it with one, such as that of `make affected-mutations`.
"""

from __future__ import annotations

import gzip
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

from measure import ROOT, machine

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.dependencies import Dependencies
from ci_agent_eval.dependencies.document import pack_dependencies, unpack_dependencies
from ci_agent_eval.dependencies.model import Reached, RunDependencies
from ci_agent_eval.dependencies.selection.changes import FileChange, TreeChanges
from ci_agent_eval.dependencies.selection.select import SelectionRules, select_affected

ROUNDS = 5
EPISODES = 60
CROWD = 600
"""Episodes of the runs with 50 at once."""
RECORDING = "--episode-dependencies"
SCENARIOS = 2_000
OWN = 300
"""Dependencies of each scenario beside the shared ones."""

AGENT = """
import asyncio

def weigh(number):
    return number * 2

def prepare(text, calls):
    return [weigh(number) for number in range(calls)]

async def answer(text, calls, wait):
    for _ in range(4):
        prepare(text, calls)
        if wait:
            await asyncio.sleep(wait)
    return "fine"
"""
SUITE = """
import os, pytest
import agent

CALLS, WAIT = int(os.environ["CALLS"]), float(os.environ["WAIT"])

@pytest.mark.parametrize("number", range(int(os.environ["EPISODES"])))
async def test_agent(episode, number):
    with episode.turn("hello") as turn:
        turn.reply(await agent.answer("hello", CALLS, WAIT))
    assert episode.turns
"""


@dataclass(frozen=True)
class Spent:
    """The time of a run of pytest."""

    wall_s: float
    processor_s: float


def run(folder: Path, episodes: int, calls: int, wait: float, *options: str) -> Spent:
    """Run a number of episodes in a process of pytest."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_suite.py"]
    environ = {**os.environ, "EPISODES": str(episodes), "CALLS": str(calls), "WAIT": str(wait)}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    report = f"--episode-report-dir={folder / 'out'}"
    subprocess.run(
        [*command, report, *options], cwd=folder, env=environ, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(perf_counter() - started, used)


@dataclass(frozen=True)
class Cost:
    """What recording adds to episodes, start-up taken off; a value for each pair of runs."""

    walls: Sequence[float]
    """Ratios of wall time."""
    processors: Sequence[float]
    """Ratios of processor time."""
    added_ms: float
    """Median of the processor time that an episode takes in addition, in milliseconds."""


def compare(folder: Path, episodes: int, calls: int, wait: float, concurrency: int) -> Cost:
    """Compare runs with recording to runs without it, which alternate."""
    option = f"--episode-concurrency={concurrency}"
    pairs = []
    for number in range(ROUNDS):
        sides: dict[str, Spent] = {}
        # Which side is first alternates, as the machine's load may drift.
        for recording in ((), (RECORDING,))[:: 1 if number % 2 else -1]:
            one = run(folder, 1, calls, wait, option, *recording)
            many = run(folder, episodes, calls, wait, option, *recording)
            sides["".join(recording)] = Spent(
                many.wall_s - one.wall_s, many.processor_s - one.processor_s
            )
        pairs.append((sides[""], sides[RECORDING]))
    added = (after.processor_s - before.processor_s for before, after in pairs)
    return Cost(
        [after.wall_s / before.wall_s for before, after in pairs],
        [after.processor_s / before.processor_s for before, after in pairs],
        statistics.median(added) * 1000 / (episodes - 1),
    )


def format_spread(values: Sequence[float], digits: int) -> str:
    """Format the median with the least and the greatest value."""
    found = (statistics.median(values), min(values), max(values))
    middle, least, greatest = (f"{value:.{digits}f}" for value in found)
    return f"{middle} ({least} to {greatest})"


def build_run() -> RunDependencies:
    """Build the dependencies of 2,000 scenarios."""
    choose = random.Random(0)
    files = [f"desk/part{number // 40}/module{number}.py" for number in range(400)]
    functions = [(path, f"Class{n}.method{n}") for path in files for n in range(15)]
    return RunDependencies(
        recorded_at=1,
        python="CPython 3.13.0",
        platform="linux-x86_64",
        commit="c" * 40,
        is_clean=True,
        hashes={path: f"{number:064x}" for number, path in enumerate(files)},
        imports={path: frozenset(choose.sample(files, 4)) for path in files},
        shared=Reached(files=frozenset(files[:5])),
        scenarios={
            f"scenario {number}": Reached(functions=frozenset(choose.sample(functions, OWN)))
            for number in range(SCENARIOS)
        },
    )


def measure_selection() -> tuple[int, int, float]:
    """Return the file's size, its compressed size, and seconds to read it and select."""
    text = canonical_json(pack_dependencies(build_run()))
    code = b"X = 1\ndef f():\n    return 1\n"
    changes = TreeChanges({"desk/part3/module123.py": FileChange("x.py", code, code + b"Y = 2\n")})
    times = []
    for _ in range(ROUNDS):
        started = process_time()
        found = unpack_dependencies(Dependencies.model_validate_json(text))
        select_affected(found, dict.fromkeys(found.scenarios), changes, SelectionRules(1, 7))
        times.append(process_time() - started)
    return len(text), len(gzip.compress(text.encode())), statistics.median(times)


def main() -> None:
    """Measure and write the page."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "agent.py").write_text(AGENT)
        (folder / "test_suite.py").write_text(SUITE)
        (folder / ".gitignore").write_text("out\n__pycache__\n")
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        rows = {
            "50 ms model, one at a time": compare(folder, EPISODES, 10, 0.05, 1),
            "50 ms model, 50 at once": compare(folder, CROWD, 10, 0.05, 50),
            "no waiting, 200,000 function calls in each episode": compare(
                folder, EPISODES, 50_000, 0.0, 1
            ),
        }
    size, packed, seconds = measure_selection()
    ended = os.getloadavg()[0]
    lines = [
        f"| {what} | {format_spread(cost.walls, 3)} | {format_spread(cost.processors, 2)} "
        f"| {cost.added_ms:.2f} ms |"
        for what, cost in rows.items()
    ]
    page = f"""# Benchmark results: dependencies

Measured on: {machine()}; load average {load:.1f} at the start, {ended:.1f} at the end.
Recording runs {EPISODES} episodes of four model calls each ({CROWD} at a concurrency of 50), with
and without it in turn; ratios are medians of {ROUNDS} pairs (least to greatest), start-up taken
off. With other work on the machine wall times scatter, processor times less.

| recording | wall time, ratio | processor, ratio | processor, added to an episode |
|---|---:|---:|---:|
{chr(10).join(lines)}

Targets: at most 1.02 of the wall time with a 50 ms model, and 1.2 of the processor time on
call-heavy code. An episode of four calls of a 50 ms model waits 200 ms, 2 % of which are 4 ms:
one at a time, the added processor time says whether the target is met even where wall times
scatter. At a load average above the number of cores, wall times of 50 at once show nothing.

Selecting among {SCENARIOS:,} scenarios of {OWN} own dependencies each, in 400 files:

| what | figure | target |
|---|---:|---:|
| `dependencies.json` | {size / 1e6:.2f} MB ({packed / 1e6:.2f} MB compressed) | under 2 MB |
| reading it and selecting, processor | {seconds:.2f} s | under 1 s |
"""
    (ROOT / "benchmarks/DEPENDENCIES.md").write_text(page)
    sys.stdout.write(page)


if __name__ == "__main__":
    main()
