"""The session of a process: models, rate limits, tool servers and cassettes."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from ci_agent_eval.contract.clock import read_clock
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.engine.cassette import CassetteMode, CassetteSession, CassetteStore
from ci_agent_eval.engine.declarations import (
    Agent,
    CLIServer,
    MCPServer,
    Provider,
    find_declared_secrets,
)
from ci_agent_eval.engine.limits import Clock, Guard, build_guard
from ci_agent_eval.engine.rate_limits import ExcludeWait, Limiter, RateWindows, Sleep
from ci_agent_eval.engine.result import AgentResult, CassetteCounts
from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic.trajectory import TrajectoryReader
from ci_agent_eval.recording.active_episode import get_active_episode
from ci_agent_eval.steering.policy.settings import SteeringSettings

if TYPE_CHECKING:
    from pydantic_ai import Agent as Loop
    from pydantic_ai.models import Model
    from pydantic_ai.toolsets import AbstractToolset

    from ci_agent_eval.engine.servers.pool import ServerPool


MAX_IDLE = 8
"""Number of idle models whose connections stay open."""


class ModelConnections:
    """The models in use on one event loop, and the recently used ones.

    Entering a model for each run would close its client after it: the next run would load all
    CA certificates and connect again. A model is not entered between runs either, so that a
    test may use it on another event loop, as PydanticAI allows.
    """

    def __init__(self) -> None:
        self._users: dict[int, int] = {}
        self._idle: dict[int, Model] = {}

    @asynccontextmanager
    async def hold(self, model: Model) -> AsyncIterator[None]:
        """Hold a model's connections for a run; a custom context manager is entered and left."""
        unwrapped = _unwrap_model(model)
        if not _is_plain(unwrapped):
            async with model:
                yield
            return
        key = id(unwrapped)
        self._idle.pop(key, None)
        self._users[key] = self._users.get(key, 0) + 1
        try:
            yield
        finally:
            await self._release(unwrapped)

    async def close(self) -> None:
        """Close the connections of all idle models."""
        while self._idle:
            _, model = self._idle.popitem()
            await _close_model(model)

    async def _release(self, model: Model) -> None:
        key = id(model)
        self._users[key] -= 1
        if self._users[key]:
            return
        del self._users[key]
        self._idle[key] = model
        if len(self._idle) > MAX_IDLE:
            oldest = next(iter(self._idle))
            await _close_model(self._idle.pop(oldest))


async def _close_model(model: Model) -> None:
    """Close a model's connections: PydanticAI does so when its last context exits."""
    async with model:
        pass


def _unwrap_model(model: Model) -> Model:
    """Return the model inside wrappers without a custom context manager."""
    from pydantic_ai.models.wrapper import WrapperModel  # noqa: PLC0415 - an extra

    while isinstance(model, WrapperModel) and type(model).__aenter__ is WrapperModel.__aenter__:
        model = model.wrapped
    return model


def _is_plain(model: Model) -> bool:
    """Return whether entering the model opens only its default client."""
    from pydantic_ai.models import Model  # noqa: PLC0415 - an extra
    from pydantic_ai.providers import Provider  # noqa: PLC0415 - an extra

    if type(model).__aenter__ is not Model.__aenter__:
        return False
    return model.provider is None or type(model.provider).__aenter__ is Provider.__aenter__


_MODEL_VARIABLE = re.compile(
    r"_(?:URL|BASE|ENDPOINT|HOST|KEY|KEY_ID|TOKEN|VERSION|REGION|PROJECT|LOCATION)$"
)
"""Matches environment variables that may hold a model's address or key, which a test may change."""

Toolset: TypeAlias = "AbstractToolset[Any]"
Server = MCPServer | CLIServer


@dataclass
class _EpisodeResources:
    """The servers and guards of an episode, shared by its runs."""

    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    opened: dict[Server, Toolset] = field(default_factory=dict)
    guards: dict[SteeringSettings, Guard | None] = field(default_factory=dict)
    trajectory_reader: TrajectoryReader = field(default_factory=TrajectoryReader)
    """Reads the model traffic of the runs of other agents than declared ones."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def open_servers(
        self, pool: ServerPool, servers: Sequence[Server], episode_id: str
    ) -> Sequence[Toolset]:
        """Return the toolsets of the servers, in order; opens the missing ones."""
        distinct = dict.fromkeys(servers)
        # Of two concurrent runs that need the same server, the second finds it open.
        async with self.lock:
            missing = [server for server in distinct if server not in self.opened]
            if missing:
                entered = await self.stack.enter_async_context(pool.toolsets(missing, episode_id))
                self.opened.update(zip(missing, entered, strict=True))
        return [self.opened[server] for server in distinct]


@dataclass
class EngineSession:
    """The engine of a process, on one event loop; use it with `async with`.

    `environ` holds the models' keys, `clock` counts seconds; `cassette_mode` is the mode of
    `cassettes`: in `replay` no model needs a key.
    """

    environ: Mapping[str, str] = field(repr=False)
    clock: Clock
    sleep: Sleep = asyncio.sleep
    cassette_mode: CassetteMode = "off"
    cassettes: CassetteStore | None = None
    servers: ServerPool | None = None
    """Unset: a new pool, created for the first agent with servers."""
    on_secrets: Callable[[frozenset[str]], None] | None = None
    """Called with the secrets of agents before they run, for the redaction of reports."""
    steering: SteeringSettings | None = None
    """Rules for held-back calls, for agents without rules; unset: none."""
    on_usage: Callable[[str, object, Usage | None], None] | None = None
    """Called with the usage of an episode's run after each response; None: the run ended."""
    _secrets: set[str] = field(default_factory=set, init=False, repr=False)
    _models: dict[tuple[str | None, ...], Model] = field(default_factory=dict, init=False)
    _limiters: dict[tuple[str | None, ...], Limiter] = field(default_factory=dict, init=False)
    _limits: set[object] = field(default_factory=set, init=False)
    _windows_by_origin: dict[str, RateWindows] = field(default_factory=dict, init=False)
    connections: ModelConnections = field(default_factory=ModelConnections, init=False, repr=False)
    """Connections of the models of PydanticAI agents."""
    _stack: AsyncExitStack | None = field(default=None, init=False)
    _episodes: dict[str, _EpisodeResources] = field(default_factory=dict, init=False)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def open(self) -> None:
        """Open the session without `await`; a pool of `servers` needs `async with`."""
        self._stack = AsyncExitStack()
        self._stack.push_async_callback(self.connections.close)

    async def __aenter__(self) -> Self:
        self.open()
        assert self._stack is not None  # noqa: S101 - set by `open`
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

    async def build_run_model(self, agent: Agent, exclude_wait: ExcludeWait) -> Model:
        """Build the agent's rate-limited model for one run. Raises InputError if that fails."""
        from ci_agent_eval.engine.rate_limited_model import RateLimitedModel  # noqa: PLC0415 - an extra

        model = await self._open_model(agent.provider)
        return RateLimitedModel(model, self.get_limiter(agent.provider), exclude_wait)

    def build_loop(self, agent: Agent) -> Loop[Any, str]:
        """Return the PydanticAI agent of a declaration."""
        from pydantic_ai import Agent as Loop  # noqa: PLC0415 - an extra

        from ci_agent_eval.engine.model import build_model_settings  # noqa: PLC0415 - an extra

        return Loop(
            instructions=agent.instructions,
            model_settings=build_model_settings(agent.provider),
            retries=agent.retries,
        )

    def get_limiter(self, provider: Provider) -> Limiter:
        """Return the provider's limiter, with the tightest limits of all declarations."""
        key, limits = _build_provider_key(provider), (provider.rpm, provider.tpm)
        if key not in self._limiters:
            self._limiters[key] = Limiter.create(self.clock, self.sleep)
        if (key, *limits) not in self._limits:
            self._limits.add((key, *limits))
            self._limiters[key].windows.lower_limits(*limits)
        return self._limiters[key]

    def get_traffic_windows(self, origin: str) -> RateWindows:
        """Return the rate windows of a model API that agents call themselves."""
        if origin not in self._windows_by_origin:
            self._windows_by_origin[origin] = RateWindows(self.clock)
        return self._windows_by_origin[origin]

    @asynccontextmanager
    async def toolsets(self, agent: Agent, episode_id: str) -> AsyncIterator[Sequence[Toolset]]:
        """Open the toolsets of the agent's servers for one run. Raises ServerError."""
        if not agent.servers:
            yield ()
            return
        async with self.open_servers(agent.servers, episode_id) as toolsets:
            yield toolsets

    @asynccontextmanager
    async def open_servers(
        self, servers: Sequence[Server], episode_id: str
    ) -> AsyncIterator[Sequence[Toolset]]:
        """Open the toolsets of servers, in order. Raises ServerError."""
        pool, resources = await self._get_pool(), self._episodes.get(episode_id)
        if resources is None:
            async with pool.toolsets(servers, episode_id) as toolsets:
                yield toolsets
        else:
            yield await resources.open_servers(pool, servers, episode_id)

    def register_secrets(self, agent: object) -> None:
        """Pass an agent's secrets to the cassettes and `on_secrets`."""
        new_secrets = frozenset(find_declared_secrets(agent, self.environ)) - self._secrets
        if not new_secrets:
            return
        self._secrets |= new_secrets
        if self.cassettes is not None:
            self.cassettes.add_secrets(new_secrets)
        if self.on_secrets is not None:
            self.on_secrets(new_secrets)

    def begin_episode(self, episode_id: str) -> None:
        """Share servers between the runs of an episode, until `end_episode`.

        Without it each run counts as an episode: a server that is reset between episodes is
        then reset between two runs.
        """
        self._episodes[episode_id] = _EpisodeResources()

    async def end_episode(self, episode_id: str) -> None:
        """Release the servers of an episode."""
        await self._episodes.pop(episode_id).stack.aclose()

    def get_trajectory_reader(self, episode_id: str) -> TrajectoryReader | None:
        """Return the reader of the model traffic of an episode; None if it was not begun."""
        resources = self._episodes.get(episode_id)
        return None if resources is None else resources.trajectory_reader

    def get_guard(self, settings: SteeringSettings | None, episode_id: str) -> Guard | None:
        """Return the guard that reviews the calls of a run; None without steering.

        `settings` are those of the run or its agent. The runs of an episode share a guard and
        its warnings. Raises InputError if steering cannot work.
        """
        settings = self.steering if settings is None else settings
        if settings is None:
            return None
        resources = self._episodes.get(episode_id, _EpisodeResources())
        if settings not in resources.guards:
            resources.guards[settings] = build_guard(settings, episode_id, self.clock)
        return resources.guards[settings]

    def get_cassette_session(self, episode_id: str) -> CassetteSession | None:
        """Return the cassette session of an episode; None without a cassette."""
        if self.cassettes is None or self.cassette_mode == "off":
            return None
        return self.cassettes.get_session(episode_id)

    def get_usage_listener(self, episode_id: str) -> Callable[[object, Usage | None], None] | None:
        """Return `on_usage` for the runs of an episode; None if nobody listens."""
        return None if self.on_usage is None else partial(self.on_usage, episode_id)

    def get_cassette_counts(self, episode_id: str) -> CassetteCounts:
        """Return the cassette counts of an episode; zeros without a cassette."""
        return self.cassettes.get_counts(episode_id) if self.cassettes else CassetteCounts()

    async def _get_pool(self) -> ServerPool:
        """Return the pool, opened at the first use."""
        async with self._opening:
            if self.servers is not None:
                return self.servers
            from ci_agent_eval.engine.servers.pool import (  # noqa: PLC0415 - it brings the MCP library
                ServerPool,
            )

            pool = ServerPool(self.environ, self.sleep)
            self.servers = await self._exit_stack.enter_async_context(pool)
            return self.servers

    @property
    def _exit_stack(self) -> AsyncExitStack:
        if self._stack is None:
            raise InputError("the engine session is not open; use it as `async with`")
        return self._stack

    async def _open_model(self, provider: Provider) -> Model:
        """Return the provider's model, opened once and closed with the session."""
        from ci_agent_eval.engine.model import build_model  # noqa: PLC0415 - an extra

        names = filter(_MODEL_VARIABLE.search, sorted(self.environ))
        variables = [f"{name}={self.environ[name]}" for name in names]
        stack, key = self._exit_stack, (*_build_provider_key(provider), *variables)
        async with self._opening:
            if key not in self._models:
                offline = self.cassette_mode == "replay"
                model = build_model(provider, self.environ, offline=offline)
                self._models[key] = await stack.enter_async_context(model)
        return self._models[key]


def _build_provider_key(provider: Provider) -> tuple[str | None, ...]:
    return (provider.model_id, provider.base_url, provider.api_key_env)


_FOR_TRAFFIC = (
    "ci_agent_eval.engine.traffic",
    "genai_prices",
    "genai_prices.data_snapshot",
)
_FOR_RUNS = (
    "ci_agent_eval.engine",
    "ci_agent_eval.engine.adapters.loop",  # brings PydanticAI
    "ci_agent_eval.engine.run",
    "ci_agent_eval.engine.adapters.function",
    "ci_agent_eval.engine.adapters.http",
)


def import_before_episodes(*, has_runs: bool) -> None:
    """Import what model calls need and, with `has_runs`, the engine; extras only if installed.

    Within an episode, an import would count as its latency, meet a library that another episode is
    importing, or see a frozen date.
    """
    for name in (*_FOR_TRAFFIC, *(_FOR_RUNS if has_runs else ())):
        with suppress(ImportError):
            import_module(name)


@asynccontextmanager
async def open_session() -> AsyncIterator[tuple[EngineSession, str]]:
    """Yield the session of the active episode and the episode's id; else a new session."""
    active = get_active_episode()
    if active is not None and not active.ended and active.fixture is not None:
        runs = active.fixture("aitest_run")
        yield runs.engine, runs.episode_id
        return
    async with EngineSession(environ=os.environ, clock=read_clock) as session:
        yield session, "outside of episodes"


async def run_without_session(
    run: Callable[..., Awaitable[AgentResult]], own: Mapping[str, Any], **arguments: Any
) -> AgentResult:
    """Run an agent in the active episode; outside of episodes, with `run` in a new session.

    `own` holds the arguments that an episode sets. Raises InputError if they are given in one.
    """
    active = get_active_episode()
    if active is None or active.ended or active.fixture is None:
        import_before_episodes(has_runs=True)
        async with EngineSession(environ=os.environ, clock=read_clock) as session:
            return await run(session=session, **own, **arguments)
    names = [name for name, value in own.items() if value is not None]
    if names:
        raise InputError(
            f"aitest_run: the running episode sets {', '.join(names)}; leave it out, or give a "
            "session of your own, whose runs the episode does not contain"
        )
    recorded: AgentResult = await active.fixture("aitest_run")(raises=False, **arguments)
    return recorded
