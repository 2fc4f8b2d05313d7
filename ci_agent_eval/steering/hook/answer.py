"""The full answer to a hook event: with the settings, the parsers and the memory of sessions.

On any error the call is let through, with a message on standard error.
"""

# ruff: noqa: PLC0415 - modules are imported only for the events that need them

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.agents import (
    AGENTS,
    COPILOT,
    CURSOR,
    Agent,
    recognize_agent,
)
from ci_agent_eval.steering.hook.options import ENABLE, HookOptions
from ci_agent_eval.steering.locations import find_root, find_settings, get_default_store_path
from ci_agent_eval.steering.policy.model import Allow, Decision, DetectionResult, ToolCallRequest

HookEvent = Mapping[str, Any]

_MAX_BYTES = 1 << 20
"""Bytes read from the end of a conversation's file, which can be large."""
_RESULTS = ('"tool_result"', '"function_call_output"', '"functionResponse"')
"""Marks of a line with results of tools, in the files of Claude Code, Codex and Gemini CLI."""


def answer_fully(options: HookOptions, data: bytes, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the texts for standard output and standard error. Never raises."""
    agent = AGENTS.get(options.agent or "")
    try:
        event = _parse_event(data)
        agent = _choose_agent(options.agent, event)
        decision = _review_event(event, agent, options, environ)
    except Exception as error:  # noqa: BLE001 - an error of the hook must not stop the agent
        message = (
            str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        )
        text = " ".join(message.split())[:2000]
        failure = f"agent-eval steer hook: let the call through: {text}\n"
        return agent.allow_output if agent else "", failure
    if isinstance(decision, Allow):
        return agent.allow_output, ""
    return agent.render_denial(decision.message, decision.reason) + "\n", ""


def _parse_event(data: bytes) -> HookEvent:
    event = json.loads(data)
    if not isinstance(event, dict):
        raise InputError("the event is not a JSON object")
    return event


def _choose_agent(name: str | None, event: HookEvent) -> Agent:
    if name is not None and name not in AGENTS:
        raise InputError(f"option --for: unknown agent {name!r}; known: {', '.join(AGENTS)}")
    agent = AGENTS[name] if name else recognize_agent(event)
    if agent is None:
        choices = f"--for {'|'.join(AGENTS)}"
        raise InputError(f"the event does not identify the agent; name it: {choices}")
    return agent


def _read_call(event: HookEvent, agent: Agent) -> tuple[ToolCallRequest, str | None]:
    """Return the tool call of an event and its session, which is None if the event names none."""
    tool, arguments = event.get("tool_name"), event.get("tool_input")
    session = event.get("conversation_id" if agent.name == CURSOR else "session_id")
    if event.get("hook_event_name") == "beforeShellExecution":
        tool, arguments = "shell", {"command": event.get("command")}
    if agent.name == COPILOT and "toolName" in event:
        tool, arguments, session = (event.get(key) for key in ("toolName", "toolArgs", "sessionId"))
    if not isinstance(tool, str) or not tool or not agent.is_before_tool(event):
        raise InputError(f"not an event of {agent.name} before a tool call")
    has_session = isinstance(session, str) and session
    return ToolCallRequest(tool, arguments), f"{agent.name}\n{session}" if has_session else None


def _review_event(
    event: HookEvent, agent: Agent, options: HookOptions, environ: Mapping[str, str]
) -> Decision:
    call, session = _read_call(event, agent)
    if options.problem is not None:
        raise InputError(options.problem)
    from ci_agent_eval.steering.policy.reactor import build_reactor
    from ci_agent_eval.steering.pytest_project import build_project_finder
    from ci_agent_eval.steering.settings_loader import load_steering_settings
    from ci_agent_eval.steering.store import SteeringStore

    settings = load_steering_settings(
        root=Path(find_root(environ)),
        environ=environ,
        enabled=options.enabled,
        config=Path(find_settings(environ, options.config)) if options.config else None,
    )
    if settings.is_idle:
        raise InputError(f"steering is off; switch it on with {ENABLE}")
    path = Path(options.store or get_default_store_path(environ, str(Path.home())))
    store = SteeringStore(path, settings.ttl, lambda: _find_answer_id(event))
    folder = _get_folder(event)

    def advise(run: DetectionResult) -> str | None:
        from ci_agent_eval.steering.advice import find_advice

        return find_advice(folder, environ, run)

    reactor = build_reactor(
        settings, store, find_project=build_project_finder(folder), advise=advise, ledger=store
    )
    return reactor.review(call, session, time.time())


def _get_folder(event: HookEvent) -> Path:
    """Return the working directory of the agent's command."""
    cwd = event.get("cwd")
    folder = Path(cwd) if isinstance(cwd, str) and cwd else Path.cwd()
    return folder if folder.is_dir() else Path.cwd()


def _find_answer_id(event: HookEvent) -> str | None:
    """Return a text that all calls of one answer share, and others do not; None if unknown.

    Of two equal calls in one answer the second is no second attempt: the model has not read the
    message yet. Only opencode's events name the answer; Copilot CLI sends one time, in
    milliseconds, for all of its calls. For others the conversation's file tells.
    """
    if isinstance(event.get("answer_id"), str):
        return str(event["answer_id"])
    if "toolName" in event:
        return str(event["timestamp"]) if "timestamp" in event else None
    path = event.get("transcript_path")
    lines, is_whole = _read_last_lines(Path(path)) if isinstance(path, str) and path else ([], True)
    ids = (event.get(key) for key in ("tool_call_id", "tool_use_id"))
    return _identify_answer(lines, [each for each in ids if isinstance(each, str)], is_whole)


def _read_last_lines(path: Path) -> tuple[list[str], bool]:
    """Return the last lines, and whether they are the whole file."""
    try:
        with path.open("rb") as file:
            start = max(0, file.seek(0, 2) - _MAX_BYTES)
            file.seek(start)
            return file.read().decode("utf-8", "replace").splitlines(), start == 0
    except OSError:
        return [], True


def _identify_answer(lines: Sequence[str], call_ids: Sequence[str], is_whole: bool) -> str | None:
    """Return the message's own id, else the last line with results before the call.

    None if a line is no record, as in an indented file: its lines are the same for each answer.
    """
    quoted = [json.dumps(each) for each in call_ids]
    at = next((at for at, line in enumerate(lines) if any(q in line for q in quoted)), len(lines))
    if not lines or (call_ids and at == len(lines)):
        return None
    # Claude Code's file has a message in several lines, each with its id.
    message = (_parse_record(lines[at]) or {}).get("message") if at < len(lines) else None
    if isinstance(message, dict) and isinstance(message.get("id"), str):
        return str(message["id"])
    results = (line for line in reversed(lines[:at]) if any(mark in line for mark in _RESULTS))
    before = next(results, None)
    if before is None:
        return "after " if is_whole else None
    return f"after {before}" if _parse_record(before) is not None else None


def _parse_record(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
