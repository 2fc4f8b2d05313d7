"""The app under test, whatever it is: a function, an agent that responds, an engine agent."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeAlias

from ci_agent_eval.authoring.simulation.replies import Reply, read_reply
from ci_agent_eval.authoring.simulation.running import engine_runs
from ci_agent_eval.authoring.simulation.steps import Steps, settled
from ci_agent_eval.contract.stops import StopCause
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent


class Answer(NamedTuple):
    """What the app replied; `stopped` says why its run ended without an answer of its own."""

    text: str
    stopped: StopCause | None = None


Ask: TypeAlias = Callable[[str], Steps[Answer]]


def ask_of(
    app: object, thread_id: str, kwargs: Mapping[str, Any], recorder: EpisodeRecorder | None
) -> Ask:
    """Return how to ask an app; each exchange is recorded as a turn. Raises InputError."""
    if is_engine_agent(app):
        return _engine_ask(app, kwargs)
    respond = getattr(app, "respond", None)
    call = respond if callable(respond) else app
    if not callable(call):
        kind = type(app).__name__
        raise InputError(
            f"run_simulation: a {kind} is no app; give a function app(message, *, thread_id), "
            "an agent with respond(message), or an agent of the engine"
        )
    given = {**({"thread_id": thread_id} if takes_thread_id(call) else {}), **kwargs}
    return lambda message: _exchange(lambda: call(message, **given), message, recorder)


def is_engine_agent(app: object) -> bool:
    """Say whether the engine runs it: declared there, an adapter of its, or PydanticAI's."""
    if hasattr(app, "answer") and hasattr(app, "label"):
        return True
    homes = [kind.__module__ for kind in type(app).__mro__]
    return any(home.startswith(("ci_agent_eval.engine.", "pydantic_ai.")) for home in homes)


def takes_thread_id(call: Callable[..., Any]) -> bool:
    """Say whether an app can be told the thread; one that cannot is asked without."""
    try:
        parameters = inspect.signature(call).parameters
    except (TypeError, ValueError):
        return True
    named = parameters.get("thread_id")
    if named is not None:
        return named.kind is not named.POSITIONAL_ONLY
    return any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _exchange(
    call: Callable[[], Any], message: str, recorder: EpisodeRecorder | None
) -> Steps[Answer]:
    """Ask once. Whatever the app raises is raised here; the turn so far is kept."""
    if recorder is None:
        return _answer(read_reply((yield from settled(call()))), frozenset())
    with recorder.turn(message) as turn:
        try:
            said = yield from settled(call())
        except BaseException as error:
            turn.record_error(error)
            raise
        reply = read_reply(said)
        reply.record(turn)
    return _answer(reply, recorder.allowed_stops)


def _answer(reply: Reply, allowed_stops: Collection[str]) -> Answer:
    """Return the answer; after a refusal, and after an end that is allowed, it goes on."""
    stop = reply.stop
    if stop is None or stop.reason == "refusal" or stop.reason in allowed_stops:
        return Answer(reply.text)
    return Answer(reply.text, stop)


def _engine_ask(agent: object, kwargs: Mapping[str, Any]) -> Ask:
    """Ask through the fixture `aitest_run`, which records the turns itself."""
    runs = engine_runs(f"run_simulation: an agent of the engine ({type(agent).__name__})")
    messages: Any = None

    def ask(message: str) -> Steps[Answer]:
        nonlocal messages
        result = yield runs(agent, message, messages=messages, **kwargs)
        messages = result.messages
        broke_off = result.outcome != "passed" and result.stop_reason != "refusal"
        stopped = StopCause(result.stop_reason, result.error) if broke_off else None
        return Answer(result.final_response, stopped)

    return ask
