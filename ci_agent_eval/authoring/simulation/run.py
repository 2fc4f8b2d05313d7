"""`run_simulation`: a simulated user talks to an app until the conversation ends."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ci_agent_eval.authoring.simulation.app_under_test import AppRequest, AskApp, build_asker
from ci_agent_eval.authoring.simulation.awaiting import (
    await_if_needed,
    get_active_recorder,
    run_or_defer,
)
from ci_agent_eval.authoring.simulation.judge import (
    ConversationJudge,
    JudgeDecision,
    SimulationVerdict,
    apply_checks,
)
from ci_agent_eval.authoring.simulation.result import (
    STOP_TOKEN,
    History,
    SimulationExchange,
    SimulationResult,
    SimulationStop,
    UserMessage,
    copy_history,
)
from ci_agent_eval.authoring.simulation.script import (
    DEFAULT_MAX_TURNS,
    Predicate,
    SimulationEnd,
    SimulationPlan,
)
from ci_agent_eval.authoring.simulation.script_steps import (
    AgentStep,
    CheckStep,
    JudgeStep,
    MessageStep,
    ProceedStep,
    Step,
    ToolResultStep,
    UserStep,
    has_files,
    has_injection,
    needs_user,
)
from ci_agent_eval.authoring.simulation.user import UserSession, open_user_session
from ci_agent_eval.checks import as_check
from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.jsonable import clean_text, to_jsonable
from ci_agent_eval.contract.trajectory import Trajectory, Turn
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder, Reply
from ci_agent_eval.recording.check_value import prefix_names

SentMessage = UserMessage | SimulationEnd


@dataclass
class RunningSimulation:
    """A conversation in progress."""

    plan: SimulationPlan
    session: UserSession
    ask: AskApp
    recorder: EpisodeRecorder | None
    exchanges: list[SimulationExchange] = field(default_factory=list)
    history: History = field(default_factory=list)
    turn: int = 1
    """Number of the current or last exchange, from 1."""
    verdict: SimulationVerdict | None = None
    _pending: UserMessage | None = None
    """The user's message that the agent has not answered."""
    _unanswered: int = 0
    """Place in the history of the first message since the last answer."""
    _turn_start: int = 0
    """Number of recorded turns before the last exchange."""
    _decision: tuple[int, JudgeDecision] | None = None
    """The judge's last decision, with the number of messages that it was made on."""

    async def run(self) -> SimulationEnd:
        """Run the conversation; return why it ended. The judge decides at the latest then."""
        if self.plan.steps is None:
            end = await self._proceed(None, first=self._parse_initial_message())
        else:
            end = await self._run_steps(self.plan.steps)
        end = end or SimulationEnd("script_ended")
        if self.verdict is None and end.reason != "agent_stopped":
            await self._judge(is_over=True)
        return end

    def build_record(self, thread_id: str, **ending: str | None) -> dict[str, Any]:
        """Return the simulation's entry in the episode's metadata."""
        entry = {
            "thread_id": thread_id,
            **ending,
            "turns": len(self.exchanges),
            "tags": list(self.plan.tags) or None,
            "project_name": self.plan.project_name,
        }
        return {name: to_jsonable(value) for name, value in entry.items() if value is not None}

    async def _run_steps(self, steps: Iterable[Step]) -> SimulationEnd | None:
        run: dict[type, Callable[[Any], Coroutine[Any, Any, SimulationEnd | None]]] = {
            UserStep: self._take_user_step,
            AgentStep: lambda _: self._ask_agent(),
            ProceedStep: lambda step: self._proceed(step.turns, limit=self.plan.max_turns),
            MessageStep: self._inject_message,
            ToolResultStep: self._inject_tool_result,
            CheckStep: self._check,
            JudgeStep: lambda _: self._judge(),
        }
        remaining = iter(steps)
        for step in remaining:
            if (end := (await run[type(step)](step))) is not None:
                await self._check_unreached(step, remaining, end)
                return end
        return None

    async def _proceed(
        self, turns: int | None, *, first: UserMessage | None = None, limit: int | None = None
    ) -> SimulationEnd | None:
        """Let user and agent talk for a number of exchanges, or until the end."""
        last = None if turns is None else len(self.exchanges) + turns
        while last is None or len(self.exchanges) < last:
            if limit is not None and len(self.exchanges) >= limit:
                return SimulationEnd("max_turns")
            message: SentMessage = first or (await self._get_message())
            first = None
            end = self._send(message) or (await self._ask_agent())
            if end is not None:
                return end
        return None

    def _parse_initial_message(self) -> UserMessage | None:
        text = self.plan.initial_message
        return None if text is None else self.session.parse_message(text)

    async def _get_message(self) -> SentMessage:
        return await self.session.get_message(copy_history(self.history))

    async def _take_user_step(self, step: UserStep) -> SimulationEnd | None:
        if step.text is None:
            return self._send(await self._get_message())
        message = self.session.parse_message(step.text)
        return self._send(message._replace(files=tuple(step.files)))

    def _send(self, message: SentMessage) -> SimulationEnd | None:
        """Add a user's message, which the agent has to answer; return why there is none."""
        if isinstance(message, SimulationEnd):
            return message
        if message.is_last and not message.text:
            return SimulationEnd("stop_token")
        self._pending = message
        self.history.append({"role": "user", "content": message.text})
        return None

    async def _ask_agent(self) -> SimulationEnd | None:
        """Ask for an answer to the pending message, or for the agent's own first words."""
        message, self._pending = self._pending, None
        self._turn_start = 0 if self.recorder is None else len(self.recorder.turns)
        text, files = (None, ()) if message is None else (message.text, message.files)
        answer = await self.ask(
            AppRequest(text, copy_history(self.history), self._unanswered, files)
        )
        self.exchanges.append(SimulationExchange(text, answer.text))
        self.history.append({"role": "assistant", "content": answer.text})
        self._unanswered = len(self.history)
        end = await self._find_end(answer, message)
        self.turn += end is None
        return end

    async def _find_end(self, answer: Reply, message: UserMessage | None) -> SimulationEnd | None:
        """Return why the conversation ends after this exchange, or None.

        The goal is evaluated first, the limit of exchanges last.
        """
        if answer.stop is not None:
            return SimulationEnd("agent_stopped", answer.stop.sentence)
        predicates: tuple[tuple[SimulationStop, Predicate | None], ...] = (
            ("goal_reached", self.plan.goal),
            ("stop_when", self.plan.stop_when),
        )
        for reason, predicate in predicates:
            if predicate is None:
                continue
            if await await_if_needed(predicate(copy_history(self.history))):
                return SimulationEnd(reason)
        has_judge_steps = any(isinstance(step, JudgeStep) for step in self.plan.steps or ())
        if not has_judge_steps and (end := (await self._judge())) is not None:
            return end
        if message is not None and message.is_last:
            return SimulationEnd("stop_token")
        is_limited = self.plan.steps is None and len(self.exchanges) >= self.plan.max_turns
        return SimulationEnd("max_turns") if is_limited else None

    async def _judge(self, *, is_over: bool = False) -> SimulationEnd | None:
        """Let the judge decide, if there is one; record its verdict."""
        judge = self.plan.judge
        if judge is None:
            return None
        episode = self._snapshot("a judge")
        if self._decision is None or self._decision[0] != len(self.history):
            self._decision = len(self.history), (await judge.decide(episode))
        _, decision = self._decision
        if not (decision.ends_conversation or is_over):
            return None
        self.verdict = decision.verdict
        self._record(decision.assertions, "judge")
        return SimulationEnd("judge_verdict", decision.verdict.reason)

    async def _inject_message(self, step: MessageStep) -> None:
        self.history.append({"role": step.role, "content": step.text})
        self._record_injected(f"injected {step.role} message: {step.text}")

    async def _inject_tool_result(self, step: ToolResultStep) -> None:
        call_id = f"injected-{len(self.history) + 1}"
        arguments = json.dumps(step.arguments or {}, ensure_ascii=False)
        function = {"name": step.tool, "arguments": arguments}
        call = {"id": call_id, "type": "function", "function": function}
        result = step.result
        content = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        self.history += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "content": content},
        ]
        self._record_injected(f"injected result of {step.tool}({arguments}): {content}")

    def _record_injected(self, text: str) -> None:
        if self.recorder is not None:
            turn = Turn(role="system", content=clean_text(text), injected=True)
            self.recorder.recorded_turns.add_run((turn,), ())

    async def _check(self, step: CheckStep) -> None:
        check = as_check(step.check)
        if check is not None:
            episode = self._snapshot("a Check")
            part = episode if step.of == "conversation" else self._select_turn(episode)
            found = await apply_checks((check,), part)
        else:
            result = await await_if_needed(step.check(copy_history(self.history)))
            name = getattr(step.check, "__name__", "check")
            # A lambda cannot assert, so None is its result, such as that of re.search.
            may_be_none = name != "<lambda>"
            if not isinstance(result, bool) and not (result is None and may_be_none):
                kind = type(result).__name__
                raise InputError(f"CheckStep: the function returned a {kind}, not True or False")
            found = [] if result is None else [Assertion(name=clean_text(name), passed=result)]
        self._record(found, f"turn {len(self.exchanges)}" if step.of == "turn" else None)

    async def _check_unreached(self, last: Step, steps: Iterable[Step], end: SimulationEnd) -> None:
        """Check what the script has after its end, so that no check of it is left out.

        `last` is the step that ended it; checks of its turn follow a step of the agent or judge.
        """
        if end.reason == "agent_stopped" or (self.verdict and not self.verdict.passed):
            return  # it has failed
        is_last_turn = isinstance(last, AgentStep | JudgeStep)
        missed = 0
        for step in steps:
            is_last_turn = is_last_turn and isinstance(step, CheckStep | JudgeStep)
            if isinstance(step, CheckStep):
                if is_last_turn or step.of == "conversation":
                    await self._check(step)
                else:
                    missed += 1
        if missed:
            reason = f"it ended ({end.reason}) before {missed} checks of a turn"
            name = "the conversation reaches each check of a turn"
            self._record([Assertion(name=name, passed=False, reason=reason)], None)

    def _select_turn(self, episode: Episode) -> Episode:
        """Return the episode with only the turns of the last exchange."""
        trajectory = episode.trajectory or Trajectory()
        turns = trajectory.turns[self._turn_start :]
        last = trajectory.model_copy(update={"turns": turns})
        return episode.model_copy(update={"trajectory": last})

    def _snapshot(self, owner: str) -> Episode:
        if self.recorder is None:
            raise InputError(
                f"run_simulation: {owner} looks at an episode, and none is running here; call it "
                "in a test with the fixture `episode` or `simulation`"
            )
        return self.recorder.snapshot()

    def _record(self, found: Iterable[Assertion], prefix: str | None) -> None:
        """Record assertions; outside of an episode a failed one raises AssertionError."""
        named = prefix_names(tuple(found), prefix)
        if self.recorder is None:
            failed = [assertion.name for assertion in named if not assertion.passed]
            if failed:
                raise AssertionError("; ".join(failed))
        else:
            self.recorder.record_assertions(named, self.plan.location)


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
