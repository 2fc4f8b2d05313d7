"""The app under test: a function, an agent with `respond`, or an agent of the engine."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, get_args

from ci_agent_eval.authoring.simulation.awaiting import await_if_needed, get_engine_fixture
from ci_agent_eval.authoring.simulation.message_files import MessageFile
from ci_agent_eval.authoring.simulation.result import History
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.contract.stops import Stop, StopReason, find_stop_cause
from ci_agent_eval.contract.trajectory import TokenUsage, ToolCall, Turn, is_finish_reason
from ci_agent_eval.engine.adapters.frameworks.registry import find_framework
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder, Reply, TurnRecorder

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent


class AppRequest(NamedTuple):
    """A message to the app."""

    message: str | None
    """None: the agent speaks without a new message of the user."""
    history: History
    """The conversation with the message and all that was put into it."""
    unanswered: int = 0
    """Place in the history of the first message since the app's last answer."""
    files: tuple[MessageFile, ...] = ()
    """The files of the message."""


AskApp: TypeAlias = Callable[[AppRequest], Coroutine[Any, Any, Reply]]


class AppAsker(NamedTuple):
    """The function that asks an app, and how the app gets injected messages."""

    ask: AskApp
    takes_messages: bool
    takes_files: bool
    name: str

    def require_messages(self) -> None:
        """Raise InputError if injected messages cannot reach the app."""
        if not self.takes_messages:
            raise InputError(
                f"run_simulation: injected messages cannot reach {self.name}; let it take a "
                "parameter `messages` (the conversation), or give a declared Agent"
            )

    def require_files(self) -> None:
        """Raise InputError if files of the user cannot reach the app."""
        if not self.takes_files:
            raise InputError(
                f"files of a message cannot reach {self.name}; let it take a parameter `files`, "
                "or give a declared Agent"
            )


def build_asker(
    app: object, thread_id: str, kwargs: Mapping[str, Any], recorder: EpisodeRecorder | None
) -> AppAsker:
    """Return the asker of an app, which records each turn. Raises InputError."""
    name = f"a {type(app).__name__}"
    if is_engine_agent(app):
        from ci_agent_eval.engine.run import has_message_history  # noqa: PLC0415 - an extra

        takes_messages = has_message_history(app)
        engine_ask = _build_engine_asker(app, kwargs, recorder, takes_messages=takes_messages)
        return AppAsker(engine_ask, takes_messages, takes_messages, name)
    respond = getattr(app, "respond", None)
    call = respond if callable(respond) else app
    if not callable(call):
        kind = type(app).__name__
        raise InputError(
            f"run_simulation: a {kind} is not an app; give a function app(message, *, thread_id), "
            "an agent with respond(message), or an agent of the engine"
        )
    given = {**({"thread_id": thread_id} if accepts_thread_id(call) else {}), **kwargs}
    takes_messages, takes_files = (
        has_parameter(call, name) and name not in kwargs for name in ("messages", "files")
    )

    async def ask(request: AppRequest) -> Reply:
        options = dict(given)
        if takes_messages:
            options["messages"] = request.history
        if takes_files:
            options["files"] = request.files
        text = "" if request.message is None else request.message
        return await _ask_and_record(lambda: call(text, **options), request, recorder)

    return AppAsker(ask, takes_messages, takes_files, name)


def is_engine_agent(app: object) -> bool:
    """Return whether the app is an agent or adapter of the engine, or of a framework."""
    if hasattr(app, "answer") and hasattr(app, "label"):
        return True
    modules = [kind.__module__ for kind in type(app).__mro__]
    is_own = any(module.startswith("ci_agent_eval.engine.") for module in modules)
    return is_own or find_framework(app) is not None


def accepts_thread_id(call: Callable[..., Any]) -> bool:
    """Return whether an app accepts a `thread_id`."""
    try:
        parameters = inspect.signature(call).parameters
    except (TypeError, ValueError):
        return True
    named = parameters.get("thread_id")
    if named is not None:
        return named.kind is not named.POSITIONAL_ONLY
    return any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def has_parameter(call: Callable[..., Any], name: str) -> bool:
    """Return whether a function names a parameter, which can be given by keyword."""
    try:
        parameter = inspect.signature(call).parameters.get(name)
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.kind in {
        parameter.KEYWORD_ONLY,
        parameter.POSITIONAL_OR_KEYWORD,
    }


async def _ask_and_record(
    call: Callable[[], Any], request: AppRequest, recorder: EpisodeRecorder | None
) -> Reply:
    """Ask once. Exceptions of the app are raised here; the turn so far is kept."""
    if recorder is None:
        return _allow_stops(parse_reply(await await_if_needed(call())), frozenset())
    attachments = [file.attachment for file in request.files]
    with recorder.turn(request.message, attachments) as turn:
        try:
            returned = await await_if_needed(call())
        except BaseException as error:
            turn.record_error(error)
            raise
        reply = parse_reply(returned)
        record_reply(reply, turn)
    return _allow_stops(reply, recorder.allowed_stops)


def _allow_stops(reply: Reply, allowed_stops: Collection[str]) -> Reply:
    """Return the reply; refusals and allowed stops do not end the conversation."""
    if reply.stop_reason == "refusal" or reply.stop_reason in allowed_stops:
        return replace(reply, stop_reason="completed")
    return reply


def _build_engine_asker(
    agent: object,
    kwargs: Mapping[str, Any],
    recorder: EpisodeRecorder | None,
    *,
    takes_messages: bool,
) -> AskApp:
    """Return a function that asks through the fixture `aitest_run`, which records the turns."""
    run = get_engine_fixture(f"run_simulation: an agent of the engine ({type(agent).__name__})")
    messages: Any = None

    async def ask(request: AppRequest) -> Reply:
        nonlocal messages
        prompt, injected = split_injected(request)
        if injected or prompt is None:
            if not takes_messages:
                raise InputError(
                    f"run_simulation: a {type(agent).__name__} answers the user's messages only; "
                    "begin with a user's step, or give a declared Agent"
                )
            from ci_agent_eval.engine import message_history  # noqa: PLC0415 - an extra

            if messages is None and injected:
                prompt_read = message_history.read_system_prompt(agent)
                messages = await await_if_needed(prompt_read)
            messages = [*(messages or ()), *message_history.build_messages(injected)]
            if prompt is None and request.files:
                raise InputError("run_simulation: let an AgentStep follow a message with files")
            if prompt is None and recorder is not None:
                _record_message(request.message, recorder)
        sent: Any = prompt or ""
        if request.files:
            from ci_agent_eval.engine.message_history import build_prompt  # noqa: PLC0415 - an extra

            sent = build_prompt(sent, [(file.data, file.media_type) for file in request.files])
        result = await await_if_needed(run(agent, sent, messages=messages, **kwargs))
        messages = result.messages
        is_stopped = result.outcome != "passed" and result.stop_reason != "refusal"
        stop_reason: StopReason = result.stop_reason if is_stopped else "completed"
        return Reply(result.final_response, stop_reason=stop_reason, error=result.error)

    return ask


def _record_message(message: str | None, recorder: EpisodeRecorder) -> None:
    """Record a message of the user that is no prompt, because others follow it."""
    if message is not None:
        turn = Turn(role="user", content=clean_text(message))
        recorder.recorded_turns.add_run((turn,), ())


def split_injected(request: AppRequest) -> tuple[str | None, History]:
    """Return the prompt, and the messages since the last answer that go before it.

    If messages follow the user's, the prompt is None, and the user's message is among them.
    """
    new = request.history[request.unanswered :]
    if request.message is None or not new:
        return request.message, new
    *before, last = new
    is_prompt = last == {"role": "user", "content": request.message}
    return (request.message, before) if is_prompt else (None, new)


_TEXT = ("text", "content", "output")
_CALLS = ("tool_calls", "calls")
_TOKENS = ("usage", "tokens", "usage_metadata")
_COUNTS = {
    "input": ("input", "input_tokens", "prompt_tokens"),
    "output": ("output", "output_tokens", "completion_tokens"),
    "cached": ("cached", "cached_tokens", "cache_read_tokens"),
}
_TOTAL = ("total", "total_tokens")


def record_reply(reply: Reply, turn: TurnRecorder) -> None:
    """Record a parsed reply in the open turn. Raises InputError for invalid figures."""
    for call in reply.tool_calls:
        turn.tool_call(**dict(call))
    turn.reply(
        reply.text,
        tokens=reply.usage,
        cost_usd=reply.cost_usd,
        source=reply.source,
        finish_reason=reply.finish_reason,
        stop=reply.stop,
    )


def parse_reply(returned: object) -> Reply:
    """Parse an agent's return value. Raises InputError if it contains no text."""
    if isinstance(returned, str):
        return _add_stop(Reply(returned), _find_reply_stop(returned, (), None))
    text, calls = _get_first(returned, *_TEXT), _parse_tool_calls(returned)
    if text is None and calls:
        text = ""  # an agent may call tools without a text
    if not isinstance(text, str):
        raise InputError(
            f"the agent returned a {type(returned).__name__} without a text; return a text, or "
            "something with `text` (and tool_calls, usage, cost_usd where it has them)"
        )
    finish_reason = _get_finish_reason(returned)
    reply = Reply(
        text,
        calls,
        _parse_tokens(_get_first(returned, *_TOKENS)),
        _get_first(returned, "cost_usd"),
        finish_reason=finish_reason,
        source=_get_first(returned, "source") or "live",
    )
    stop = _get_stop_cause(returned) or _find_reply_stop(text, calls, finish_reason)
    return _add_stop(reply, stop)


def _add_stop(reply: Reply, stop: Stop | None) -> Reply:
    return reply if stop is None else replace(reply, stop_reason=stop.reason, error=stop.error)


def _get_stop_cause(returned: object) -> Stop | None:
    """Return the agent's `stop_reason`; None for other values, which are the model's."""
    reason = _get_first(returned, "stop_reason")
    if reason == "completed" or reason not in get_args(StopReason):
        return None
    error = _get_first(returned, "error")
    return Stop(reason, str(error or ""))


def _get_finish_reason(returned: object) -> str | None:
    """Return why the model stopped; Anthropic's messages call it `stop_reason`."""
    reason = _get_first(returned, "finish_reason")
    stop = _get_first(returned, "stop_reason")
    chosen = stop if reason is None and is_finish_reason(stop) else reason
    return clean_text(chosen) if isinstance(chosen, str) else None


def _find_reply_stop(
    text: str, calls: tuple[Mapping[str, Any], ...], finish_reason: str | None
) -> Stop | None:
    """Return why a reply is no answer; None if it is one."""
    made = tuple(ToolCall(name=clean_text(call["name"])) for call in calls)
    turn = Turn(
        role="assistant",
        content=clean_text(text),
        tool_calls=made,
        finish_reason=finish_reason,
    )
    return find_stop_cause(turn)


def _parse_tool_calls(returned: object) -> tuple[Mapping[str, Any], ...]:
    given = _get_first(returned, *_CALLS)
    if given is None:
        return ()
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InputError(
            f"the agent's tool_calls are a {type(given).__name__}; return a list of calls"
        )
    return tuple(_parse_tool_call(call) for call in given)


def _parse_tool_call(call: object) -> Mapping[str, Any]:
    inner = _get_first(call, "function") or call
    name = _get_first(inner, "name")
    if not isinstance(name, str):
        raise InputError(
            f"a tool call of the agent's ({type(call).__name__}) has no name; give each a name"
        )
    kept = {key: _get_first(call, key) for key in ("result", "error", "id", "duration_ms")}
    return {
        "name": name,
        "arguments": _parse_arguments(_get_first(inner, "arguments", "args")),
        **kept,
    }


def _parse_arguments(given: object) -> Any:
    """Return the arguments of a call; OpenAI's are the text of a JSON object."""
    if isinstance(given, str) and given.lstrip().startswith("{"):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            return given  # invalid JSON of a model is kept as text
    return given


def _parse_tokens(given: Any) -> int | TokenUsage | Mapping[str, int] | None:
    """Parse token usage; None without a total and without both input and output."""
    given = given() if callable(given) else given
    if given is None or isinstance(given, int | TokenUsage):
        return given
    counts = {name: _get_first(given, *names) for name, names in _COUNTS.items()}
    if counts["cached"] is None:
        counts["cached"] = _get_first(_get_first(given, "prompt_tokens_details"), "cached_tokens")
    known = {name: count for name, count in counts.items() if count is not None}
    total = _get_first(given, *_TOTAL)
    if not known and total is None:
        raise InputError(
            f"the agent's usage is a {type(given).__name__} without input and output; return "
            '{"input": ..., "output": ...}, or None where it was not measured'
        )
    return known if {"input", "output"} <= known.keys() else _complete_from_total(known, total)


def _complete_from_total(known: Mapping[str, int], total: Any) -> Mapping[str, int] | None:
    """Compute missing input or output tokens from the total; None without a total."""
    if not isinstance(total, int):
        return None
    present, missing = ("output", "input") if "output" in known else ("input", "output")
    count = known.get(present, 0)
    # The recorder refuses a value that is no number.
    return {**known, missing: total - count} if isinstance(count, int) else known


def _get_first(returned: object, *names: str) -> Any:
    for name in names:
        value = (
            returned.get(name) if isinstance(returned, Mapping) else getattr(returned, name, None)
        )
        if value is not None:
            return value
    return None
