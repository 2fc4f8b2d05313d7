"""Episodes beside bare asyncio and pydantic-evals, which run the same PydanticAI agent.

An episode is two model calls and one tool call between them. One scripted model server, a process
of its own on the loopback, answers all. A figure is what 200 episodes take more than one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.processes import ENVIRON, ROOT, Figure, Row, alternate, run

EPISODES, AT_ONCE, ROUNDS = 200, 50, 5
DELAY_MS = 50
SCRIPT = [
    {"tool_calls": [{"name": "echo", "arguments": {"text": "{prompt}"}}], "delay_ms": DELAY_MS},
    {"text": "The tool said {tool}", "delay_ms": DELAY_MS},
]

AGENT = f"""
import asyncio, os
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

NUMBERS = range(int(os.environ["EPISODES"]))
AT_ONCE = {AT_ONCE}

async def echo(text: str) -> str:
    return text

provider = OpenAIProvider(base_url=os.environ["MODEL_URL"], api_key="none")
AGENT = Agent(OpenAIChatModel("gpt-5-mini", provider=provider), tools=[echo])

def prompt_of(number):
    return f"balance of account {{number}}"

def answer_of(number):
    return f"The tool said {{prompt_of(number)}}"
"""
BARE = """
from agent import *

async def main():
    numbers = iter(NUMBERS)
    async def worker():
        for number in numbers:
            assert (await AGENT.run(prompt_of(number))).output == answer_of(number)
    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))

asyncio.run(main())
"""
EVALS = """
from agent import *
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected

async def task(prompt):
    return (await AGENT.run(prompt)).output

cases = [
    Case(name=str(n), inputs=prompt_of(n), expected_output=answer_of(n)) for n in NUMBERS
]
data = Dataset(name="episodes", cases=cases, evaluators=[EqualsExpected()])
report = data.evaluate_sync(task, max_concurrency=AT_ONCE, progress=False)
assert len(report.cases) == len(NUMBERS)
assert all(a.value for case in report.cases for a in case.assertions.values())
"""
OURS = """
import pytest
from agent import *

@pytest.mark.parametrize("number", NUMBERS)
async def test_episode(aitest_run, number):
    assert (await aitest_run(AGENT, prompt_of(number))).final_response == answer_of(number)
"""


@contextmanager
def serve_model(script: Sequence[object], folder: Path) -> Iterator[str]:
    """Serve a scripted model from a process apart; yield its base URL."""
    path = folder / "script.json"
    path.write_text(json.dumps(script))
    command = [sys.executable, "-m", "tests.model_server", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["base_url"]
        finally:
            process.terminate()


def measure() -> Iterator[Row]:
    """Measure bare asyncio, pydantic-evals and this plugin."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in (
            ("agent.py", AGENT),
            ("bare.py", BARE),
            ("evals.py", EVALS),
            ("test_ours.py", OURS),
            ("pytest.ini", "[pytest]"),
        ):
            (folder / file).write_text(text)
        with serve_model(SCRIPT, folder) as url:
            yield from _compare(folder, url)


def _compare(folder: Path, url: str) -> Iterator[Row]:
    pytest = ["-m", "pytest", "-q", "-p", "no:randomly", f"--episode-concurrency={AT_ONCE}"]
    commands = {
        "bare asyncio": ["bare.py"],
        "pydantic-evals": ["evals.py"],
        "this plugin, `--episode-concurrency 50`": [*pytest, "test_ours.py"],
    }

    def spend(words: Sequence[str], episodes: int) -> Figure:
        environ = {**ENVIRON, "MODEL_URL": url, "EPISODES": str(episodes)}
        return run([sys.executable, *words], folder, environ)

    def spend_more(words: Sequence[str]) -> Figure:
        many, single = spend(words, EPISODES), spend(words, 1)
        return Figure(
            many.seconds - single.seconds,
            many.megabytes,
            many.cpu_seconds - single.cpu_seconds,
        )

    sides = [lambda words=words: spend_more(words) for words in commands.values()]
    figures = alternate(sides, ROUNDS)
    bare = figures[0]
    for name, figure in zip(commands, figures, strict=True):
        wall, cpu = figure.seconds / bare.seconds, figure.cpu_seconds / bare.cpu_seconds
        remark = f"{wall:.2f} × bare asyncio, {cpu:.2f} × its processor time"
        target = "; target at most 1.1 ×" if name.startswith("this") else ""
        yield Row(
            f"{EPISODES} episodes, {DELAY_MS} ms a model call: {name}", str(figure), remark + target
        )
