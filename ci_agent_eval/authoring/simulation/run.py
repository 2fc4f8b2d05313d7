"""`run_simulation`: a simulated user talks to an app until the conversation ends."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from ci_agent_eval.authoring.simulation.app_under_test import build_asker
from ci_agent_eval.authoring.simulation.awaiting import await_if_needed, run_or_defer
from ci_agent_eval.authoring.simulation.conversation import STOP_TOKEN
from ci_agent_eval.authoring.simulation.episode_access import get_active_recorder
from ci_agent_eval.authoring.simulation.judge import ConversationJudge
from ci_agent_eval.authoring.simulation.plan import DEFAULT_MAX_TURNS, Predicate, SimulationPlan
from ci_agent_eval.authoring.simulation.result import SimulationResult
from ci_agent_eval.authoring.simulation.running import RunningSimulation
from ci_agent_eval.authoring.simulation.script_steps import (
    Step,
    has_files,
    has_injection,
    needs_user,
)
from ci_agent_eval.authoring.simulation.user import UserSession, open_user_session
from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

METADATA = "simulations"
"""Key of an episode's metadata that lists its simulations."""

_THREADS = uuid.uuid5(uuid.NAMESPACE_URL, "https://ci-agent-eval.invalid/threads")


def run_simulation(  # noqa: PLR0917 - the positions are Opik's
    app: Any,
    user_simulator: Any = None,
    initial_message: str | None = None,
    max_turns: int = DEFAULT_MAX_TURNS,
    thread_id: str | None = None,
    project_name: str | None = None,
    tags: Iterable[str] | None = None,
    *,
    stop_when: Predicate | None = None,
    goal: Predicate | None = None,
    steps: Sequence[Step] | None = None,
    judge: ConversationJudge | None = None,
    **app_kwargs: Any,
) -> SimulationResult:
    """Let a simulated user talk to an app; return the conversation and why it ended.

    In a sync test it returns when the conversation has ended; in an async one `await` it.

    `app` is a function `app(message, *, thread_id, **app_kwargs)`, an agent with
    `respond(message)`, both sync or async, or an agent of the engine. The user begins, with
    `initial_message` if given. `max_turns` limits the exchanges: a message of the user and the
    reply to it. After each reply, `goal`, `stop_when` and the `judge` can end the conversation;
    the judge's verdict is an assertion of the episode. `steps` are a script of the conversation,
    which may begin with the agent; only their ProceedSteps are limited by `max_turns`.
    Exceptions of the app are raised here.

    In an episode every exchange is recorded as a turn, and the stop reason in the metadata.
    The default thread id is derived from the episode, so that it is the same in every run;
    outside of an episode it is random.

    Raises InputError for invalid arguments, and SimulatedUserError if the user's model fails.
    """
    running = simulate_conversation(
        app,
        user_simulator,
        SimulationPlan(
            initial_message=initial_message,
            max_turns=max_turns,
            thread_id=thread_id,
            project_name=project_name,
            tags=_list_tags(tags),
            stop_when=stop_when,
            goal=goal,
            steps=steps,
            judge=judge,
            app_kwargs=app_kwargs,
        ),
    )
    return run_or_defer("run_simulation", running)


class Simulation:
    """The fixture `simulation`: `run_simulation`, bound to the test's episode."""

    def __init__(self, recorder: EpisodeRecorder) -> None:
        self._recorder = recorder

    def __call__(  # noqa: PLR0917 - as `run_simulation`
        self,
        app: Any,
        user_simulator: Any = None,
        initial_message: str | None = None,
        max_turns: int | None = None,
        thread_id: str | None = None,
        project_name: str | None = None,
        tags: Iterable[str] | None = None,
        **options: Any,
    ) -> SimulationResult:
        """Run a simulation with `run_simulation`; in an async test `await` it.

        `max_turns` defaults to the limit of the episode's budget `max_turns`, or 5.
        """
        limit = find_max_turns(self._recorder.budgets) if max_turns is None else max_turns
        return run_simulation(
            app, user_simulator, initial_message, limit, thread_id, project_name, tags, **options
        )


def _list_tags(tags: Iterable[str] | None) -> tuple[str, ...]:
    """Return the tags; a text would be a list of letters. Raises InputError."""
    if isinstance(tags, str) or not isinstance(tags, Iterable | None):
        raise InputError(f"run_simulation: tags must be a list of texts, got {tags!r}")
    return tuple(tags or ())


async def simulate_conversation(app: Any, user: Any, plan: SimulationPlan) -> SimulationResult:
    """Run a simulation; see `run_simulation`."""
    recorder = get_active_recorder()
    thread_id = plan.thread_id or build_thread_id(recorder)
    if recorder is not None:
        recorder.thread_id = recorder.thread_id or thread_id
    asker = build_asker(app, thread_id, plan.app_kwargs, recorder)
    if has_injection(plan.steps or ()):
        asker.require_messages()
    if has_files(plan.steps or ()):
        asker.require_files()
    running = RunningSimulation(plan, _open_user(user, plan), asker.ask, recorder)
    try:
        end = await running.run()
    except BaseException as error:
        error.add_note(f"in turn {running.turn} of the simulation")
        entry = running.build_record(thread_id, error=type(error).__name__)
        _record_simulation(recorder, running, entry)
        raise
    entry = running.build_record(thread_id, stop_reason=end.reason, detail=end.detail)
    _record_simulation(recorder, running, entry)
    return SimulationResult(
        thread_id=thread_id,
        exchanges=tuple(running.exchanges),
        stop_reason=end.reason,
        project_name=plan.project_name,
        tags=plan.tags,
        user=running.session.usage,
        detail=end.detail,
        verdict=running.verdict,
        messages=tuple(running.history),
    )


def _open_user(user: Any, plan: SimulationPlan) -> UserSession:
    """Open the user's session; a script in which every message is given needs no user."""
    if user is None and plan.steps is not None and not needs_user(plan.steps):
        return UserSession(lambda _, __: await_if_needed(None), STOP_TOKEN)
    return open_user_session(user)


def find_max_turns(budgets: Budgets) -> int:
    """Return the limit of exchanges by the turn budget; the default without one."""
    return DEFAULT_MAX_TURNS if budgets.max_turns is None else max(1, int(budgets.max_turns.limit))


def build_thread_id(recorder: EpisodeRecorder | None) -> str:
    """Return the default thread id of a simulation.

    In an episode it is derived from scenario, iteration, attempt and the number of earlier
    simulations in the episode, but not from the run or the worker.
    """
    if recorder is None:
        return str(uuid.uuid4())
    if recorder.thread_id is not None and not _get_recorded_simulations(recorder):
        return recorder.thread_id
    number = len(_get_recorded_simulations(recorder)) + 1
    name = f"{recorder.scenario_id}\n{recorder.iteration}\n{recorder.attempt}\n{number}"
    return str(uuid.uuid5(_THREADS, name.encode("utf-8", "surrogatepass").hex()))


def _get_recorded_simulations(recorder: EpisodeRecorder) -> list[Any]:
    entries = recorder.metadata.get(METADATA)
    return entries if isinstance(entries, list) else []


def _record_simulation(
    recorder: EpisodeRecorder | None, running: RunningSimulation, entry: dict[str, Any]
) -> None:
    """Add a simulation to the episode's metadata, unless the test uses the key itself."""
    usage = running.session.usage
    if recorder is not None and usage.calls:
        recorder.record_simulated_user(usage)
    if recorder is not None and isinstance(recorder.metadata.setdefault(METADATA, []), list):
        recorder.metadata[METADATA].append(entry)
