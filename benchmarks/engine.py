"""`make bench`, second part: measure the engine beside bare PydanticAI, and write ENGINE.md.

Both answer the same prompts from the same scripted model server, a process of its own on
the loopback, in one run and in alternating rounds. An episode is two model calls with one
tool call between them. Clocks start after imports and one warm-up round.
"""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import Self

from measure import ROOT, machine, serve_model
from pydantic_ai import Agent as Loop
from pydantic_ai.mcp import MCPToolset, StdioTransport
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RequestUsage

from ci_agent_eval.engine.cassette.store import CassetteStore
from ci_agent_eval.engine.declarations import Agent, CLIServer, MCPServer, Provider
from ci_agent_eval.engine.run import aitest_run
from ci_agent_eval.engine.session import EngineSession
from ci_agent_eval.redaction import Redactor

ROUNDS = 7
"""Of 200 episodes each; model calls are measured in shorter ones."""
REPLAY_ROUNDS = 15
EPISODES = 200
AT_ONCE = 50
MODEL_CALLS = 2
"""Of one episode."""
PROMPT = "Be brief."
SCRIPT = [
    {"tool_calls": [{"name": "echo", "arguments": {"text": "{prompt}"}}]},
    "The tool said {tool}",
]
BANK = ("-m", "tests.servers.bank")

Episode = Callable[[int], Awaitable[str]]
"""Runs the episode of that number and returns the answer."""


def prompt_of(number: int) -> str:
    """Return a prompt no other episode has."""
    return f"balance of account {number}"


def echo(text: str) -> str:
    """Return the text."""
    return text


@dataclass
class Side:
    """One of two that are compared, and its rounds: seconds of the wall and of this process."""

    episode: Episode
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    async def round(self, episodes: int, at_once: int, *, kept: bool = True) -> None:
        """Run some episodes, so many at a time; every answer is checked."""
        gc.collect()
        started, used = perf_counter(), process_time()
        answers = await gathered(self.episode, episodes, at_once)
        wall, cpu = perf_counter() - started, process_time() - used
        wrong = [n for n, text in enumerate(answers) if text != f"The tool said {prompt_of(n)}"]
        if wrong:
            sys.exit(f"{len(wrong)} wrong answers, the first: {answers[wrong[0]]!r}")
        if kept:
            self.wall.append(wall)
            self.cpu.append(cpu)


async def gathered(episode: Episode, episodes: int, at_once: int) -> list[str]:
    """Run the episodes and return their answers in order."""
    answers = [""] * episodes
    numbers = iter(range(episodes))

    async def worker() -> None:
        for number in numbers:
            answers[number] = await episode(number)

    await asyncio.gather(*(worker() for _ in range(at_once)))
    return answers


async def alternate(sides: Sequence[Side], episodes: int, at_once: int, rounds: int) -> None:
    """Run the sides in turns; which goes first changes with each round."""
    for side in sides:
        await side.round(100, at_once, kept=False)
    for number in range(rounds):
        for side in sides[:: 1 if number % 2 else -1]:
            await side.round(episodes, at_once)


class InProcess:
    """A server pool with one tool, a function of this process."""

    def __init__(self) -> None:
        self.toolset = FunctionToolset([echo])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    @asynccontextmanager
    async def toolsets(self, *_: object) -> AsyncIterator[list[FunctionToolset]]:
        yield [self.toolset]


def bare(url: str, toolset: object) -> Episode:
    """Return episodes of PydanticAI alone: one agent, made once."""
    model = OpenAIChatModel("gpt-5-mini", provider=OpenAIProvider(base_url=url, api_key="k"))
    agent = Loop(model, instructions=PROMPT, toolsets=[toolset])

    async def episode(number: int) -> str:
        return (await agent.run(prompt_of(number))).output

    return episode


def ours(session: EngineSession, agent: Agent) -> Episode:
    """Return episodes of the engine."""

    async def episode(number: int) -> str:
        result = await aitest_run(agent, prompt_of(number), session=session)
        return result.final_response if result.success else f"{result.stop_reason}: {result.error}"

    return episode


def declared(url: str, **tools: object) -> Agent:
    """Return the engine's agent."""
    return Agent(Provider("openai:gpt-5-mini", base_url=url), system_prompt=PROMPT, **tools)


def in_process(url: str) -> Agent:
    """Return the agent with the tool of this process."""
    return declared(url, cli_servers=[CLIServer("tools", "stands-for-the-tool")])


async def model_calls(url: str) -> list[str]:
    """Measure what the engine adds to a model call."""
    rows = []
    async with EngineSession({}, perf_counter, servers=InProcess()) as session:
        # Many short rounds: what else the machine does then falls on both sides alike.
        for at_once, episodes, rounds in ((1, 10, 61), (AT_ONCE, 100, 21)):
            sides = [
                Side(bare(url, FunctionToolset([echo]))),
                Side(ours(session, in_process(url))),
            ]
            await alternate(sides, episodes, at_once, rounds)
            rows += compared(sides, episodes * MODEL_CALLS, f"a model call, {at_once} at once")
    return rows


def compared(sides: Sequence[Side], units: int, what: str) -> list[str]:
    """Return two rows: PydanticAI alone, and the engine with its share on top."""
    alone, engine = sides
    wall, low, high = spread(ratios(alone.wall, engine.wall))
    cpu = statistics.median(ratios(alone.cpu, engine.cpu))
    met = "met" if wall <= 1.1 else "**missed**"
    note = (
        f"{percent(wall)} wall (half of the rounds {percent(low)} to {percent(high)}), "
        f"{percent(cpu)} processor; target at most +10 %: {met}"
    )
    return [
        row(f"{what}: bare PydanticAI", ms(alone.wall, units), ms(alone.cpu, units), ""),
        row(f"{what}: the engine", ms(engine.wall, units), ms(engine.cpu, units), note),
    ]


async def shared_server(url: str) -> list[str]:
    """Measure episodes that share one MCP server over stdio."""
    server = MCPServer(
        command=(sys.executable,), args=BANK, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    )
    transport = StdioTransport(
        sys.executable, list(BANK), env={"PYTHONPATH": str(ROOT)}, cwd=str(ROOT)
    )
    toolset = MCPToolset(transport)
    async with EngineSession({}, perf_counter) as session, toolset:
        sides = [Side(bare(url, toolset)), Side(ours(session, declared(url, mcp_servers=[server])))]
        await alternate(sides, EPISODES, AT_ONCE, ROUNDS)
    alone, engine = (EPISODES / statistics.median(side.wall) for side in sides)
    over = statistics.median(ratios(sides[0].wall, sides[1].wall))
    met = "met" if engine >= 37 else "**missed**"
    what = f"an episode on one shared MCP server (stdio), {AT_ONCE} at once"
    return [
        row(
            f"{what}: bare PydanticAI",
            ms(sides[0].wall, EPISODES),
            ms(sides[0].cpu, EPISODES),
            f"{alone:.0f} a second",
        ),
        row(
            f"{what}: the engine",
            ms(sides[1].wall, EPISODES),
            ms(sides[1].cpu, EPISODES),
            f"{engine:.0f} a second, {percent(over)}; target at least 37 a second: {met}",
        ),
    ]


async def replay(url: str, folder: Path) -> list[str]:
    """Measure the replay of recorded episodes, each from a cassette of its own."""
    redactor = Redactor.from_environ({})
    await record(url, folder, redactor)
    agent = in_process(url)
    fixed = Loop(FunctionModel(scripted), instructions=PROMPT, tools=[echo])

    async def floor(number: int) -> str:
        return (await fixed.run(prompt_of(number))).output

    async def replayed(number: int) -> str:
        return await kept(opened, agent, folder, number)

    sides = [Side(floor), Side(replayed)]
    for number in range(REPLAY_ROUNDS + 1):
        # A new store for each round: every cassette is read anew.
        store = CassetteStore("replay", redactor)
        async with EngineSession(
            {}, perf_counter, cassette_mode="replay", cassettes=store, servers=InProcess()
        ) as opened:
            for side in sides[:: 1 if number % 2 else -1]:
                await side.round(EPISODES, 1, kept=number > 0)
    each = [wall / EPISODES * 1000 for wall in sides[1].wall]
    middle, low, high = spread(each)
    met = "met" if middle <= 5 else "**missed**"
    what = "a replayed episode"
    return [
        row(
            f"{what}: bare PydanticAI, answers from a function",
            ms(sides[0].wall, EPISODES),
            ms(sides[0].cpu, EPISODES),
            "the floor: it reads and compares nothing",
        ),
        row(
            f"{what}: the engine, its cassette read from the disk",
            ms(sides[1].wall, EPISODES),
            ms(sides[1].cpu, EPISODES),
            f"half of the rounds {low:.1f} to {high:.1f} ms; target at most 5 ms: {met}",
        ),
    ]


async def record(url: str, folder: Path, redactor: Redactor) -> None:
    """Record what is replayed later."""
    store = CassetteStore("record", redactor)
    async with EngineSession(
        {}, perf_counter, cassette_mode="record", cassettes=store, servers=InProcess()
    ) as session:
        for number in range(EPISODES):
            await kept(session, in_process(url), folder, number)


async def kept(session: EngineSession, agent: Agent, folder: Path, number: int) -> str:
    """Run an episode with its cassette."""
    name = f"episode-{number}"
    with session.cassettes.episode(name, folder, name):
        result = await aitest_run(agent, prompt_of(number), session=session, episode_id=name)
    return result.final_response if result.success else f"{result.stop_reason}: {result.error}"


def scripted(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Answer as the model server does."""
    usage = RequestUsage(input_tokens=100, output_tokens=20)
    last = messages[-1].parts[-1].content
    if len(messages) == 1:
        return ModelResponse([ToolCallPart("echo", {"text": last})], usage=usage)
    return ModelResponse([TextPart(f"The tool said {last}")], usage=usage)


def ratios(alone: Sequence[float], engine: Sequence[float]) -> list[float]:
    """Return how much longer the engine took, round by round."""
    return [b / a for a, b in zip(alone, engine, strict=True)]


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median and the quartiles."""
    low, middle, high = statistics.quantiles(values, n=4)
    return middle, low, high


def percent(ratio: float) -> str:
    """Write a ratio as what it is more, or less, than one."""
    return f"{(ratio - 1) * 100:+.0f} %"


def ms(rounds: Sequence[float], units: int) -> str:
    """Write the median of rounds by unit."""
    return f"{statistics.median(rounds) / units * 1000:.2f} ms"


def row(what: str, wall: str, cpu: str, note: str) -> str:
    """Write a row of the table."""
    return f"| {what} | {wall} | {cpu} | {note} |"


def page(rows: Sequence[str], load: float) -> str:
    """Render the page that records the figures."""
    return "\n".join(
        [
            "# Benchmark results: the engine",
            "",
            f"Measured by `make bench` on: {machine()}; load average {load:.1f} at the start.",
            "The same scripted model server, a process of its own on the loopback, answers both",
            "sides and adds no delay; a real model takes far longer, so the shares below are high.",
            "Medians of alternating rounds; a share is the median of the rounds' ratios.",
            "An episode is two model calls and one tool call. Imports and a warm-up are not",
            "counted; the processor's time is that of the measuring process alone.",
            "",
            "| what | wall time | processor | remark |",
            "|---|---:|---:|---|",
            *rows,
            "",
        ]
    )


async def measure_all(folder: Path) -> list[str]:
    """Measure everything; return the rows."""
    with serve_model(SCRIPT) as url:
        rows = await model_calls(url)
        rows += await shared_server(url)
        return rows + await replay(url, folder / "cassettes")


def main() -> None:
    """Measure, print and record."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        text = page(asyncio.run(measure_all(Path(folder))), load)
    print(text)
    (ROOT / "benchmarks/ENGINE.md").write_text(text)


if __name__ == "__main__":
    main()
