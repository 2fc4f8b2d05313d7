"""Replaying 200 episodes of an agent on the openai client beyond the start-up; writes REPLAY.md."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from measure import ROOT, machine

from tests.model_server import ModelServer, Step
from tests.model_server.script import call

ROUNDS = 5
EPISODES = 200
TARGET_S = 2.0

SUITE = """
import os
import openai, pytest

client = openai.AsyncOpenAI(base_url={url!r}, api_key="none", max_retries=0)
FUNCTION = {{"name": "lookup", "parameters": {{"type": "object"}}}}
LOOKUP = {{"type": "function", "function": FUNCTION}}

async def agent(message):
    messages = [{{"role": "user", "content": message}}]
    while True:
        answer = await client.chat.completions.create(
            model="gpt-5-mini", messages=messages, tools=[LOOKUP]
        )
        said = answer.choices[0].message
        messages.append(said)
        if not said.tool_calls:
            return said.content
        for one in said.tool_calls:
            messages.append({{"role": "tool", "tool_call_id": one.id, "content": "shipped"}})

@pytest.mark.parametrize("number", range(int(os.environ["EPISODES"])))
async def test_agent(aitest_run, number):
    assert (await aitest_run(agent, f"question {{number}}")).success
"""
SCRIPT = [Step(tool_calls=[call("lookup", order=7)]), Step(text="It is fine.")]


@dataclass(frozen=True)
class Spent:
    """The time of a run of pytest."""

    wall_s: float
    processor_s: float


def run(folder: Path, episodes: int, *arguments: str) -> Spent:
    """Run a number of episodes in a process of pytest."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_suite.py"]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    environ = {**os.environ, "EPISODES": str(episodes)}
    report = "--episode-report-dir=out"
    subprocess.run(
        [*command, report, *arguments], cwd=folder, env=environ, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(perf_counter() - started, used)


def measure(folder: Path, *arguments: str) -> Spent:
    """Return the median of what 200 episodes take more than one, in alternating rounds."""
    pairs = [(run(folder, 1, *arguments), run(folder, EPISODES, *arguments)) for _ in range(ROUNDS)]
    return Spent(
        statistics.median(many.wall_s - one.wall_s for one, many in pairs),
        statistics.median(many.processor_s - one.processor_s for one, many in pairs),
    )


def main() -> None:
    """Measure and write the page."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name, ModelServer(SCRIPT) as server:
        folder = Path(name)
        (folder / "test_suite.py").write_text(SUITE.format(url=server.base_url))
        run(folder, EPISODES, "--cassette=record")
        live = measure(folder)
        replayed = measure(folder, "--cassette=replay")
        at_once = measure(folder, "--cassette=replay", "--episode-concurrency=20")
    rows = {
        "live, the model server on the loopback": live,
        "replayed": replayed,
        "replayed, 20 at once": at_once,
    }
    lines = [
        f"| {what} | {one.wall_s:.2f} s | {one.processor_s:.2f} s |" for what, one in rows.items()
    ]
    verdict = "met" if max(replayed.wall_s, at_once.wall_s) < TARGET_S else "missed"
    page = f"""# Benchmark results: replay

Measured by `make bench` on: {machine()}; load average {load:.1f} at the start.
{EPISODES} episodes of an agent on the openai client, each of two model calls with a tool call
between them, in one process of pytest. Times are those of {EPISODES} episodes minus those of one,
medians of {ROUNDS} alternating rounds. Measure on an idle machine: with other work on it both
times grow.

| {EPISODES} episodes beyond the start-up | wall time | processor |
|---|---:|---:|
{chr(10).join(lines)}

Target: a replay takes under {TARGET_S:g} s of wall time beyond the start-up: {verdict}.
"""
    (ROOT / "benchmarks/REPLAY.md").write_text(page)
    sys.stdout.write(page)


if __name__ == "__main__":
    main()
