"""`make bench`, a part: agents of frameworks beside bare asyncio; writes FRAMEWORKS.md.

PydanticAI is in PEERS.md. Both sides run the same agent object (`tests/frameworks/agents`) in the
framework's environment, against the same scripted model server, a process apart. They alternate,
and each round gives one ratio: whatever else the machine does then falls on both.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from measure import ROOT, machine, serve_model

ROUNDS = 7
EPISODES, AT_ONCE = 200, 50
DELAY_MS = 50
TARGET = 1.1
PROCESSORS = os.cpu_count() or 1

WORK = """
import os
import sys
from tests.frameworks.agents import {module} as agents

NUMBERS = range(int(os.environ["EPISODES"]))

def build_prompt(number):
    return f"How much is on checking? In conversation {{number}}."
"""
BARE = (
    WORK
    + """
import asyncio

async def main():
    numbers = iter(NUMBERS)
    async def work():
        for number in numbers:
            {ask}
            assert answer == "$1,500.00.", answer
    await asyncio.gather(*(work() for _ in range({at_once})))

asyncio.run(main())
"""
)
SUITE = (
    WORK
    + """
import pytest

@pytest.mark.parametrize("number", NUMBERS)
async def test_agent(aitest_run, number):
    answer = (await aitest_run(agents.teller, build_prompt(number))).final_response
    assert answer == "$1,500.00.", answer
"""
)
SCRIPT = [
    {
        "tool_calls": [{"name": "get_balance", "arguments": {"account": "checking"}}],
        "delay_ms": DELAY_MS,
    },
    {"text": "$1,500.00.", "delay_ms": DELAY_MS},
]


@dataclass(frozen=True)
class Framework:
    """A framework, and how its users run an agent without us."""

    label: str
    environment: str
    module: str
    ask: str
    """Statements that set `answer`."""


FRAMEWORKS = (
    Framework(
        "OpenAI Agents SDK",
        "openai-agents",
        "openai_agents",
        "answer = (await agents.Runner.run(agents.teller, build_prompt(number))).final_output",
    ),
)


@dataclass(frozen=True)
class Spent:
    """Seconds of the wall and of the processors, of one process."""

    wall: float
    processor: float

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.wall - other.wall, self.processor - other.processor)


def run(command: list[str], folder: Path, environ: Mapping[str, str], episodes: int) -> Spent:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env={**environ, "EPISODES": str(episodes)},
        capture_output=True,
        text=True,
        check=False,
    )
    wall, after = perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(wall, used)


def measure(framework: Framework, url: str, folder: Path) -> str:
    """Measure one framework; return its row."""
    folder.mkdir()
    (folder / "bare.py").write_text(
        BARE.format(module=framework.module, ask=framework.ask, at_once=AT_ONCE)
    )
    (folder / "test_suite.py").write_text(SUITE.format(module=framework.module))
    python = str(ROOT / f".venv-frameworks-{framework.environment}/bin/python")
    options = ["-q", "-p", "no:cacheprovider", f"--episode-concurrency={AT_ONCE}"]
    sides = (
        [python, "bare.py"],
        [python, "-m", "pytest", *options, "--episode-report-dir=out", "test_suite.py"],
    )
    environ = {
        **os.environ,
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": url,
        "PYTHONPATH": str(ROOT),
    }
    for side in sides:
        run(side, folder, environ, 1)
    rounds: list[tuple[Spent, Spent]] = []
    for number in range(ROUNDS):
        spent = {
            place: run(sides[place], folder, environ, EPISODES)
            - run(sides[place], folder, environ, 1)
            for place in ((0, 1), (1, 0))[number % 2]
        }
        rounds.append((spent[0], spent[1]))
    return render_row(framework.label, rounds, is_idle=os.getloadavg()[0] < 2 * PROCESSORS)


def render_row(label: str, rounds: list[tuple[Spent, Spent]], *, is_idle: bool) -> str:
    bare, ours = (
        statistics.median(side.wall for side in column) for column in zip(*rounds, strict=True)
    )
    low, wall, high = statistics.quantiles((b.wall / a.wall for a, b in rounds), n=4)
    processor = statistics.median(b.processor / a.processor for a, b in rounds)
    met = "met" if max(wall, processor) <= TARGET else "**missed**"
    verdict = met if is_idle else "not judged: a busy machine"
    return (
        f"| {label} | {bare:.2f} s | {ours:.2f} s | {wall:.2f} × ({low:.2f} to {high:.2f}) "
        f"| {processor:.2f} × | {verdict} |"
    )


def main() -> None:
    """Measure and write the page."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name, serve_model(SCRIPT) as url:
        rows = [measure(one, url, Path(name, one.module)) for one in FRAMEWORKS]
    page = f"""# Benchmark results: agents of frameworks

Measured by `make bench` on: {machine()}; load average {load:.1f} at the start.
{EPISODES} episodes of an agent as it is, {AT_ONCE} at once, each of two model calls of
{DELAY_MS} ms with a tool call between them: in bare asyncio, and in a test with `aitest_run` under
`--episode-concurrency {AT_ONCE}`, whose episodes are written to files. Times are those of
{EPISODES} episodes minus those of one. Each of {ROUNDS} alternating rounds gives a ratio; the
median counts, and half of the rounds lie between the figures in parentheses. Measure on an idle
machine: other work on it changes the ratio of wall times more than that of the processor's.

| framework | bare asyncio | under test | wall time | processor | target: {TARGET} × |
|---|---:|---:|---:|---:|---|
{chr(10).join(rows)}
"""
    (ROOT / "benchmarks/FRAMEWORKS.md").write_text(page)
    sys.stdout.write(page)


if __name__ == "__main__":
    main()
