"""Answers to hook events. On any error the call is let through, with a message on stderr.

A coding agent waits for this process before each command, so modules are imported lazily.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import IO

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.coding_agents import (
    AGENTS,
    CodingAgent,
    HookEvent,
    HookRequest,
    recognize_agent,
)
from ci_agent_eval.steering.hook.ended_calls import read_ended_call
from ci_agent_eval.steering.policy.model import Decision

ReviewRequest = Callable[[HookRequest, CodingAgent, HookEvent], Decision]


def answer_event(stdin: IO[bytes], agent: str | None, review: ReviewRequest) -> tuple[str, str]:
    """Return the texts for standard output and standard error.

    `agent` is the name from the option `--for`; if None, the event determines the agent.
    `review` makes the decision and may raise. Never raises.
    """
    coding_agent: CodingAgent | None = AGENTS.get(agent or "")
    try:
        event = _read_event(stdin)
        coding_agent = _choose_agent(agent, event)
        return _review_event(event, coding_agent, review)
    except Exception as error:  # noqa: BLE001 - an error of the hook must not stop the agent
        return coding_agent.allow_output if coding_agent else "", _describe_failure(error)


def _review_event(event: HookEvent, agent: CodingAgent, review: ReviewRequest) -> tuple[str, str]:
    request = agent.read_event(event) or read_ended_call(event)
    if request is None:
        raise InputError(f"not an event of {agent.name} before or after a tool call")
    return agent.answer(review(request, agent, event)), ""


def _read_event(stdin: IO[bytes]) -> HookEvent:
    event = json.loads(stdin.read())
    if not isinstance(event, dict):
        raise InputError("the event is no JSON object")
    return event


def _choose_agent(name: str | None, event: HookEvent) -> CodingAgent:
    if name is not None and name not in AGENTS:
        raise InputError(f"option --for: unknown agent {name!r}; known: {', '.join(AGENTS)}")
    agent = AGENTS[name] if name else recognize_agent(event)
    if agent is None:
        raise InputError(f"the event does not identify the agent; name it: {_list_choices()}")
    return agent


def _list_choices() -> str:
    return f"--for {'|'.join(AGENTS)}"


def _describe_failure(error: Exception) -> str:
    message = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return f"agent-eval steer hook: let the call through: {' '.join(message.split())[:2000]}\n"
