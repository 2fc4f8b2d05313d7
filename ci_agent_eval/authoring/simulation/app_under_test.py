"""The app under test: a function, an agent with `respond`, or an agent of the engine."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeAlias

from ci_agent_eval.authoring.simulation.episode_access import get_engine_fixture
from ci_agent_eval.authoring.simulation.replies import AgentReply, parse_reply
from ci_agent_eval.authoring.simulation.steps import Steps, await_if_needed
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.contract.stops import StopCause
from ci_agent_eval.engine.adapters.frameworks.registry import find_framework
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder
from ci_agent_eval.recording.playback import EpisodePlayback

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent


class AppAnswer(NamedTuple):
    """The app's reply, or why its run stopped without an answer."""

    text: str
    stop: StopCause | None = None


AskApp: TypeAlias = Callable[[str], Steps[AppAnswer]]


def build_asker(
    app: object, thread_id: str, kwargs: Mapping[str, Any], recorder: EpisodeRecorder | None
) -> AskApp:
    """Return a function that asks an app, and records each turn. Raises InputError."""
    if is_engine_agent(app):
        return _build_engine_asker(app, kwargs)
    if recorder is not None and (playback := recorder.playback) is not None:
        return lambda message: _play_and_record(message, recorder, playback)
    respond = getattr(app, "respond", None)
    call = respond if callable(respond) else app
    if not callable(call):
        kind = type(app).__name__
        raise InputError(
            f"run_simulation: a {kind} is no app; give a function app(message, *, thread_id), "
            "an agent with respond(message), or an agent of the engine"
        )
    given = {**({"thread_id": thread_id} if accepts_thread_id(call) else {}), **kwargs}
    return lambda message: _ask_and_record(lambda: call(message, **given), message, recorder)


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


def _ask_and_record(
    call: Callable[[], Any], message: str, recorder: EpisodeRecorder | None
) -> Steps[AppAnswer]:
    """Ask once. Exceptions of the app are raised here; the turn so far is kept."""
    if recorder is None:
        return _build_answer(parse_reply((yield from await_if_needed(call()))), frozenset())
    with recorder.turn(message) as turn:
        try:
            returned = yield from await_if_needed(call())
        except BaseException as error:
            turn.record_error(error)
            raise
        reply = parse_reply(returned)
        reply.record(turn)
    return _build_answer(reply, recorder.allowed_stops)


def _play_and_record(
    message: str, recorder: EpisodeRecorder, playback: EpisodePlayback
) -> Steps[AppAnswer]:
    """Answer with the next recorded answer; the app is not asked."""
    yield from ()
    answer = playback.take_answer(clean_text(message))
    recorder.record_run(answer.turns, stop_reason=answer.stop_reason)
    return AppAnswer(answer.text)


def _build_answer(reply: AgentReply, allowed_stops: Collection[str]) -> AppAnswer:
    """Build the answer; refusals and allowed stops do not end the conversation."""
    stop = reply.stop
    if stop is None or stop.reason == "refusal" or stop.reason in allowed_stops:
        return AppAnswer(reply.text)
    return AppAnswer(reply.text, stop)


def _build_engine_asker(agent: object, kwargs: Mapping[str, Any]) -> AskApp:
    """Return a function that asks through the fixture `aitest_run`, which records the turns."""
    run = get_engine_fixture(f"run_simulation: an agent of the engine ({type(agent).__name__})")
    messages: Any = None

    def ask(message: str) -> Steps[AppAnswer]:
        nonlocal messages
        result = yield run(agent, message, messages=messages, **kwargs)
        messages = result.messages
        is_stopped = result.outcome != "passed" and result.stop_reason != "refusal"
        stop = StopCause(result.stop_reason, result.error) if is_stopped else None
        return AppAnswer(result.final_response, stop)

    return ask
