"""`aitest_run`: the run of any agent."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, PositiveInt

from ci_agent_eval.contract.fields import RunSeconds, field_error, validate_value
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.contract.stops import AllowedStops
from ci_agent_eval.engine.adapters.frameworks.registry import find_framework
from ci_agent_eval.engine.adapters.protocol import AgentAdapter
from ci_agent_eval.engine.adapters.run import run_adapter
from ci_agent_eval.engine.declarations import Agent, Steering
from ci_agent_eval.engine.limits import RunLimits
from ci_agent_eval.engine.result import AgentResult, Observer
from ci_agent_eval.engine.session import EngineSession, run_without_session
from ci_agent_eval.errors import missing_package_error
from ci_agent_eval.recording.faults import EpisodeFaults
from ci_agent_eval.steering.policy.settings import SteeringSettings

if TYPE_CHECKING:
    from ci_agent_eval.engine.adapters.declared import DeclaredAgent

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
        from ci_agent_eval.engine.adapters.declared import DeclaredAgent  # noqa: PLC0415 - an extra
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
