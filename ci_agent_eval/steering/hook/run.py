"""One hook event answered. Whatever goes wrong inside, the call goes through, and stderr says so.

A coding agent waits for this process at every command: nothing is imported before it is needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import IO

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.agents import AGENTS, Agent, Asked, Event, recognised
from ci_agent_eval.steering.policy.model import Decision

Review = Callable[[Asked, Agent, Event], Decision]


def answer_event(stdin: IO[bytes], agent: str | None, review: Review) -> tuple[str, str]:
    """Return what is written to standard output and to standard error.

    `agent` is the name that was given; without one the event tells. `review` decides, and may
    raise. Never raises.
    """
    chosen: Agent | None = AGENTS.get(agent or "")
    try:
        event = _event(stdin)
        chosen = _agent(agent, event)
        return _answered(event, chosen, review)
    except Exception as error:  # noqa: BLE001 - a hook must not stop an agent for its own faults
        return chosen.allowed if chosen else "", _let_through(error)


def _answered(event: Event, agent: Agent, review: Review) -> tuple[str, str]:
    asked = agent.asked(event)
    if asked is None:
        raise InputError(f"the event is none that {agent.name} sends before a tool runs")
    return agent.answer(review(asked, agent, event)), ""


def _event(stdin: IO[bytes]) -> Event:
    event = json.loads(stdin.read())
    if not isinstance(event, dict):
        raise InputError("the event is no JSON object")
    return event


def _agent(name: str | None, event: Event) -> Agent:
    if name is not None and name not in AGENTS:
        raise InputError(f"option --for: unknown agent {name!r}; known: {', '.join(AGENTS)}")
    agent = AGENTS[name] if name else recognised(event)
    if agent is None:
        raise InputError(f"no agent is known that sends such events; say which: {_choices()}")
    return agent


def _choices() -> str:
    return f"--for {'|'.join(AGENTS)}"


def _let_through(error: Exception) -> str:
    said = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return f"agent-eval steer hook: let the call through: {' '.join(said.split())[:2000]}\n"
