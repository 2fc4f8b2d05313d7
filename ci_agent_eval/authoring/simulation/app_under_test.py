"""The app under test, whatever it is: a function, an agent that responds, an engine agent."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeAlias

from ci_agent_eval.authoring.simulation.episode_access import get_engine_fixture
from ci_agent_eval.authoring.simulation.replies import AgentReply, parse_reply
from ci_agent_eval.authoring.simulation.steps import Steps, await_if_needed
from ci_agent_eval.contract.stops import StopCause
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent


class AppAnswer(NamedTuple):
    """What the app replied; `stopped` says why its run ended without an answer of its own."""

    text: str
    stopped: StopCause | None = None


AskApp: TypeAlias = Callable[[str], Steps[AppAnswer]]


def build_asker(
    app: object, thread_id: str, kwargs: Mapping[str, Any], recorder: EpisodeRecorder | None
) -> AskApp:
    """Return how to ask an app; each exchange is recorded as a turn. Raises InputError."""
    if is_engine_agent(app):
        return _build_engine_asker(app, kwargs)
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
    """Say whether the engine runs it: declared there, an adapter of its, or PydanticAI's."""
    if hasattr(app, "answer") and hasattr(app, "label"):
        return True
    homes = [kind.__module__ for kind in type(app).__mro__]
    return any(home.startswith(("ci_agent_eval.engine.", "pydantic_ai.")) for home in homes)


def accepts_thread_id(call: Callable[..., Any]) -> bool:
    """Say whether an app can be told the thread; one that cannot is asked without."""
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
    """Ask once. Whatever the app raises is raised here; the turn so far is kept."""
    if recorder is None:
        return _build_answer(parse_reply((yield from await_if_needed(call()))), frozenset())
    with recorder.turn(message) as turn:
        try:
            said = yield from await_if_needed(call())
        except BaseException as error:
            turn.record_error(error)
            raise
        reply = parse_reply(said)
        reply.record(turn)
    return _build_answer(reply, recorder.allowed_stops)


def _build_answer(reply: AgentReply, allowed_stops: Collection[str]) -> AppAnswer:
    """Return the answer; after a refusal, and after an end that is allowed, it goes on."""
    stop = reply.stop
    if stop is None or stop.reason == "refusal" or stop.reason in allowed_stops:
        return AppAnswer(reply.text)
    return AppAnswer(reply.text, stop)


def _build_engine_asker(agent: object, kwargs: Mapping[str, Any]) -> AskApp:
    """Ask through the fixture `aitest_run`, which records the turns itself."""
    runs = get_engine_fixture(f"run_simulation: an agent of the engine ({type(agent).__name__})")
    messages: Any = None

    def ask(message: str) -> Steps[AppAnswer]:
        nonlocal messages
        result = yield runs(agent, message, messages=messages, **kwargs)
        messages = result.messages
        broke_off = result.outcome != "passed" and result.stop_reason != "refusal"
        stopped = StopCause(result.stop_reason, result.error) if broke_off else None
        return AppAnswer(result.final_response, stopped)

    return ask
