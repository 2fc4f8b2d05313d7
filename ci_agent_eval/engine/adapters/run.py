"""The run of an agent adapter: its timeout, limits and result."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_ai.agent import AbstractAgent

from ci_agent_eval.contract.fields import RunSeconds, validate_value
from ci_agent_eval.contract.jsonable import clean_text, describe_error
from ci_agent_eval.contract.stops import AgentStop
from ci_agent_eval.contract.trajectory import Trajectory, Turn
from ci_agent_eval.engine.adapters.function import FunctionAgent
from ci_agent_eval.engine.adapters.loop import LoopAgent
from ci_agent_eval.engine.adapters.model_connections import ModelConnections
from ci_agent_eval.engine.adapters.protocol import COMPLETED, AgentAdapter, AgentTask
from ci_agent_eval.engine.cassette.session import CassetteSession
from ci_agent_eval.engine.infrastructure_errors import ModelError, ServerError
from ci_agent_eval.engine.limits import RunLimits, RunUsage, Stop, find_exceeded_limit
from ci_agent_eval.engine.nested_requests import RunScope, build_refusal_check, enter_run_scope
from ci_agent_eval.engine.result import AgentResult, CassetteCounts
from ci_agent_eval.engine.run_record import Clock
from ci_agent_eval.engine.steering import Guard
from ci_agent_eval.engine.stops import find_unfinished_stop, look_up_error
from ci_agent_eval.errors import InputError


def build_adapter(agent: object) -> AgentAdapter:
    """Return the adapter of an agent: an adapter, a PydanticAI agent, or a function.

    Raises InputError for any other object.
    """
    if isinstance(agent, AbstractAgent):
        return LoopAgent(agent)
    if hasattr(agent, "answer") and hasattr(agent, "label"):
        return agent  # type: ignore[return-value]
    if callable(agent):
        return FunctionAgent(agent)
    raise InputError(
        f"{type(agent).__name__} is no agent; give an Agent, a PydanticAI agent, a function "
        "of the message, an HTTPAgent, a CommandAgent, or anything with label, model and answer"
    )


async def run_adapter(
    agent: object,
    prompt: str,
    *,
    clock: Clock,
    messages: Sequence[Any] | None = None,
    timeout_s: float | None = 60.0,
    limits: RunLimits | None = None,
    cassette_session: CassetteSession | None = None,
    observer: Callable[[AgentResult], None] | None = None,
    guard: Guard | None = None,
    connections: ModelConnections | None = None,
    allowed_stops: frozenset[AgentStop] = frozenset(),
) -> AgentResult:
    """Run your own agent until it answers or is stopped; return the recorded run.

    Every end gives a result, which `observer` gets too, even if the task is cancelled.
    `timeout_s` limits the run. Raises InputError for wrong arguments of the test.
    """
    adapter = build_adapter(agent)
    timeout_s = validate_value("aitest_run", "timeout_s", RunSeconds | None, timeout_s)
    work = AgentTask(
        clean_text(prompt),
        tuple(messages or ()),
        clock,
        limits or RunLimits(),
        cassette_session,
        guard,
        connections,
        allowed_stops,
    )
    observe = observer or (lambda _: None)
    check_refusals = build_refusal_check(cassette_session)
    try:
        work.stop = check_refusals(await _run_to_stop(adapter, work, timeout_s))
    except InputError:
        raise
    except BaseException as error:
        work.stop = Stop("cancelled", f"it was stopped from outside ({describe_error(error)})")
        observe(_build_result(adapter, work))
        raise
    result = _build_result(adapter, work)
    observe(result)
    return result


async def _run_to_stop(adapter: AgentAdapter, work: AgentTask, timeout_s: float | None) -> Stop:
    deadline = asyncio.timeout(timeout_s)
    try:
        with enter_run_scope(RunScope(work.cassette_session)):
            async with deadline:
                await adapter.answer(work)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - any error becomes a stop
        if deadline.expired():
            return Stop("timeout", f"it was not done after {timeout_s:g} s")
        return _classify_error(error)
    if work.stop != COMPLETED:
        return work.stop
    return _find_exceeded_limit(work) or find_unfinished_stop(work.turns) or COMPLETED


def _classify_error(error: Exception) -> Stop:
    if isinstance(error, ServerError):
        return Stop("server_error", str(error))
    if isinstance(error, ModelError):
        return Stop("model_error", str(error))
    if isinstance(error, ValidationError):
        return Stop("model_error", f"what the agent answered cannot be read: {error}")
    unknown = Stop("model_error", f"the agent failed: {describe_error(error)}")
    return look_up_error(error) or unknown


def _find_exceeded_limit(work: AgentTask) -> Stop | None:
    """Return the limit that a finished run exceeded, if any."""
    max_turns, turns = work.limits.max_turns, sum(turn.role == "assistant" for turn in work.turns)
    if max_turns is not None and turns > max_turns:
        return Stop("max_turns", f"it took {turns} turns, its limit is {max_turns}")
    usage = RunUsage(
        tool_calls=sum(len(turn.tool_calls) for turn in work.turns),
        tokens=sum(turn.tokens.total for turn in work.turns if turn.tokens is not None),
        cost_usd=math.fsum(turn.cost_usd for turn in work.turns if turn.cost_usd is not None),
    )
    return find_exceeded_limit(work.limits, usage)


def _build_result(adapter: AgentAdapter, work: AgentTask) -> AgentResult:
    turns = (Turn(role="user", content=work.prompt), *work.turns)
    return AgentResult(
        trajectory=Trajectory(turns=turns),
        stop_reason=work.stop.reason,
        error=clean_text(work.stop.error) or None,
        duration_ms=work.measure_elapsed_ms(),
        messages=_build_messages(work) if work.messages is None else tuple(work.messages),
        rate_limited=work.rate_limited,
        available_tools=work.available_tools,
        cassette=CassetteCounts()
        if work.cassette_session is None
        else work.cassette_session.counts,
        agent=adapter.label,
        model=adapter.model,
        needs_turn=work.stop.needs_turn,
        allowed_stops=work.allowed_stops,
    )


def _build_messages(work: AgentTask) -> tuple[Any, ...]:
    """Return the conversation as messages with `role` and `content`."""
    texts = [{"role": "user", "content": work.prompt}]
    texts += [{"role": turn.role, "content": turn.content} for turn in work.turns if turn.content]
    return (*work.history, *texts)
