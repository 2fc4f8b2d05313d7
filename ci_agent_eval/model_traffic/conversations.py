"""The conversations and agents that the model calls of an episode belong to. Pure.

Each request repeats its conversation. A call therefore continues the earlier call whose messages
begin those of its request, which then has the answer, perhaps rewritten; if a framework shortens
the history, it continues the call whose tool call it answers. A conversation that begins while a
tool call of another one is open is that of a nested agent.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from typing import Any

from ci_agent_eval.contract.trajectory import AgentRelation, ToolCall, TrajectoryAgent
from ci_agent_eval.model_traffic.messages import ModelAnswer, ModelRequest, RequestMessage
from ci_agent_eval.model_traffic.recorder import ModelCall

_HANDOFF = re.compile(
    r"(?:transfer(?:_back)?_to|hand_?off(?:_to)?)(?:_(?P<name>.+))?", re.IGNORECASE
)
"""Tools of handoffs: of OpenAI Agents, LangGraph, ADK, AutoGen, Strands and LlamaIndex."""
_TARGETS = ("agent_name", "to_agent", "agent", "target", "name")
"""Arguments of such tools that name the next agent."""
_MIN_PROMPT_CHARACTERS = 3
"""Shorter arguments of a tool call are not taken for the prompt of a nested agent."""


@dataclass(eq=False, slots=True)
class KnownPrompt:
    """A message of the user that is recorded elsewhere; calls that answer it share the object."""

    text: str

    def matches(self, text: str) -> bool:
        """Return whether a message has this text; formats join the parts of one differently."""
        return "".join(text.split()) == "".join(self.text.split())


@dataclass(eq=False, slots=True)
class ConversationStep:
    """A model call in its conversation."""

    call: ModelCall
    request: ModelRequest | None
    answer: ModelAnswer | None
    """None: there is none that the agent could use."""
    prompt: KnownPrompt | None
    instructions: Hashable
    """System text and tools, which differ between agents."""
    agent: TrajectoryAgent
    predecessor: ConversationStep | None
    new_messages: Sequence[RequestMessage]
    """Messages since the predecessor's answer."""
    is_continued: bool = False
    is_repeated: bool = False
    """Whether a later call repeats the request, which got no complete answer."""

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls that no request has answered yet; none that the provider made."""
        if self.answer is None or self.is_continued:
            return ()
        return tuple(call for call in self.answer.tool_calls if is_open(call))


def is_open(call: ToolCall) -> bool:
    """Return whether a tool call has neither a result nor an error."""
    return call.result is None and call.error is None


def find_usable_answer(call: ModelCall) -> ModelAnswer | None:
    """Return the answer that the agent could use, in whole or in part; None if there is none."""
    answer = call.answer
    if answer is None or call.state in {"refused", "failed"} or (call.status or 0) >= 400:
        return None
    if answer.text or answer.tool_calls or (call.state == "complete" and answer.error is None):
        return answer
    return None


def is_failed(call: ModelCall) -> bool:
    """Return whether the provider gave no complete answer: none, an error, or the beginning.

    An answer that the agent itself stopped reading has not failed.
    """
    if find_usable_answer(call) is None:
        return not call.is_abandoned
    has_error = call.answer is not None and call.answer.error is not None
    is_broken = call.state == "broken" and not call.is_cut and not call.is_abandoned
    return has_error or is_broken


@dataclass(eq=False)
class _AgentTree:
    """The agents so far; those of handoffs into one another are a family."""

    _by_role: dict[Hashable, TrajectoryAgent] = field(default_factory=dict)
    _families: dict[str, str] = field(default_factory=dict)
    """Id of the first agent of the family, by id."""
    _children: Counter[str | None] = field(default_factory=Counter)

    def find_next(self, instructions: Hashable, before: ConversationStep) -> TrajectoryAgent:
        """Return the agent that continues a conversation."""
        if before.instructions == instructions:
            return before.agent
        calls = () if before.answer is None else before.answer.tool_calls
        handoff = next((call for call in calls if _HANDOFF.fullmatch(call.name)), None)
        if handoff is not None:
            return self.find_started(instructions, before, handoff)
        # Instructions may change with the time, or the state of the agent.
        family = self._families[before.agent.id]
        return self._by_role.get(("family", family, instructions), before.agent)

    def find_started(
        self, instructions: Hashable, step: ConversationStep, call: ToolCall
    ) -> TrajectoryAgent:
        """Return the agent that a tool call has started."""
        parent = step.agent.id
        if _HANDOFF.fullmatch(call.name):
            key: Hashable = ("family", self._families[parent], instructions)
            relation: AgentRelation = "handoff"
            name = _find_handoff_target(call)
        else:
            key = ("nested", id(step), id(call), instructions)
            relation, name = "nested", call.name
        return self.find_or_add(
            key, instructions, name=name, parent=parent, relation=relation, call_id=call.id
        )

    def find_or_add(self, key: Hashable, instructions: Hashable, **fields: Any) -> TrajectoryAgent:
        """Return the agent with a key; `fields` are those of a new one."""
        if key not in self._by_role:
            parent: str | None = fields.get("parent")
            self._children[parent] += 1
            number = str(self._children[parent])
            agent = TrajectoryAgent(id=f"{parent}.{number}" if parent else number, **fields)
            family = self._families[parent] if parent and agent.relation == "handoff" else agent.id
            self._families[agent.id] = family
            self._by_role[key] = self._by_role["family", family, instructions] = agent
        return self._by_role[key]


_Key = tuple[Hashable, ...]
"""A comparable part of a conversation, without ids, which frameworks may change."""


@dataclass(eq=False)
class ConversationReader:
    """Reads model calls, each once; later ones may continue the conversations of earlier ones."""

    steps: list[ConversationStep] = field(default_factory=list)
    _by_request: dict[Hashable, list[ConversationStep]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Steps by the messages of their request."""
    _stored: dict[str, ConversationStep] = field(default_factory=dict)
    """Steps by the id of their answer or conversation at the provider."""
    _agents: _AgentTree = field(default_factory=_AgentTree)
    _running: set[tuple[int, int]] = field(default_factory=set)
    """Ids of steps and of their tool calls that have run an agent."""
    _first_of_prompt: int = 0
    """Steps before it belong to earlier prompts; their open tool calls stay unanswered."""

    def read(
        self,
        calls: Iterable[ModelCall],
        find_prompt: Callable[[ModelCall], KnownPrompt | None] = lambda _: None,
    ) -> Sequence[ConversationStep]:
        """Return the calls with their predecessors and agents; `calls` are in their order.

        `find_prompt` returns the user's message that a call answers, if it is known.
        """
        first = len(self.steps)
        for call in calls:
            prompt = find_prompt(call)
            if self.steps and self.steps[-1].prompt is not prompt:
                self._first_of_prompt = len(self.steps)
            self._add(call, prompt)
        return self.steps[first:]

    def _add(self, call: ModelCall, prompt: KnownPrompt | None) -> None:
        request, answer = call.request, find_usable_answer(call)
        items = [] if request is None else list(_list_items(request.messages))
        prefixes = _hash_prefixes(items, None if request is None else request.previous_response_id)
        agent, before, new_messages = self._place(call, items, prefixes)
        step = ConversationStep(
            call, request, answer, prompt, _get_instructions(request), agent, before, new_messages
        )
        if before is not None:
            before.is_continued = True
        self.steps.append(step)
        if request is not None:
            self._by_request[prefixes[-1]].append(step)
            for name in (request.previous_response_id, None if answer is None else answer.id):
                if name is not None:
                    self._stored[name] = step

    def _place(
        self,
        call: ModelCall,
        items: Sequence[tuple[_Key, int]],
        prefixes: Sequence[Hashable],
    ) -> tuple[TrajectoryAgent, ConversationStep | None, Sequence[RequestMessage]]:
        """Return the agent, predecessor and new messages of a request."""
        request = call.request
        instructions = _get_instructions(request)
        if request is None:
            last = self.steps[-1] if self.steps else None
            return last.agent if last else self._find_root(instructions), last, ()
        for earlier in self._by_request.get(prefixes[-1], ()):
            if not earlier.is_repeated and not _is_complete(earlier):
                earlier.is_repeated = True
                return earlier.agent, earlier.predecessor, earlier.new_messages
        stored = self._stored.get(request.previous_response_id or "")
        before, matched = (stored, 0) if stored else self._find_predecessor(items, prefixes)
        if before is None:
            before, matched = self._find_by_result(request, items)
        if before is not None:
            first_new = items[matched - 1][1] + 1 if matched else 0
            agent = self._agents.find_next(instructions, before)
            return agent, before, request.messages[first_new:]
        agent = self._find_new_agent(call, request)
        return agent, None, _select_last_input(request.messages)

    def _find_predecessor(
        self, items: Sequence[tuple[_Key, int]], prefixes: Sequence[Hashable]
    ) -> tuple[ConversationStep | None, int]:
        """Return the step with the longest beginning, and the number of items up to its answer."""
        for count in range(len(items), -1, -1):
            steps = self._by_request.get(prefixes[count], ())
            if count < len(items) and _is_answer(items[count][0]):
                answered = [step for step in steps if step.answer is not None]
                same = [step for step in answered if _key_answer(step) == items[count][0]]
                free = [step for step in same or answered if not step.is_continued]
                if free or same:
                    return (free or same[-1:])[0], count + 1
            failed = [step for step in steps if step.answer is None]
            if count and failed:
                return failed[-1], count
        return None, 0

    def _find_by_result(
        self, request: ModelRequest, items: Sequence[tuple[_Key, int]]
    ) -> tuple[ConversationStep | None, int]:
        """Return the last step with a call that the request answers, and the items before it."""
        results = [one for message in request.messages for one in message.tool_results]
        answered = {result.call_id or result.name for result in results}
        for step in reversed(self.steps[self._first_of_prompt :]):
            if any((call.id or call.name) in answered for call in step.open_calls):
                first = next(at for at, (key, _) in enumerate(items) if key[0] == "result")
                return step, first
        return None, 0

    def _find_root(self, instructions: Hashable) -> TrajectoryAgent:
        """Return the agent of these instructions that no other agent started."""
        return self._agents.find_or_add(("root", instructions), instructions)

    def _find_new_agent(self, made: ModelCall, request: ModelRequest) -> TrajectoryAgent:
        """Return the agent of a new conversation: that of an open tool call, or a root.

        The call is known by its arguments, or it is the last one; if it is known which tool made
        the model call, it is this tool's call, or one within it. A conversation with the
        instructions and tools of the caller is another run of that agent, unless the arguments
        contain its prompt: a call that carries a typed output stays open.
        """
        instructions = _get_instructions(request)
        running = [
            (step, call)
            for step in reversed(self.steps[self._first_of_prompt :])
            if step.call.first_byte_s is not None and step.call.first_byte_s <= made.started_s
            for call in step.open_calls
        ]
        if (tool := made.tool_call_id) is not None:
            inside = [(s, call) for s, call in running if tool in (call.id, s.call.tool_call_id)]
            running = inside or running
        texts = [message.text for message in request.messages if message.role == "user"]
        named = [
            (step, call)
            for step, call in running
            if any(part in text for part in _list_texts(call.arguments) for text in texts)
        ]
        others = [
            (step, call)
            for step, call in running
            if step.instructions != instructions or _HANDOFF.fullmatch(call.name)
        ]
        unclaimed = [
            (step, call) for step, call in others if (id(step), id(call)) not in self._running
        ]
        starters = named or unclaimed or others
        if not starters:
            return self._find_root(instructions)
        step, call = starters[0]
        self._running.add((id(step), id(call)))
        return self._agents.find_started(instructions, step, call)


def _find_handoff_target(call: ToolCall) -> str | None:
    found = _HANDOFF.fullmatch(call.name)
    name = found and found["name"]
    if name and name.lower() != "agent":
        return name
    given = call.arguments if isinstance(call.arguments, dict) else {}
    targets = (given.get(key) for key in _TARGETS)
    return next((target for target in targets if isinstance(target, str)), None)


def _is_complete(step: ConversationStep) -> bool:
    return step.answer is not None and step.call.state == "complete"


def _select_last_input(messages: Sequence[RequestMessage]) -> tuple[RequestMessage, ...]:
    """Return the messages after the last answer: earlier ones are no part of the episode."""
    places = [place for place, message in enumerate(messages) if message.role == "assistant"]
    return tuple(messages[places[-1] + 1 if places else 0 :])


def _get_instructions(request: ModelRequest | None) -> Hashable:
    if request is None:
        return None
    texts = tuple(message.text for message in request.messages if message.role == "system")
    return texts, tuple(sorted(tool.name for tool in request.tools))


def _list_items(messages: Sequence[RequestMessage]) -> Iterator[tuple[_Key, int]]:
    """Yield the parts of a conversation, each with the place of its message.

    Consecutive messages of the model are one part.
    """
    places = [place for place, message in enumerate(messages) if message.role != "system"]
    for is_answer, group in groupby(places, lambda place: messages[place].role == "assistant"):
        members = list(group)
        if is_answer:
            calls = [call for place in members for call in messages[place].tool_calls]
            text = "".join(messages[place].text for place in members)
            yield _build_answer_key(text, calls), members[-1]
        else:
            yield from ((key, at) for at in members for key in _list_input_keys(messages[at]))


def _list_input_keys(message: RequestMessage) -> Iterator[_Key]:
    for result in message.tool_results:
        yield "result", _render(result.value)
    if message.text.strip():
        yield "text", message.text.strip()
    for attachment in message.attachments:
        yield "attachment", attachment.media_type, attachment.sha256


def _is_answer(key: _Key) -> bool:
    return key[0] == "answer"


def _key_answer(step: ConversationStep) -> _Key | None:
    answer = step.answer
    return None if answer is None else _build_answer_key(answer.text, answer.tool_calls)


def _build_answer_key(text: str, calls: Iterable[ToolCall]) -> _Key:
    made = tuple((call.name, _render(call.arguments)) for call in calls if is_open(call))
    return "answer", text.strip(), made


def _hash_prefixes(items: Sequence[tuple[_Key, int]], first: Hashable) -> Sequence[Hashable]:
    """Return a key of the first n items for each n, from 0 on."""
    keys = (key for key, _ in items)
    return list(accumulate(keys, lambda before, key: hash((before, key)), initial=hash(first)))


def _render(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _list_texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value that are long enough for a prompt."""
    if isinstance(value, str) and len(value.strip()) >= _MIN_PROMPT_CHARACTERS:
        yield value.strip()
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(item)
