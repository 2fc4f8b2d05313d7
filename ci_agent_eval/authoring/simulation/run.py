"""`run_simulation`: a simulated user talks to an app until something ends it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ci_agent_eval.authoring.simulation.app_under_test import AppAnswer, AskApp, build_asker
from ci_agent_eval.authoring.simulation.conversation import (
    History,
    SimulationExchange,
    SimulationStop,
    UserMessage,
    build_history,
    parse_user_message,
)
from ci_agent_eval.authoring.simulation.episode_access import get_active_recorder, run_awaitable
from ci_agent_eval.authoring.simulation.result import SimulationResult
from ci_agent_eval.authoring.simulation.script import SimulationEnd
from ci_agent_eval.authoring.simulation.steps import Steps, await_if_needed, run_or_defer_steps
from ci_agent_eval.authoring.simulation.user import UserSession, open_user_session
from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

DEFAULT_MAX_TURNS = 5
"""Exchanges of a conversation, as Opik's."""

METADATA = "simulations"
"""Key of an episode's metadata that lists its simulations."""

Predicate: TypeAlias = Callable[[History], Any]
"""Looks at the conversation so far, plain or async; what it returns is taken for yes or no."""

_THREADS = uuid.uuid5(uuid.NAMESPACE_URL, "https://ci-agent-eval.invalid/threads")


def run_simulation(  # noqa: PLR0917 - the positions are Opik's
    app: Any,
    user_simulator: Any,
    initial_message: str | None = None,
    max_turns: int = DEFAULT_MAX_TURNS,
    thread_id: str | None = None,
    project_name: str | None = None,
    tags: Iterable[str] | None = None,
    *,
    stop_when: Predicate | None = None,
    goal: Predicate | None = None,
    **app_kwargs: Any,
) -> SimulationResult:
    """Let a simulated user talk to an app; return the conversation and why it ended.

    In a plain test it returns when the conversation has ended; in an async one `await` it.

    `app` is a function `app(message, *, thread_id, **app_kwargs)`, an agent with
    `respond(message)`, both plain or async, or an agent of the engine. The user speaks
    first, with `initial_message` where one is given. `max_turns` counts exchanges: a
    message of the user and the reply to it. After each reply `goal` and then `stop_when`
    are asked whether that was all. What the app raises is raised here.

    In an episode every exchange is recorded as a turn, and how it ended in the metadata.
    A thread id that is not given follows from the episode, so that it is the same at every
    run; outside of one it is random.

    Raises InputError for what cannot be used, and SimulatedUserError where the model that
    speaks for the user fails.
    """
    steps = simulate_conversation(
        app,
        user_simulator,
        SimulationPlan(
            initial_message=initial_message,
            max_turns=max_turns,
            thread_id=thread_id,
            project_name=project_name,
            tags=tuple(tags or ()),
            stop_when=stop_when,
            goal=goal,
            app_kwargs=app_kwargs,
        ),
    )
    return run_or_defer_steps("run_simulation", steps, run_awaitable)


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """How a simulation is to run; as the arguments of `run_simulation`."""

    initial_message: str | None = None
    max_turns: int = DEFAULT_MAX_TURNS
    thread_id: str | None = None
    project_name: str | None = None
    tags: tuple[str, ...] = ()
    stop_when: Predicate | None = None
    goal: Predicate | None = None
    app_kwargs: dict[str, Any] = field(default_factory=dict)

    def replaced(self, **values: Any) -> SimulationPlan:
        """Return the plan with other values."""
        return replace(self, **values)

    def __post_init__(self) -> None:
        turns = self.max_turns
        if isinstance(turns, bool) or not isinstance(turns, int) or turns < 1:
            raise InputError(
                f"run_simulation: max_turns must be a whole number, 1 or more, got {turns!r}"
            )
        if not isinstance(self.initial_message, str | None):
            raise InputError(
                f"run_simulation: initial_message must be a text, got {self.initial_message!r}"
            )


def simulate_conversation(app: Any, user: Any, plan: SimulationPlan) -> Steps[SimulationResult]:
    """Run a simulation as steps; see `run_simulation`."""
    recorder = get_active_recorder()
    thread_id = plan.thread_id or build_thread_id(recorder)
    if recorder is not None:
        recorder.thread_id = recorder.thread_id or thread_id
    talk = _RunningSimulation(
        plan, open_user_session(user), build_asker(app, thread_id, plan.app_kwargs, recorder)
    )
    try:
        stop = yield from talk.to_the_end()
    except BaseException as error:
        error.add_note(f"in turn {talk.turn} of the simulation")
        _record_simulation(recorder, talk, talk.record(thread_id, error=type(error).__name__))
        raise
    _record_simulation(
        recorder, talk, talk.record(thread_id, stop_reason=stop.reason, detail=stop.detail)
    )
    return SimulationResult(
        thread_id=thread_id,
        exchanges=tuple(talk.exchanges),
        stop_reason=stop.reason,
        project_name=plan.project_name,
        tags=plan.tags,
        user=talk.voice.usage,
        detail=stop.detail,
    )


@dataclass
class _RunningSimulation:
    """A conversation that is going on."""

    plan: SimulationPlan
    voice: UserSession
    ask: AskApp
    exchanges: list[SimulationExchange] = field(default_factory=list)
    turn: int = 1
    """The exchange that is going on, or was looked at last."""

    def to_the_end(self) -> Steps[SimulationEnd]:
        """Go from exchange to exchange; return why it ended."""
        said = yield from self._first()
        while isinstance(said, UserMessage):
            if said.last and not said.text:
                return SimulationEnd("stop_token")
            answer = yield from self.ask(said.text)
            self.exchanges.append(SimulationExchange(said.text, answer.text))
            stop = yield from self._stop(answer, said)
            if stop is not None:
                return stop
            self.turn += 1
            said = yield from self.voice.say(self._history())
        return said

    def record(self, thread_id: str, **ending: str | None) -> dict[str, Any]:
        """Return what an episode's metadata keeps of it."""
        kept = {
            "thread_id": thread_id,
            **ending,
            "turns": len(self.exchanges),
            "tags": list(self.plan.tags) or None,
            "project_name": self.plan.project_name,
        }
        return {name: to_jsonable(value) for name, value in kept.items() if value is not None}

    def _first(self) -> Steps[UserMessage | SimulationEnd]:
        if self.plan.initial_message is not None:
            return parse_user_message(self.plan.initial_message, self.voice.stop_token)
        return (yield from self.voice.say([]))

    def _stop(self, answer: AppAnswer, said: UserMessage) -> Steps[SimulationEnd | None]:
        """Say whether that was the last exchange; the goal is asked first, the count last."""
        if answer.stopped is not None:
            return SimulationEnd("agent_stopped", answer.stopped.sentence)
        predicates: tuple[tuple[SimulationStop, Predicate | None], ...] = (
            ("goal_reached", self.plan.goal),
            ("stop_when", self.plan.stop_when),
        )
        for reason, holds in predicates:
            if holds is not None and (yield from await_if_needed(holds(self._history()))):
                return SimulationEnd(reason)
        if said.last:
            return SimulationEnd("stop_token")
        return SimulationEnd("max_turns") if len(self.exchanges) >= self.plan.max_turns else None

    def _history(self) -> History:
        """Return the conversation so far; a new list at each call, which nobody else holds."""
        return build_history(self.exchanges)


def find_max_turns(budgets: Budgets) -> int:
    """Return the exchanges that a conversation may have by its budget; 5 without one."""
    return DEFAULT_MAX_TURNS if budgets.max_turns is None else max(1, int(budgets.max_turns.limit))


def build_thread_id(recorder: EpisodeRecorder | None) -> str:
    """Return the thread of a simulation that was given none.

    In an episode it follows from scenario, iteration, attempt and how many simulations
    the episode had before; runs and workers do not show.
    """
    if recorder is None:
        return str(uuid.uuid4())
    if recorder.thread_id is not None and not _get_recorded_simulations(recorder):
        return recorder.thread_id
    number = len(_get_recorded_simulations(recorder)) + 1
    name = f"{recorder.scenario_id}\n{recorder.iteration}\n{recorder.attempt}\n{number}"
    return str(uuid.uuid5(_THREADS, name.encode("utf-8", "surrogatepass").hex()))


def _get_recorded_simulations(recorder: EpisodeRecorder) -> list[Any]:
    noted = recorder.metadata.get(METADATA)
    return noted if isinstance(noted, list) else []


def _record_simulation(
    recorder: EpisodeRecorder | None, talk: _RunningSimulation, record: dict[str, Any]
) -> None:
    """Keep how a simulation ended in the episode's metadata; tests may own the key."""
    usage = talk.voice.usage
    if recorder is not None and usage.calls:
        recorder.record_simulated_user(usage.calls, usage.tokens, usage.cost_usd)
    if recorder is not None and isinstance(recorder.metadata.setdefault(METADATA, []), list):
        recorder.metadata[METADATA].append(record)
