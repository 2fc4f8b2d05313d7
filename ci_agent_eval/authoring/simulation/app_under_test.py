"""The app under test: a function, an agent with `respond`, or an agent of the engine."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from ci_agent_eval.authoring.simulation.awaiting import await_if_needed
from ci_agent_eval.authoring.simulation.conversation import History
from ci_agent_eval.authoring.simulation.episode_access import get_engine_fixture
from ci_agent_eval.authoring.simulation.message_files import MessageFile
from ci_agent_eval.authoring.simulation.replies import parse_reply, record_reply
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.contract.stops import StopReason
from ci_agent_eval.contract.trajectory import Turn
from ci_agent_eval.engine.adapters.frameworks.registry import find_framework
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder, Reply

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
            f"run_simulation: a {kind} is no app; give a function app(message, *, thread_id), "
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
