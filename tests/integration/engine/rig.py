"""What the engine's tests run on: a session, an agent of a scripted model, tools in the process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from ci_agent_eval.engine.cassette import CassetteMode, CassetteStore
from ci_agent_eval.engine.declarations import Agent, CLIServer, Provider
from ci_agent_eval.engine.result import AgentResult
from ci_agent_eval.engine.run import aitest_run, run_adapter
from ci_agent_eval.engine.session import EngineSession
from ci_agent_eval.redaction import Redactor
from tests.model_server import ModelServer

TOOLS = CLIServer("tools", "stands-for-the-tools-of-the-test")
"""A declaration that makes a session ask its pool; the pool below knows only one answer."""


class Clock:
    """Seconds that pass only where something sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class Tools:
    """A server pool of functions in this process."""

    def __init__(self, *functions: Callable[..., Any]) -> None:
        self.toolset: AbstractToolset[Any] = FunctionToolset(functions)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    @asynccontextmanager
    async def toolsets(
        self, servers: Sequence[Any], episode_id: str
    ) -> AsyncIterator[Sequence[AbstractToolset[Any]]]:
        yield [self.toolset]


def agent(server: ModelServer, model: str = "openai:gpt-5-mini", **overrides: Any) -> Agent:
    """An agent of the scripted model, with the tools of the session's pool."""
    settings = {
        name: overrides.pop(name)
        for name in ("rpm", "tpm", "temperature", "max_tokens", "api_key_env", "timeout_s")
        if name in overrides
    }
    provider = Provider(model, base_url=server.base_url, **settings)
    return Agent(provider, **{"cli_servers": [TOOLS], **overrides})


def session(*functions: Callable[..., Any], clock: Clock | None = None, **overrides: Any) -> Any:
    """A session whose time passes only where something sleeps."""
    clock = clock or Clock()
    given = {"environ": {}, "servers": Tools(*functions), **overrides}
    return EngineSession(clock=clock, **{"sleep": clock.sleep, **given})


def run(
    script: Any,
    *functions: Callable[..., Any],
    prompt: str = "hello",
    clock: Clock | None = None,
    agent_options: dict[str, Any] | None = None,
    **options: Any,
) -> AgentResult:
    """Run an agent once against a script."""

    async def once(server: ModelServer) -> AgentResult:
        async with session(*functions, clock=clock) as opened:
            given = agent(server, **(agent_options or {}))
            return await aitest_run(given, prompt, session=opened, **options)

    with ModelServer(script) as server:
        return go(once(server))


def model_of(server: ModelServer, name: str = "gpt-5-mini") -> OpenAIChatModel:
    """A model of PydanticAI that the server plays."""
    provider = OpenAIProvider(base_url=server.base_url, api_key="k")
    return OpenAIChatModel(name, provider=provider)


def run_with_cassette(
    folder: Path, mode: CassetteMode, agent: object, prompt: str = "main", **options: Any
) -> AgentResult:
    """Run an agent of any kind with a cassette in a folder."""
    with CassetteStore(mode, Redactor.from_environ({})).episode("e", folder, "s") as cassette:
        return run_agent(agent, prompt, cassette_session=cassette, **options)


def record_and_replay(
    folder: Path, server: ModelServer, agent: object, prompt: str = "main"
) -> tuple[AgentResult, AgentResult]:
    """Record an agent, then replay it; no request may reach the model server again."""
    live = run_with_cassette(folder, "record", agent, prompt)
    asked = len(server.requests)
    again = run_with_cassette(folder, "replay", agent, prompt)
    assert len(server.requests) == asked
    return live, again


def go(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end."""
    return asyncio.run(work)


def run_agent(agent: object, prompt: str = "my balance?", **options: Any) -> AgentResult:
    """Run an agent of any kind outside of a session."""
    return asyncio.run(run_adapter(agent, prompt, clock=time.monotonic, **options))
