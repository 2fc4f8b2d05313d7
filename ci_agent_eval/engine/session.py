"""What the episodes of one process share: models, their limits, tool servers, cassettes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from pydantic_ai import Agent as Loop
from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset

from ci_agent_eval.engine.adapters.model_connections import ModelConnections
from ci_agent_eval.engine.cassette.session import CassetteMode, CassetteSession
from ci_agent_eval.engine.declarations import Agent, CLIServer, MCPServer, Provider
from ci_agent_eval.engine.limits import RunUsage
from ci_agent_eval.engine.model import build_model, build_model_settings
from ci_agent_eval.engine.rate_limits import Limiter, RateLimitedModel, RateLimitTally, Sleep
from ci_agent_eval.engine.result import CassetteCounts
from ci_agent_eval.engine.run_record import Clock
from ci_agent_eval.engine.secrets import find_declared_secrets
from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.policy.settings import SteeringSettings
from ci_agent_eval.storage.ledger.rate_windows import RateWindows

if TYPE_CHECKING:
    from ci_agent_eval.engine.steering import Guard

MAX_LOOPS = 256
"""Declarations whose agent of PydanticAI is kept; each takes a few kilobytes."""

Toolset = AbstractToolset[Any]
Server = MCPServer | CLIServer


class Servers(Protocol):
    """Tool servers that start once and are shared; opened and closed with the session."""

    async def __aenter__(self) -> Self:
        """Open the pool; servers start when they are first needed."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        """Stop every server and its children."""

    def toolsets(
        self, servers: Sequence[Server], episode_id: str
    ) -> AbstractAsyncContextManager[Sequence[Toolset]]:
        """Hold the tools of some servers for one run, in order; raises ServerError."""


class Cassettes(Protocol):
    """Recordings of models' answers."""

    def wrap_model(self, model: Model, agent: Agent, episode_id: str) -> Model:
        """Return the model for one run, answering from the recording or keeping it."""

    def get_counts(self, episode_id: str) -> CassetteCounts:
        """Return what the recording did for one run."""

    def get_session(self, episode_id: str) -> CassetteSession:
        """Return an episode's recording, for agents that are not declared here."""

    def add_secrets(self, secrets: frozenset[str]) -> None:
        """Keep these values out of what is written from now on."""


@dataclass
class _EpisodeResources:
    """What an episode of several runs holds: servers, and what it was warned of."""

    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    held: list[tuple[Server, Toolset]] = field(default_factory=list)
    guards: dict[SteeringSettings, Guard | None] = field(default_factory=dict)
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def toolsets(
        self, servers: Servers, wanted: Sequence[Server], episode_id: str
    ) -> Sequence[Toolset]:
        """Return the tools of the servers, in order; take those that are not held yet."""
        if any(self._of(server) is None for server in wanted):
            # Of two runs at once that need the same server, the second finds it held.
            async with self.asking:
                await self._take(servers, wanted, episode_id)
        return [toolset for server in wanted if (toolset := self._of(server)) is not None]

    async def _take(self, servers: Servers, wanted: Sequence[Server], episode_id: str) -> None:
        missing = [server for server in wanted if self._of(server) is None]
        if missing:
            entered = await self.stack.enter_async_context(servers.toolsets(missing, episode_id))
            self.held += zip(missing, entered, strict=True)

    def _of(self, server: Server) -> Toolset | None:
        return next((toolset for known, toolset in self.held if known == server), None)


@dataclass
class EngineSession:
    """One per process, on one event loop; `async with` it.

    `environ` holds the models' keys, `clock` counts seconds; `cassette_mode` is what
    `cassettes` was made for: in `replay` no model needs a key.
    """

    environ: Mapping[str, str] = field(repr=False)
    clock: Clock
    sleep: Sleep = asyncio.sleep
    cassette_mode: CassetteMode = "off"
    cassettes: Cassettes | None = None
    servers: Servers | None = None
    """Unset: a pool of the session's own, made when an agent with servers comes."""
    on_secrets: Callable[[frozenset[str]], None] | None = None
    """Told of the secrets that agents declare, before they run; for those who write reports."""
    steering: SteeringSettings | None = None
    """Which calls are held back of agents that do not say it themselves; unset: none."""
    windows: Callable[[str], RateWindows] | None = None
    """Gives a provider, by what stands for it, windows that other processes know of."""
    on_spent: Callable[[str, object, RunUsage | None], None] | None = None
    """Told of an episode's run what it has spent, after each answer; None: the run has ended."""
    _secrets: set[str] = field(default_factory=set, init=False, repr=False)
    _models: dict[tuple[str | None, ...], Model] = field(default_factory=dict, init=False)
    _limiters: dict[tuple[str | None, ...], Limiter] = field(default_factory=dict, init=False)
    _limits: set[object] = field(default_factory=set, init=False)
    _loops: dict[int, tuple[Agent, Loop[Any, str]]] = field(default_factory=dict, init=False)
    connections: ModelConnections = field(default_factory=ModelConnections, init=False, repr=False)
    """Of the models that agents of PydanticAI bring with them."""
    _stack: AsyncExitStack | None = field(default=None, init=False)
    _episodes: dict[str, _EpisodeResources] = field(default_factory=dict, init=False)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def open(self) -> None:
        """Open it where nothing can be awaited; a pool of `servers` needs `async with`."""
        self._stack = AsyncExitStack()
        self._stack.push_async_callback(self.connections.close)

    async def __aenter__(self) -> Self:
        self.open()
        assert self._stack is not None  # noqa: S101 - it was opened just now
        if self.servers is not None:
            await self._stack.enter_async_context(self.servers)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        stack, self._stack = self._stack, None
        self._models.clear()
        if stack is not None:
            await stack.__aexit__(kind, error, trace)

    async def model_for(self, agent: Agent, episode_id: str, tally: RateLimitTally) -> Model:
        """Return the agent's model for one run: within its limits, and from a cassette if any.

        Raises InputError where the model cannot be built.
        """
        model = await self._open(agent.provider)
        limited = RateLimitedModel(model, self.limiter(agent.provider), tally)
        if self.cassettes is None:
            return limited
        return self.cassettes.wrap_model(limited, agent, episode_id)

    def loop_of(self, agent: Agent) -> Loop[Any, str]:
        """Return PydanticAI's agent for a declaration: made once, it holds nothing of a run."""
        if id(agent) not in self._loops:
            loop: Loop[Any, str] = Loop(
                instructions=agent.instructions,
                model_settings=build_model_settings(agent.provider),
                retries=agent.retries,
            )
            if len(self._loops) >= MAX_LOOPS:  # tests that declare their agents themselves
                del self._loops[next(iter(self._loops))]
            # The declaration is kept with it, so that its id stays its own.
            self._loops[id(agent)] = (agent, loop)
        return self._loops[id(agent)][1]

    def limiter(self, provider: Provider) -> Limiter:
        """Return the provider's limiter; of two declarations the tighter limits hold."""
        key, limits = _build_provider_key(provider), (provider.rpm, provider.tpm)
        if key not in self._limiters:
            shared = None if self.windows is None else self.windows(repr(key))
            self._limiters[key] = Limiter.of(self.clock, self.sleep, windows=shared)
        if (key, *limits) not in self._limits:
            self._limits.add((key, *limits))
            self._limiters[key].windows.lower_limits(*limits)
        return self._limiters[key]

    @asynccontextmanager
    async def toolsets(self, agent: Agent, episode_id: str) -> AsyncIterator[Sequence[Toolset]]:
        """Hold the tools of the agent's servers for one run; raises ServerError."""
        servers: list[Server] = [*agent.mcp_servers, *agent.cli_servers]
        if not servers:
            yield ()
            return
        pool, held = await self._pool(), self._episodes.get(episode_id)
        if held is None:
            async with pool.toolsets(servers, episode_id) as toolsets:
                yield toolsets
        else:
            yield await held.toolsets(pool, servers, episode_id)

    def learn(self, agent: object) -> None:
        """Tell the cassettes and `on_secrets` what an agent declares that is secret."""
        fresh = frozenset(find_declared_secrets(agent, self.environ)) - self._secrets
        if not fresh:
            return
        self._secrets |= fresh
        if self.cassettes is not None:
            self.cassettes.add_secrets(fresh)
        if self.on_secrets is not None:
            self.on_secrets(fresh)

    def begin_episode(self, episode_id: str) -> None:
        """Let the runs of an episode share its servers' state, until `end_episode`.

        Without it each run is an episode of its own: a server that is reset between
        episodes is then reset between two runs.
        """
        self._episodes[episode_id] = _EpisodeResources()

    async def end_episode(self, episode_id: str) -> None:
        """Give back the servers the episode held, for the next one to have them."""
        await self._episodes.pop(episode_id).stack.aclose()

    def guard(self, settings: SteeringSettings | None, episode_id: str) -> Guard | None:
        """Return who reviews the calls of a run; None where none is held back.

        `settings` are the run's own, or its agent's. The runs of an episode that was begun
        share what it was warned of. Raises InputError where steering cannot work.
        """
        settings = self.steering if settings is None else settings
        if settings is None:
            return None
        held = self._episodes.get(episode_id, _EpisodeResources())
        if settings not in held.guards:
            from ci_agent_eval.engine.steering import build_guard  # noqa: PLC0415 - most need none

            held.guards[settings] = build_guard(settings, episode_id, self.clock)
        return held.guards[settings]

    def get_cassette_session(self, episode_id: str) -> CassetteSession | None:
        """Return an episode's recording; None where nothing is recorded or replayed."""
        if self.cassettes is None or self.cassette_mode == "off":
            return None
        return self.cassettes.get_session(episode_id)

    def note_spent(self, episode_id: str, run: object, spent: RunUsage | None) -> None:
        """Tell `on_spent` what a run of an episode has spent so far; None: it has ended."""
        if self.on_spent is not None:
            self.on_spent(episode_id, run, spent)

    def cassette_counts(self, episode_id: str) -> CassetteCounts:
        """Return what the cassette did for one run; nothing without one."""
        return self.cassettes.get_counts(episode_id) if self.cassettes else CassetteCounts()

    async def _pool(self) -> Servers:
        """Return the pool, opened when the first agent with servers comes."""
        async with self._opening:
            if self.servers is not None:
                return self.servers
            from ci_agent_eval.engine.servers.pool import (  # noqa: PLC0415 - it brings the MCP library
                ServerPool,
            )

            pool: Servers = await self._opened.enter_async_context(
                ServerPool(self.environ, self.sleep)
            )
            self.servers = pool
            return pool

    @property
    def _opened(self) -> AsyncExitStack:
        if self._stack is None:
            raise InputError("the engine session is not open; use it as `async with`")
        return self._stack

    async def _open(self, provider: Provider) -> Model:
        """Return the provider's model, opened once and closed with the session."""
        opened, key = self._opened, _build_provider_key(provider)
        async with self._opening:
            if key not in self._models:
                offline = self.cassette_mode == "replay"
                model = build_model(provider, self.environ, offline=offline)
                self._models[key] = await opened.enter_async_context(model)
        return self._models[key]


def _build_provider_key(provider: Provider) -> tuple[str | None, ...]:
    return (provider.model_id, provider.base_url, provider.api_key_env)
