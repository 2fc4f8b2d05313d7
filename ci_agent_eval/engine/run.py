"""`aitest_run`: the run of any agent."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, PositiveInt, ValidationError

from ci_agent_eval.contract.fields import RunSeconds, field_error, validate_value
from ci_agent_eval.contract.jsonable import clean_text, describe_error
from ci_agent_eval.contract.stops import COMPLETED, AgentStop, AllowedStops, Stop
from ci_agent_eval.contract.trajectory import Trajectory, Turn, find_requested_model
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.engine.adapters.frameworks.registry import FRAMEWORKS, find_framework
from ci_agent_eval.engine.adapters.function import FunctionAgent
from ci_agent_eval.engine.adapters.protocol import AgentAdapter, AgentTask
from ci_agent_eval.engine.cassette.session import CassetteSession
from ci_agent_eval.engine.declarations import Agent, Steering
from ci_agent_eval.engine.infrastructure_errors import ModelError, ServerError
from ci_agent_eval.engine.limits import Clock, Guard, PausableDeadline, RunLimits
from ci_agent_eval.engine.rate_limits import RateWindows
from ci_agent_eval.engine.result import AgentResult, CassetteCounts, Observer
from ci_agent_eval.engine.session import EngineSession, ModelConnections, run_without_session
from ci_agent_eval.engine.stops import build_refusal_check, find_unfinished_stop, look_up_error
from ci_agent_eval.engine.traffic import (
    RunTraffic,
    TrafficRates,
    find_traffic_stop,
    list_offered_tools,
)
from ci_agent_eval.errors import InputError, missing_package_error
from ci_agent_eval.model_traffic.attribution import suspend_recording
from ci_agent_eval.model_traffic.trajectory import TrajectoryReader
from ci_agent_eval.recording.faults import EpisodeFaults
from ci_agent_eval.steering.policy.settings import SteeringSettings

if TYPE_CHECKING:
    from ci_agent_eval.engine.adapters.loop import DeclaredAgent


_Milliseconds = Annotated[int | float, Field(gt=0), "a number of milliseconds above 0"]

_numbers = itertools.count(1)


async def aitest_run(
    agent: Agent | AgentAdapter | Callable[..., Any] | object,
    prompt: str | Sequence[Any],
    *,
    session: EngineSession | None = None,
    messages: Sequence[Any] | None = None,
    max_turns: int | None = None,
    timeout_s: float | None = 60.0,
    timeout_ms: float | None = None,
    limits: RunLimits | None = None,
    episode_id: str | None = None,
    observer: Observer | None = None,
    faults: EpisodeFaults | None = None,
    steering: SteeringSettings | None = None,
    allowed_stops: str | Collection[str] = (),
) -> AgentResult:
    """Run an agent on a prompt until it answers or is stopped; return the recorded run.

    `agent` is a declared `Agent` or your own agent (`adapters`): an agent of a framework, a
    function, an HTTPAgent, a CommandAgent.

    `prompt` is a text; for declared and PydanticAI agents also a list of texts and files.

    `messages` of an earlier result continue its conversation. `max_turns` replaces the
    agent's, `timeout_s` (or `timeout_ms`, which replaces it) limits the run without waits for
    rate limits and starts of servers; None: no limit. `steering` replaces the rules of the
    agent or the session for held-back tool calls, of declared and PydanticAI agents. `faults`
    are those of the episode.

    A run without an answer is an agent failure (`AgentResult.outcome`), unless
    `allowed_stops` contains its end: `{"refusal"}`.

    Without a `session` it runs in the active episode, as the fixture `aitest_run` does; outside
    of episodes, in a new session, whose tool servers end with the run.

    Every end gives a result. Raises InputError for wrong arguments of the test; a cancelled
    task stays cancelled.
    """
    deadline = convert_timeout(timeout_s, timeout_ms)
    if session is None:
        own = {
            "limits": limits,
            "episode_id": episode_id,
            "observer": observer,
            "faults": faults,
        }
        return await run_without_session(
            aitest_run,
            own,
            agent=agent,
            prompt=prompt,
            messages=messages,
            max_turns=max_turns,
            timeout_s=deadline,
            steering=steering,
            allowed_stops=allowed_stops,
        )
    allowed = frozenset(validate_value("aitest_run", "allowed_stops", AllowedStops, allowed_stops))
    episode_id = episode_id or f"run-{next(_numbers)}"
    session.register_secrets(agent)
    parts = _parse_parts(agent, prompt, messages or ())
    text = _clean_prompt(prompt) if parts is None else _render_parts(parts)
    guard = session.get_guard(_select_steering(agent, steering), episode_id)
    # The models of declared agents keep their rate limits themselves.
    windows = None if isinstance(agent, Agent) else session.get_traffic_windows
    if isinstance(agent, Agent):
        max_turns = agent.max_turns if max_turns is None else max_turns
        agent = _get_declared_adapter()(agent, session, episode_id)
    return await run_adapter(
        agent,
        text,
        parts=parts,
        clock=session.clock,
        messages=messages,
        timeout_s=deadline,
        limits=_tighten_turns(max_turns, limits or RunLimits()),
        cassette_session=session.get_cassette_session(episode_id),
        observer=observer,
        faults=faults,
        guard=guard,
        connections=session.connections,
        allowed_stops=allowed,
        windows=windows,
        on_usage=session.get_usage_listener(episode_id),
        trajectory_reader=session.get_trajectory_reader(episode_id),
    )


def convert_timeout(timeout_s: float | None, timeout_ms: float | None) -> float | None:
    """Return the timeout in seconds; None: no limit. Raises InputError."""
    milliseconds = validate_value("aitest_run", "timeout_ms", _Milliseconds | None, timeout_ms)
    value = timeout_s if milliseconds is None else milliseconds / 1000
    seconds: float | None = validate_value("aitest_run", "timeout_s", RunSeconds | None, value)
    return seconds


def _get_declared_adapter() -> type[DeclaredAgent]:
    """Return the adapter of declared agents. Raises InputError without PydanticAI."""
    try:
        from ci_agent_eval.engine.adapters.loop import DeclaredAgent  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise missing_package_error("a declared Agent", str(error.name), "engine") from error
    return DeclaredAgent


def _select_steering(agent: object, requested: SteeringSettings | None) -> SteeringSettings | None:
    """Return the steering of this run or its agent, if any. Raises InputError."""
    validate_value("aitest_run", "steering", Steering | None, requested)
    if requested is None:
        return agent.steering if isinstance(agent, Agent) else None
    if not has_message_history(agent):
        raise field_error(
            "aitest_run",
            "steering",
            f"cannot hold back calls of {type(agent).__name__}, which makes them on its own; "
            "use the hook or the proxy",
        )
    return requested


def has_message_history(agent: object) -> bool:
    """Return whether PydanticAI runs the agent: it can be steered, and takes files and messages."""
    is_adapter = type(agent).__module__ == "ci_agent_eval.engine.adapters.loop"
    framework = find_framework(agent)
    is_pydantic = framework is not None and framework.label == "PydanticAI"
    return isinstance(agent, Agent) or is_adapter or is_pydantic


def _parse_parts(agent: object, prompt: object, messages: Sequence[Any]) -> Sequence[Any] | None:
    """Return the parts of a prompt with files; None for a text. Raises InputError."""
    if not isinstance(prompt, list | tuple):
        return None
    if not has_message_history(agent):
        raise field_error(
            "aitest_run",
            "prompt",
            f"must be a text for {type(agent).__name__}; only declared and PydanticAI agents take "
            "files",
        )
    from ci_agent_eval.engine.message_history import parse_prompt_parts  # noqa: PLC0415 - an extra

    return parse_prompt_parts(prompt, messages)


def _render_parts(parts: Sequence[Any]) -> str:
    from ci_agent_eval.engine.message_history import render_parts  # noqa: PLC0415 - an extra

    return render_parts(parts)


def _clean_prompt(prompt: object) -> str:
    return clean_text(validate_value("aitest_run", "prompt", str, prompt))


def _tighten_turns(max_turns: int | None, limits: RunLimits) -> RunLimits:
    validate_value("aitest_run", "max_turns", PositiveInt | None, max_turns)
    maxima = [turns for turns in (max_turns, limits.max_turns) if turns is not None]
    return replace(limits, max_turns=min(maxima, default=None))


def build_adapter(agent: object) -> AgentAdapter:
    """Return the adapter of an agent: an adapter, a framework's agent, or a function.

    Raises InputError for any other object.
    """
    framework = find_framework(agent)
    if framework is not None:
        return framework.wrap(agent)
    if hasattr(agent, "answer") and hasattr(agent, "label"):
        return agent  # type: ignore[return-value]
    if callable(agent):
        return FunctionAgent(agent)
    kind, labels = type(agent), ", ".join(one.label for one in FRAMEWORKS)
    raise InputError(
        f"{kind.__module__}.{kind.__qualname__} is not an agent that aitest_run knows; give an "
        f"Agent, an agent of a framework ({labels}), an "
        "HTTPAgent, a CommandAgent, anything with label, model and answer, or a function of the "
        "message that runs it: `async def answer(message): return str(await agent.run(message))`"
    )


async def run_adapter(
    agent: object,
    prompt: str,
    *,
    clock: Clock,
    parts: Sequence[Any] | None = None,
    messages: Sequence[Any] | None = None,
    timeout_s: float | None = 60.0,
    limits: RunLimits | None = None,
    cassette_session: CassetteSession | None = None,
    observer: Callable[[AgentResult], None] | None = None,
    faults: EpisodeFaults | None = None,
    guard: Guard | None = None,
    connections: ModelConnections | None = None,
    allowed_stops: frozenset[AgentStop] = frozenset(),
    windows: Callable[[str], RateWindows] | None = None,
    on_usage: Callable[[object, Usage | None], None] | None = None,
    trajectory_reader: TrajectoryReader | None = None,
) -> AgentResult:
    """Run your own agent until it answers or is stopped; return the recorded run.

    `parts` are those of a prompt with files. Every end gives a result, which `observer` gets
    too, even if the task is cancelled. `timeout_s` limits the run; `windows` returns the rate
    limits of the address of a model API;
    `on_usage` gets the usage of the run after each model call, and None at its end.
    `trajectory_reader` has read the earlier runs of the episode. Raises InputError for wrong
    arguments of the test.
    """
    adapter = build_adapter(agent)
    timeout_s = validate_value("aitest_run", "timeout_s", RunSeconds | None, timeout_s)
    work = AgentTask(
        clean_text(prompt),
        messages or (),
        clock,
        limits or RunLimits(),
        cassette_session,
        guard,
        connections,
        allowed_stops,
        parts,
        faults or EpisodeFaults(),
    )
    traffic = RunTraffic(
        work.clock,
        work.prompt if parts is None else "".join(part for part in parts if isinstance(part, str)),
        work.limits,
        TrafficRates(windows),
        trajectory_reader=trajectory_reader or TrajectoryReader(),
    )
    if cassette_session is not None:
        traffic.recorder.player = cassette_session.player
    report_end = _report_usage(traffic, on_usage)
    work.traffic = traffic
    observe = observer or (lambda _: None)
    check_refusals = build_refusal_check(cassette_session)
    try:
        with traffic.watch(), _suspend_own_recording(adapter):
            stop = check_refusals(await _run_to_stop(adapter, work, traffic, timeout_s))
        work.stop = _check_recording(stop, work, traffic)
    except InputError:
        report_end()
        raise
    except BaseException as error:
        work.stop = Stop("cancelled", f"it was stopped from outside ({describe_error(error)})")
        traffic.refuse_calls("the run was cancelled")
        report_end()
        observe(_build_result(adapter, work, traffic))
        raise
    result = _build_result(adapter, work, traffic)
    report_end()
    observe(result)
    return result


def _report_usage(
    traffic: RunTraffic, on_usage: Callable[[object, Usage | None], None] | None
) -> Callable[[], None]:
    """Report the usage after each model call, on the event loop; return a function for the end.

    The observer is called next, and its records count from there on.
    """
    if on_usage is None:
        return lambda: None
    loop, has_ended = asyncio.get_running_loop(), False

    def report() -> None:
        if not has_ended:
            on_usage(traffic, traffic.usage)

    def report_end() -> None:
        nonlocal has_ended
        has_ended = True
        on_usage(traffic, None)

    def schedule_report() -> None:
        if not has_ended:
            loop.call_soon_threadsafe(report)

    traffic.on_answer = schedule_report
    return report_end


def _suspend_own_recording(adapter: AgentAdapter) -> AbstractContextManager[None]:
    """Ignore the requests of an adapter that records itself."""
    return suspend_recording() if getattr(adapter, "records_itself", False) else nullcontext()


async def _run_to_stop(
    adapter: AgentAdapter, work: AgentTask, traffic: RunTraffic, timeout_s: float | None
) -> Stop:
    deadline = asyncio.timeout(timeout_s)
    work.deadline = PausableDeadline(deadline)
    try:
        async with deadline:
            await adapter.answer(work)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - any error becomes a stop
        if deadline.expired():
            traffic.refuse_calls("the run's time was up")
            parts = (f"it was not done after {timeout_s:g} s", work.describe_progress())
            stop = Stop("timeout", "; ".join(filter(None, parts)))
        else:
            stop = _classify_error(error, traffic)
        return traffic.find_stop(stop)
    finally:
        work.turns, work.agents = traffic.merge_turns(work.turns)
    if work.stop != COMPLETED:
        return traffic.find_stop(work.stop)
    stop = _find_exceeded_limit(work) or find_unfinished_stop(work.turns) or COMPLETED
    return traffic.find_stop(stop)


def _classify_error(error: Exception, traffic: RunTraffic) -> Stop:
    if isinstance(error, ServerError):
        return Stop("server_error", str(error))
    if isinstance(error, ModelError):
        return Stop("model_error", str(error))
    if (stop := look_up_error(error) or traffic.classify_error(error)) is not None:
        return stop
    if isinstance(error, ValidationError):
        return Stop("model_error", f"what the agent answered cannot be read: {error}")
    return Stop("model_error", f"the agent failed: {describe_error(error)}")


def _check_recording(stop: Stop, work: AgentTask, traffic: RunTraffic) -> Stop:
    """Return a model error if a cassette can neither record nor replay what the agent did."""
    session = work.cassette_session
    is_live = any(turn.role == "assistant" and turn.source in {None, "live"} for turn in work.turns)
    if stop != COMPLETED or session is None or session.mode == "off" or not is_live:
        return stop
    if traffic.has_traffic:
        return stop
    return Stop(
        "model_error",
        "no request of the agent to a model was seen, so that the cassette can neither record nor "
        "replay it; give its processes the variables of the fixture `model_environment` or, if it "
        'asks no model, return Reply(text, source="scripted")',
    )


def _find_exceeded_limit(work: AgentTask) -> Stop | None:
    """Return the limit that a finished run exceeded, if any."""
    max_turns, used = work.limits.max_turns, Usage.from_turns(work.turns)
    if max_turns is not None and used.turns > max_turns:
        return Stop("max_turns", f"it took {used.turns} turns, its limit is {max_turns}")
    return find_traffic_stop(work.limits, used)


def _build_result(adapter: AgentAdapter, work: AgentTask, traffic: RunTraffic) -> AgentResult:
    prompts = [Turn(role="user", content=work.prompt)] if work.prompt else []
    turns = (*prompts, *work.turns)
    instructions = traffic.list_instructions()
    own = (one.text for one in instructions if one.kind == "agent" and one.name is None)
    return AgentResult(
        trajectory=Trajectory(turns=turns, agents=tuple(work.agents)),
        stop_reason=work.stop.reason,
        error=clean_text(work.stop.error) or None,
        duration_ms=work.measure_elapsed_ms(),
        messages=_build_messages(work) if work.messages is None else work.messages,
        rate_limited=work.rate_limited + traffic.rates.rate_limited,
        available_tools=work.available_tools or list_offered_tools(traffic.recorder.calls),
        cassette=CassetteCounts()
        if work.cassette_session is None
        else work.cassette_session.counts,
        agent=adapter.label,
        model=adapter.model or find_requested_model(work.turns),
        needs_turn=work.stop.needs_turn,
        allowed_stops=work.allowed_stops,
        traffic=traffic.summarize(work.turns),
        images=work.images,
        instructions=instructions,
        **{"effective_system_prompt": next(own, ""), **work.declared},
    )


def _build_messages(work: AgentTask) -> tuple[Any, ...]:
    """Return the conversation as messages with `role` and `content`."""
    texts = [{"role": "user", "content": work.prompt}]
    texts += [{"role": turn.role, "content": turn.content} for turn in work.turns if turn.content]
    return (*work.history, *texts)
