"""Nested model requests in a run or an episode: of sub-agents and of other code.

PydanticAI has no hook for all agents, so `Agent.iter`, which starts all their runs, is wrapped
once. In a run it gives each nested agent a capability that records its model on the episode's
cassette, and its requests as model calls of the episode. Model requests without an agent are
refused in replay by `ALLOW_MODEL_REQUESTS`, which every model checks before it sends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import Agent, RunContext, models
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.models import Model, ModelRequestContext, ModelResolutionContext
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.toolsets import AbstractToolset

from ci_agent_eval.engine.cassette.model import CassetteModel
from ci_agent_eval.engine.cassette.session import CassetteSession
from ci_agent_eval.engine.declarations import Provider
from ci_agent_eval.engine.message_calls import EpisodeModel
from ci_agent_eval.engine.model import (
    ObservedModel,
    build_model,
    build_stamped_model,
    is_scripted,
)
from ci_agent_eval.engine.run_record import RecordedToolset, RunRecord
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording.active_episode import get_active_episode

FIXTURE = "aitest_run"
"""The fixture with an episode's engine and cassette."""

_LIVE_REQUEST = (
    "a live request to a model in replay, past agents or in a thread without their context; "
    "no cassette can answer it: ask through a PydanticAI agent, or run with --cassette=off"
)


@dataclass(frozen=True)
class RunScope:
    """The cassette for the nested requests of one run."""

    cassette_session: CassetteSession | None
    has_scripts: bool = False
    """Whether requests to scripted models are model calls of the episode."""

    @property
    def is_replay(self) -> bool:
        """Whether live requests are refused."""
        return self.cassette_session is not None and self.cassette_session.mode == "replay"

    def wrap_model(self, model: Model) -> Model:
        """Put a model on the cassette and in the episode, except for scripts.

        Without a cassette the traffic of its requests shows them, except those of the outer
        agent's model (`ctx.model`), which the engine measures.
        """
        if is_scripted(model):
            return EpisodeModel(build_stamped_model(model)) if self.has_scripts else model
        if _is_wrapped_by(CassetteModel, model):
            return EpisodeModel(model)
        if self.cassette_session is None:
            return EpisodeModel(model) if _is_wrapped_by(ObservedModel, model) else model
        return EpisodeModel(CassetteModel(build_stamped_model(model), self.cassette_session))


_scope: ContextVar[RunScope | None] = ContextVar("ci_agent_eval_run", default=None)
_replaying: list[RunScope] = []
"""Runs in replay, for threads without a context."""


@contextmanager
def enter_run_scope(scope: RunScope) -> Iterator[None]:
    """Treat the model requests in the block as nested in a run."""
    _wrap_agents()
    token = _scope.set(scope)
    replaying = [scope] if scope.is_replay else []
    _replaying.extend(replaying)
    try:
        yield
    finally:
        _scope.reset(token)
        for one in replaying:
            _replaying.remove(one)


@functools.cache
def record_episode_requests() -> None:
    """Record model requests of an episode's code outside of runs."""
    _wrap_agents()
    _outside_runs.append(_get_episode_scope)


_outside_runs: list[Callable[[], RunScope | None]] = []


def _get_scope() -> RunScope | None:
    scope = _scope.get()
    return _outside_runs[0]() if scope is None and _outside_runs else scope


def _get_episode_scope() -> RunScope | None:
    """Return the scope of the active episode; None without a cassette."""
    running = get_active_episode()
    if running is None or running.fixture is None:
        return None
    runs: Any = running.fixture(FIXTURE)
    cassette_session = runs.engine.get_cassette_session(runs.episode_id)
    return None if cassette_session is None else RunScope(cassette_session)


class OuterRun(AbstractCapability[Any]):
    """Marks the run of the agent under test, which is already recorded and counted."""


@dataclass
class RecordedRun(OuterRun):
    """Marks the run of a PydanticAI agent, and records its tool calls and each model it asks."""

    record: RunRecord

    def get_ordering(self) -> CapabilityOrdering:
        """Run last before the request, after capabilities that select the model."""
        return CapabilityOrdering(position="innermost")

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Note the request and measure a model that replaces the agent's.

        The agent's instructions, its own code, ran before.
        """
        del ctx
        self.record.is_requesting = True
        model = request_context.model
        if _is_wrapped_by(ObservedModel, model):
            return request_context
        return replace(request_context, model=build_stamped_model(model, self.record.clock))

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Wrap the agent's tools."""
        return RecordedToolset(toolset, self.record)


@dataclass
class NestedRun(AbstractCapability[Any]):
    """Records the requests of a sub-agent's run."""

    scope: RunScope

    def get_ordering(self) -> CapabilityOrdering:
        """Run last before the request, after capabilities that select the model."""
        return CapabilityOrdering(position="innermost")

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Put the model on the cassette."""
        del ctx
        return replace(request_context, model=self.scope.wrap_model(request_context.model))


class ReplayedNestedRun(NestedRun):
    """A `NestedRun` in replay, where a model given by name needs no key."""

    async def resolve_model_id(
        self, ctx: ModelResolutionContext[Any], *, model_id: str
    ) -> Model | None:
        """Build a model that is never called; None if only PydanticAI knows the name."""
        del ctx
        try:
            return build_model(Provider(model_id), {}, offline=True)
        except InputError:
            return None


class _RequestPermission:
    """A replacement for `ALLOW_MODEL_REQUESTS` that refuses requests in replay."""

    def __init__(self, default: bool) -> None:
        self.default = default

    def __bool__(self) -> bool:
        """Raise CassetteMissError in replay; else return PydanticAI's setting."""
        scope = _get_scope() or next(iter(_replaying), None)
        cassette_session = None if scope is None else scope.cassette_session
        if cassette_session is not None and cassette_session.mode == "replay":
            raise cassette_session.refuse(_LIVE_REQUEST)
        return self.default


@functools.cache
def _wrap_agents() -> None:
    """Wrap `Agent.iter`, so that all agents of this process detect nested runs."""
    begin = Agent.iter

    @functools.wraps(begin)
    def iter_in_scope(self: Agent[Any, Any], *args: Any, **options: Any) -> Any:
        given = options.get("capabilities") or ()
        is_outer = any(isinstance(one, OuterRun) for one in given)
        scope = None if is_outer else _get_scope()
        if scope is not None:
            kind = ReplayedNestedRun if scope.is_replay else NestedRun
            options["capabilities"] = [*given, kind(scope)]
        return begin(self, *args, **options)

    Agent.iter = iter_in_scope  # type: ignore[method-assign] # the only hook for all agents
    allowed: Any = _RequestPermission(models.ALLOW_MODEL_REQUESTS)
    models.ALLOW_MODEL_REQUESTS = allowed


def _is_wrapped_by(kind: type[WrapperModel], model: Model) -> bool:
    while isinstance(model, WrapperModel) and not isinstance(model, kind):
        model = model.wrapped
    return isinstance(model, kind)
