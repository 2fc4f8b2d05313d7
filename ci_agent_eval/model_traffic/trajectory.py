"""The trajectory of an episode from its recorded model calls. Pure.

Each answer is a turn of the agent. The results of its tool calls are in later requests, and so are
the messages of the user. The traffic does not show the result of a tool if no request follows, or
if the framework returns results as plain text; the call then says that its result was not seen.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import JsonValue

from ci_agent_eval.contract.jsonable import clean_text, to_jsonable
from ci_agent_eval.contract.measurement import convert_to_ms
from ci_agent_eval.contract.trajectory import ToolCall, TrajectoryAgent, Turn
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.model_traffic.conversations import (
    ConversationReader,
    ConversationStep,
    KnownPrompt,
    find_usable_answer,
    is_open,
)
from ci_agent_eval.model_traffic.messages import (
    ModelAnswer,
    RequestHead,
    RequestMessage,
    ToolResult,
)
from ci_agent_eval.model_traffic.recorder import ModelCall

MAX_TEXT_CHARACTERS = 200_000
"""Characters kept of a message, a tool's result or an argument."""
MAX_NAME_CHARACTERS = 200
"""Characters kept of the name of a model or tool."""
MAX_SETTING_CHARACTERS = 500
"""Characters kept of one sampling setting, written as JSON."""

FindPrompt = Callable[[ModelCall], KnownPrompt | None]
"""Returns the user's message that a call answers, if it is recorded elsewhere."""
ComputeCost = Callable[[ModelCall], float | None]
"""Returns the cost of a call in US dollars; None: unknown."""


@dataclass(frozen=True, slots=True)
class TrafficTurn:
    """A turn with the number of its model call."""

    call_number: int
    turn: Turn


@dataclass(frozen=True, slots=True)
class TrafficTrajectory:
    """The turns of recorded model calls, in the order of the requests."""

    turns: tuple[TrafficTurn, ...]
    agents: tuple[TrajectoryAgent, ...]
    """Empty for a single agent."""

    def select(self, first: int, last: int) -> tuple[Turn, ...]:
        """Return the turns of the calls from number `first` to `last`."""
        return tuple(one.turn for one in self.turns if first <= one.call_number <= last)


def build_trajectory(
    calls: Iterable[ModelCall],
    *,
    find_prompt: FindPrompt = lambda _: None,
    compute_cost: ComputeCost = lambda _: None,
) -> TrafficTrajectory:
    """Build the turns of model calls, as `TrajectoryReader`."""
    return TrajectoryReader().read(calls, find_prompt=find_prompt, compute_cost=compute_cost)


@dataclass(eq=False)
class TrajectoryReader:
    """Builds the turns of successive runs, in which agents may continue; reads each call once."""

    _conversations: ConversationReader = field(default_factory=ConversationReader)
    _answers: dict[int, _Draft] = field(default_factory=dict)
    """The turns of the answers by the id of their step, which `_conversations` keeps."""
    _agents: dict[str, TrajectoryAgent] = field(default_factory=dict)

    def read(
        self,
        calls: Iterable[ModelCall],
        *,
        find_prompt: FindPrompt = lambda _: None,
        compute_cost: ComputeCost = lambda _: None,
    ) -> TrafficTrajectory:
        """Return the turns of a run: the messages of the user, and the answers, in their order.

        A message for which `find_prompt` knows the prompt is no message of the user: it is left
        out if it begins the conversation, else it is a turn of role `system`, such as a
        framework's request to try again.
        """
        drafts: list[_Draft] = []
        for step in self._conversations.read(calls, find_prompt):
            if step.is_repeated:
                continue
            _add_results(step, self._answers)
            drafts += _list_messages(step, self._answers)
            if step.answer is not None:
                answer = self._answers[id(step)] = _build_answer(step, compute_cost)
                drafts.append(answer)
        return self._build_trajectory(drafts)

    def _build_trajectory(self, drafts: Sequence[_Draft]) -> TrafficTrajectory:
        for draft in drafts:
            self._agents.setdefault(draft.agent.id, draft.agent)
        agents = _select_trees(self._agents, {draft.agent.id for draft in drafts})
        has_several = len(agents) > 1
        turns = (TrafficTurn(one.call_number, one.build(has_agent=has_several)) for one in drafts)
        known = sorted(agents.values(), key=lambda agent: [int(n) for n in agent.id.split(".")])
        return TrafficTrajectory(
            tuple(turns), tuple(map(_clean_agent, known)) if has_several else ()
        )


def _select_trees(
    agents: Mapping[str, TrajectoryAgent], places: Iterable[str]
) -> dict[str, TrajectoryAgent]:
    """Return the agents of the trees that have an agent at one of the places."""
    roots = {place.partition(".")[0] for place in places}
    return {place: agent for place, agent in agents.items() if place.partition(".")[0] in roots}


@dataclass(eq=False, slots=True)
class _Draft:
    """A turn whose tool calls may still get results from later requests."""

    call_number: int
    agent: TrajectoryAgent
    fields: dict[str, Any]
    calls: list[ToolCall] = field(default_factory=list)

    def add_result(self, result: ToolResult) -> bool:
        """Add a result to its call; return False if it belongs to none of this turn."""
        places = [place for place, call in enumerate(self.calls) if is_open(call)]
        if result.call_id is not None:
            places = [place for place in places if self.calls[place].id == result.call_id]
        elif result.name is not None:
            places = [place for place in places if self.calls[place].name == result.name]
        if not places:
            return False
        value = limit_json(result.value)
        if result.is_error:
            text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            outcome: dict[str, Any] = {"error": text}
        else:
            outcome = {"result": value}
        self.calls[places[0]] = self.calls[places[0]].model_copy(
            update={**outcome, "result_unseen": False}
        )
        return True

    @property
    def is_unanswered(self) -> bool:
        """Whether the result of a tool call has not been seen."""
        return any(call.result_unseen for call in self.calls)

    def build(self, *, has_agent: bool) -> Turn:
        agent = self.agent.id if has_agent else None
        return Turn(**self.fields, agent=agent, tool_calls=tuple(self.calls))


def _add_results(step: ConversationStep, by_step: Mapping[int, _Draft]) -> None:
    """Add the tool results in a request to the calls of earlier answers, the last one first."""
    for message in step.new_messages:
        for result in message.tool_results:
            any(draft.add_result(result) for draft in _list_earlier_drafts(step, by_step))


def _list_earlier_drafts(step: ConversationStep, by_step: Mapping[int, _Draft]) -> Iterator[_Draft]:
    before = step.predecessor
    while before is not None:
        if (draft := by_step.get(id(before))) is not None:
            yield draft
        before = before.predecessor


def _list_messages(step: ConversationStep, by_step: Mapping[int, _Draft]) -> Iterator[_Draft]:
    """Yield the turns of the new texts in a request."""
    is_known = step.agent.relation == "handoff" or step.prompt is not None
    if step.predecessor is None and is_known and step.agent.relation != "nested":
        return
    last = next(_list_earlier_drafts(step, by_step), None)
    # A framework that returns results as text makes them messages of the user.
    is_result = last is not None and last.is_unanswered
    is_user = step.agent.relation != "nested" and step.prompt is None and not is_result
    for message in step.new_messages:
        if message.role in {"assistant", "system"} or not (message.text or message.attachments):
            continue
        if step.prompt is not None and step.prompt.matches(message.text):
            continue
        yield _build_message(step, message, "user" if is_user else "system")


def _build_message(step: ConversationStep, message: RequestMessage, role: str) -> _Draft:
    fields = {
        "role": role,
        "content": limit_text(message.text),
        "attachments": message.attachments,
    }
    return _Draft(step.call.number, step.agent, fields)


def _build_answer(step: ConversationStep, compute_cost: ComputeCost) -> _Draft:
    call, answer, request = step.call, step.answer, step.request
    assert answer is not None  # noqa: S101 - checked by the caller
    fields = {
        "role": "assistant",
        "content": limit_text(answer.text),
        "latency_ms": _choose_ms(call, call.recorded_latency_ms, call.ended_s),
        "tokens": answer.tokens,
        "cost_usd": compute_cost(call),
        "source": call.source,
        "first_byte_ms": _choose_ms(call, call.recorded_first_byte_ms, call.first_byte_s),
        "finish_reason": _limit_name(answer.finish_reason),
        "requested_model": _limit_name(None if request is None else request.model),
        "response_model": _limit_name(answer.model),
        "settings": {} if request is None else _limit_settings(request.settings),
        "typed_output": _parse_typed_output(answer, request),
        "error": _find_problem(call, answer.error),
    }
    calls = [clean_call(one) for one in answer.tool_calls]
    return _Draft(call.number, step.agent, fields, calls)


def _find_problem(call: ModelCall, error: str | None) -> str | None:
    """Return why an answer is incomplete, or the request could not be read."""
    found = call.error or error
    if found is None and call.state in {"broken", "open"}:
        found = "the answer broke off"
    return None if found is None else limit_text(found, MAX_SETTING_CHARACTERS)


def _parse_typed_output(answer: ModelAnswer, head: RequestHead | None) -> JsonValue:
    if head is None or head.output_schema is None or answer.tool_calls:
        return None
    try:
        return limit_json(to_jsonable(json.loads(answer.text)))
    except (ValueError, RecursionError):
        return None


def _choose_ms(call: ModelCall, recorded_ms: float | None, moment: float | None) -> float | None:
    """Return the time of the live call, or the measured one without a recording."""
    if recorded_ms is not None or moment is None:
        return recorded_ms
    return convert_to_ms(moment - call.started_s)


def clean_call(call: ToolCall) -> ToolCall:
    """Return a tool call of limited size; without a result or an error it is marked as unseen."""
    cleaned = {
        "name": limit_text(call.name, MAX_NAME_CHARACTERS),
        "arguments": limit_json(call.arguments),
        "result": limit_json(call.result),
    }
    return call.model_copy(update={**cleaned, "result_unseen": is_open(call)})


def _clean_agent(agent: TrajectoryAgent) -> TrajectoryAgent:
    return agent.model_copy(update={"name": _limit_name(agent.name)})


def _limit_settings(settings: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        limit_text(name, MAX_NAME_CHARACTERS): limit_json(value, MAX_SETTING_CHARACTERS)
        for name, value in settings.items()
    }


def limit_json(value: JsonValue, length: int = MAX_TEXT_CHARACTERS) -> JsonValue:
    """Return a value, or the beginning of its JSON if it is too long."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return limit_text(value, length)
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return value if len(text) <= length else limit_text(text, length)


def _limit_name(name: str | None) -> str | None:
    return None if name is None else limit_text(name, MAX_NAME_CHARACTERS)


def limit_text(text: str, length: int = MAX_TEXT_CHARACTERS) -> str:
    """Return a text from the traffic as valid Unicode; of a long one the beginning."""
    if len(text) <= length:
        return clean_text(text)
    return f"{clean_text(text[:length])}… ({len(text) - length} more characters)"


@dataclass(eq=False)
class CallUsageCounter:
    """Counts the usage of calls; each ended call is read once."""

    compute_cost: ComputeCost
    uncounted_tools: Collection[str] = ()
    _ended: dict[ModelCall, Usage] = field(default_factory=dict)

    def count(self, calls: Iterable[ModelCall], *, with_cost: bool = True) -> Usage:
        """Return the usage of the answers; a call without an answer is no turn.

        Without `with_cost` the cost is 0: the price table takes time to load.
        """
        known = tuple(calls)
        used = sum((self._measure(call) for call in known), Usage())
        if not with_cost:
            return used
        costs = (self.compute_cost(call) for call in known)
        return replace(used, cost_usd=math.fsum(cost for cost in costs if cost is not None))

    def _measure(self, call: ModelCall) -> Usage:
        if (known := self._ended.get(call)) is not None:
            return known
        answer = None if call.state == "open" else find_usable_answer(call)
        used = Usage()
        if answer is not None:
            tokens = 0 if answer.tokens is None else answer.tokens.total
            tools = sum(tool.name not in self.uncounted_tools for tool in answer.tool_calls)
            used = Usage(1, tools, tokens)
        if call.state != "open":
            self._ended[call] = used
        return used
