"""A simulation in progress: free conversation, or the steps of a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

from ci_agent_eval.authoring.simulation.app_under_test import AppRequest, AskApp
from ci_agent_eval.authoring.simulation.awaiting import await_if_needed
from ci_agent_eval.authoring.simulation.conversation import (
    History,
    SimulationExchange,
    SimulationStop,
    UserMessage,
    copy_history,
)
from ci_agent_eval.authoring.simulation.judge import (
    JudgeDecision,
    SimulationVerdict,
    apply_checks,
)
from ci_agent_eval.authoring.simulation.plan import Predicate, SimulationPlan
from ci_agent_eval.authoring.simulation.script import SimulationEnd
from ci_agent_eval.authoring.simulation.script_steps import (
    AgentStep,
    CheckStep,
    JudgeStep,
    MessageStep,
    ProceedStep,
    Step,
    ToolResultStep,
    UserStep,
)
from ci_agent_eval.authoring.simulation.user import UserSession
from ci_agent_eval.checks import as_check
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.jsonable import clean_text, to_jsonable
from ci_agent_eval.contract.trajectory import Trajectory, Turn
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder, Reply
from ci_agent_eval.recording.check_value import prefix_names

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

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
