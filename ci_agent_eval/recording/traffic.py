"""The model calls of an episode as turns, merged with the turns that the test records.

A turn with an explicit reply stays one turn, and the traffic adds the data that the reply lacks.
A turn without a reply, and calls outside of every turn, become a turn for each answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ci_agent_eval.contract.episode import TrafficSummary
from ci_agent_eval.contract.stops import Stop, find_stop_cause
from ci_agent_eval.contract.trajectory import Trajectory, TrajectoryAgent, Turn, sum_tokens
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.model_traffic.conversations import KnownPrompt
from ci_agent_eval.model_traffic.recorder import ModelCall, TrafficRecorder
from ci_agent_eval.model_traffic.trajectory import (
    CallUsageCounter,
    ComputeCost,
    TrafficTrajectory,
    build_trajectory,
)

_FILLED = (
    "finish_reason",
    "requested_model",
    "response_model",
    "first_byte_ms",
    "settings",
    "typed_output",
    "error",
)
"""Fields of a reply that the last answer in the traffic fills."""


@dataclass(frozen=True, slots=True, eq=False)
class CallSpan:
    """Consecutive model calls of an episode, and the turns that the test recorded for them."""

    first: int
    last: int
    prompt: KnownPrompt | None = None
    turns: tuple[Turn, ...] = ()
    has_reply: bool = False
    """Whether the turns have a reply or tool calls of the agent, given by the test."""


RecordedPart = Turn | CallSpan


@dataclass(eq=False)
class EpisodeTraffic:
    """The model calls of an episode, outside of the engine's runs."""

    recorder: TrafficRecorder
    compute_cost: ComputeCost = lambda _: None
    find_limit_stop: Callable[[], Stop | None] = lambda: None
    """Returns the limit because of which calls were refused."""
    find_call_stop: Callable[[Sequence[ModelCall]], Stop | None] = lambda _: None
    """Returns why the last of some calls has no complete answer."""
    summarize: Callable[[Sequence[Turn]], TrafficSummary | None] = lambda _: None
    """Counts the calls, given the episode's turns."""
    list_conditions: Callable[[], Mapping[str, object]] = dict
    """Returns the conditions of the episode that the calls show."""
    is_turn_open: bool = False
    """Whether the test has opened a turn."""
    _next: int = 1
    """Number of the first call that is in no span."""
    _prompts: dict[int, KnownPrompt] = field(default_factory=dict)
    _built: tuple[object, TrafficTrajectory] | None = None
    _counter: CallUsageCounter = field(init=False)

    def __post_init__(self) -> None:
        self._counter = CallUsageCounter(self.compute_cost)

    def take_span(
        self,
        prompt: str | None = None,
        turns: Sequence[Turn] = (),
        *,
        has_reply: bool = False,
    ) -> CallSpan | None:
        """Return the calls since the last span; None without any."""
        first, last = self._next, len(self.recorder.calls)
        if last < first:
            return None
        known = None if prompt is None else KnownPrompt(prompt)
        if known is not None:
            self._prompts |= dict.fromkeys(range(first, last + 1), known)
        self._next = last + 1
        return CallSpan(first, last, known, tuple(turns), has_reply)

    def list_turns(self, parts: Sequence[RecordedPart]) -> tuple[Turn, ...]:
        """Return the turns of an episode's parts and, without an open turn, of later calls."""
        trajectory = self._build_trajectory()
        turns: list[Turn] = []
        for part in parts:
            turns += [part] if isinstance(part, Turn) else _expand_span(part, trajectory)
        if not self.is_turn_open:
            turns += trajectory.select(self._next, len(self.recorder.calls))
        return tuple(turns)

    def list_agents(self) -> tuple[TrajectoryAgent, ...]:
        """Return the agents of the calls, if there are several."""
        return self._build_trajectory().agents

    def measure_usage(self, parts: Sequence[RecordedPart], *, with_cost: bool) -> tuple[Usage, int]:
        """Return the usage of an episode's parts and all later calls, and its open calls.

        All calls of a turn that the test has opened are one turn: it may still give its reply.
        """
        calls = self.recorder.calls
        used = Usage.from_turns(part for part in parts if isinstance(part, Turn))
        for part in parts:
            if isinstance(part, CallSpan):
                used += self._measure_span(part, with_cost=with_cost)
        later = calls[self._next - 1 :]
        in_turn = self._counter.count(later, with_cost=with_cost)
        if self.is_turn_open:
            return used + replace(in_turn, turns=min(len(later), 1)), 0
        return used + in_turn, sum(call.state == "open" for call in later)

    def find_stop(self, parts: Sequence[RecordedPart], turns: Sequence[Turn]) -> Stop | None:
        """Return why the agent did not finish: a limit, or an answer that is none.

        The text of an answer that the test has recorded itself counts as it is, but not if the
        provider failed, or broke off its answer.
        """
        if (stop := self.find_limit_stop()) is not None:
            return stop
        calls = self.recorder.calls
        spans = [part for part in parts if isinstance(part, CallSpan) and part.has_reply]
        for made in (*(calls[span.first - 1 : span.last] for span in spans), calls):
            if (stop := self.find_call_stop(made)) is not None:
                return stop
        answers = [turn for turn in turns if turn.role == "assistant"]
        last = len(self.recorder.calls)
        seen = self._build_trajectory().select(last, last) if last else ()
        if not answers or answers[-1] not in seen:
            return None
        found = find_stop_cause(answers[-1])
        return None if found is None or found.reason == "empty_answer" else found

    def _measure_span(self, span: CallSpan, *, with_cost: bool) -> Usage:
        calls = self.recorder.calls[span.first - 1 : span.last]
        seen = self._counter.count(calls, with_cost=with_cost)
        if not span.has_reply:
            return seen
        own = Usage.from_turns(span.turns)
        return Usage(
            own.turns,
            own.tool_calls or seen.tool_calls,
            own.tokens or seen.tokens,
            own.cost_usd or seen.cost_usd,
        )

    def _build_trajectory(self) -> TrafficTrajectory:
        """Build the turns of all calls; again only if a call has begun or ended."""
        calls = self.recorder.calls
        state = (len(calls), sum(call.state != "open" for call in calls), len(self._prompts))
        if self._built is None or self._built[0] != state:
            found = build_trajectory(
                calls,
                find_prompt=lambda call: self._prompts.get(call.number),
                compute_cost=self.compute_cost,
            )
            self._built = state, found
        return self._built[1]


def _expand_span(span: CallSpan, trajectory: TrafficTrajectory) -> Sequence[Turn]:
    seen = trajectory.select(span.first, span.last)
    if not span.turns:
        return seen
    answers = [turn for turn in seen if turn.role == "assistant"]
    if span.has_reply or not answers:
        return [merge_reply(one, answers) if one.role == "assistant" else one for one in span.turns]
    prompts = [turn for turn in span.turns if turn.role == "user"]
    others = [turn for turn in span.turns if turn.role not in {"user", "assistant"}]
    return [*prompts, *seen, *others]


def merge_reply(reply: Turn, answers: Sequence[Turn]) -> Turn:
    """Return a reply with the data that it lacks and the answers in the traffic have.

    Tokens and costs are sums, tool calls those of all answers; the rest is the last answer's.
    """
    if not answers:
        return reply
    last = answers[-1]
    update: dict[str, Any] = {
        name: getattr(last, name) for name in _FILLED if not getattr(reply, name)
    }
    if not reply.content:
        update["content"] = last.content
    if not reply.tool_calls:
        update["tool_calls"] = tuple(call for turn in answers for call in turn.tool_calls)
    if reply.tokens is None:
        usages = [turn.tokens for turn in answers if turn.tokens is not None]
        update["tokens"] = sum_tokens(usages) if len(usages) == len(answers) else None
    if reply.cost_usd is None:
        update["cost_usd"] = Trajectory(turns=tuple(answers)).cost_usd
    if all(turn.source == "replayed" for turn in answers):
        update["source"] = "replayed"
    return reply.model_copy(update=update)
