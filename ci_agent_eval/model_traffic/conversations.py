"""The conversations and agents that the model calls of an episode belong to. Pure.

Each request repeats its conversation. A call therefore continues the earlier call whose messages
and answer begin the messages of its request; frameworks that rewrite the answer, or shorten
the history, are recognized by less. A conversation that begins while a tool call of another one is
open is that of a nested agent.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
    new_messages: tuple[RequestMessage, ...]
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


@dataclass(frozen=True, slots=True)
class _Item:
    """A comparable part of a conversation, without ids, which frameworks may change."""

    key: tuple[Hashable, ...]
    message: int
    """Position of its message in the request."""

    @property
    def is_answer(self) -> bool:
        return self.key[0] == "answer"


_Index = dict[Hashable, list[ConversationStep]]


@dataclass(eq=False)
class _AgentTree:
    """The agents so far; those of handoffs into one another are a family."""

    _by_role: dict[Hashable, TrajectoryAgent] = field(default_factory=dict)
    _families: dict[str, str] = field(default_factory=dict)
    """Id of the first agent of the family, by id."""
    _children: Counter[str | None] = field(default_factory=Counter)
    _running: set[tuple[int, int]] = field(default_factory=set)
    """Tool calls that have run an agent."""

    def find_root(self, instructions: Hashable) -> TrajectoryAgent:
        """Return the agent of these instructions that no other agent started."""
        return self._find_or_add(("root", instructions), instructions)

    def find_new(
        self, instructions: Hashable, open_call: tuple[ConversationStep, ToolCall] | None
    ) -> TrajectoryAgent:
        """Return the agent of a conversation that begins while a tool call is open, or none."""
        if open_call is None:
            return self.find_root(instructions)
        step, call = open_call
        if _HANDOFF.fullmatch(call.name):
            return self._hand_over(step, call, instructions)
        self._running.add((id(step), id(call)))
        return self._find_or_add(
            ("nested", id(step), id(call), instructions),
            instructions,
            parent=step.agent.id,
            relation="nested",
            name=call.name,
            call_id=call.id,
        )

    def find_next(self, instructions: Hashable, before: ConversationStep) -> TrajectoryAgent:
        """Return the agent that continues a conversation."""
        if before.instructions == instructions:
            return before.agent
        family = self._families[before.agent.id]
        calls = () if before.answer is None else before.answer.tool_calls
        handoff = next((call for call in calls if _HANDOFF.fullmatch(call.name)), None)
        if handoff is None:  # instructions may change with the time, or the state of the agent
            return self._by_role.get(("family", family, instructions), before.agent)
        return self._hand_over(before, handoff, instructions)

    def has_run(self, step: ConversationStep, call: ToolCall) -> bool:
        """Return whether the tool call has run an agent."""
        return (id(step), id(call)) in self._running

    def _hand_over(
        self, step: ConversationStep, call: ToolCall, instructions: Hashable
    ) -> TrajectoryAgent:
        return self._find_or_add(
            ("family", self._families[step.agent.id], instructions),
            instructions,
            parent=step.agent.id,
            relation="handoff",
            name=_find_handoff_target(call),
            call_id=call.id,
        )

    def _find_or_add(
        self,
        key: Hashable,
        instructions: Hashable,
        *,
        parent: str | None = None,
        relation: AgentRelation | None = None,
        name: str | None = None,
        call_id: str | None = None,
    ) -> TrajectoryAgent:
        if key in self._by_role:
            return self._by_role[key]
        self._children[parent] += 1
        number = self._children[parent]
        agent = TrajectoryAgent(
            id=str(number) if parent is None else f"{parent}.{number}",
            name=name,
            parent=parent,
            relation=relation,
            call_id=call_id,
        )
        family = self._families[parent] if parent and relation == "handoff" else agent.id
        self._families[agent.id] = family
        self._by_role[key] = self._by_role["family", family, instructions] = agent
        return agent


@dataclass(eq=False)
class ConversationReader:
    """Reads model calls, each once; later ones may continue the conversations of earlier ones."""

    steps: list[ConversationStep] = field(default_factory=list)
    _after: _Index = field(default_factory=lambda: defaultdict(list))
    """Steps by their messages with the answer."""
    _requests: _Index = field(default_factory=lambda: defaultdict(list))
    """Steps by their messages without the answer."""
    _answers: _Index = field(default_factory=lambda: defaultdict(list))
    """Steps by their answer alone."""
    _stored: dict[str, tuple[ConversationStep, Hashable]] = field(default_factory=dict)
    """Steps by the id of their answer or conversation at the provider, with its messages."""
    _agents: _AgentTree = field(default_factory=_AgentTree)
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
            self._add(call, find_prompt(call))
        return self.steps[first:]

    def _add(self, call: ModelCall, prompt: KnownPrompt | None) -> None:
        if self.steps and self.steps[-1].prompt is not prompt:
            self._first_of_prompt = len(self.steps)
        request = call.request
        messages = () if request is None else request.messages
        items = tuple(_list_items(messages))
        stored = self._find_stored(request)
        prefixes = _hash_prefixes(items, None if stored is None else stored[1])
        step = ConversationStep(
            call,
            request,
            find_usable_answer(call),
            prompt,
            _get_instructions(request),
            *self._place(call, items, prefixes, stored),
        )
        if step.predecessor is not None:
            step.predecessor.is_continued = True
        self._register(step, prefixes[-1])

    def _place(
        self,
        call: ModelCall,
        items: Sequence[_Item],
        prefixes: Sequence[Hashable],
        stored: tuple[ConversationStep, Hashable] | None,
    ) -> tuple[TrajectoryAgent, ConversationStep | None, tuple[RequestMessage, ...]]:
        """Return the agent, predecessor and new messages of a request."""
        request = call.request
        instructions = _get_instructions(request)
        if request is None:
            last = self.steps[-1] if self.steps else None
            agent = last.agent if last else self._agents.find_root(instructions)
            return agent, last, ()
        for earlier in self._requests.get(prefixes[-1], ()):
            if not earlier.is_repeated and not _is_complete(earlier):
                earlier.is_repeated = True
                return earlier.agent, earlier.predecessor, earlier.new_messages
        found = (stored[0], 0) if stored else self._find_predecessor(request, items, prefixes)
        if found is None:
            open_call = self._find_open_call(call, request)
            agent = self._agents.find_new(instructions, open_call)
            return agent, None, _select_last_input(request.messages)
        before, matched = found
        first_new = items[matched - 1].message + 1 if matched else 0
        agent = self._agents.find_next(instructions, before)
        return agent, before, request.messages[first_new:]

    def _find_stored(
        self, request: ModelRequest | None
    ) -> tuple[ConversationStep, Hashable] | None:
        """Return the step whose conversation the provider has stored."""
        if request is None or request.previous_response_id is None:
            return None
        return self._stored.get(request.previous_response_id)

    def _find_predecessor(
        self, request: ModelRequest, items: Sequence[_Item], prefixes: Sequence[Hashable]
    ) -> tuple[ConversationStep, int] | None:
        """Return the continued step and the number of items up to its answer."""
        for count in range(len(items), 0, -1):
            if steps := self._after.get(prefixes[count]):
                return next((one for one in steps if not one.is_continued), steps[-1]), count
        answers = [place for place, item in enumerate(items) if item.is_answer]
        for place in reversed(answers):  # the framework has rewritten the answer
            if step := _find_uncontinued(self._requests.get(prefixes[place], ())):
                return step, place + 1
        if answers:  # it has shortened the history
            last = answers[-1]
            if step := _find_uncontinued(self._answers.get(items[last].key, ())):
                return step, last + 1
        return self._find_by_result(request, items)

    def _find_by_result(
        self, request: ModelRequest, items: Sequence[_Item]
    ) -> tuple[ConversationStep, int] | None:
        ids = {one.call_id for message in request.messages for one in message.tool_results}
        for step in reversed(self.steps[self._first_of_prompt :]):
            if any(call.id is not None and call.id in ids for call in step.open_calls):
                first = next(place for place, item in enumerate(items) if item.key[0] == "result")
                return step, first
        return None

    def _find_open_call(
        self, made: ModelCall, request: ModelRequest
    ) -> tuple[ConversationStep, ToolCall] | None:
        """Return the open tool call that runs a new conversation: by its arguments, or the last.

        If it is known which tool made the call, it is this tool's call, or one within it. A
        conversation with the instructions and tools of the caller is another run of that agent,
        unless the arguments contain its prompt: a call that carries a typed output stays open.
        """
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
        for step, call in running:
            if any(part in text for part in _list_texts(call.arguments) for text in texts):
                return step, call
        instructions = _get_instructions(request)
        others = [
            (step, call)
            for step, call in running
            if step.instructions != instructions or _HANDOFF.fullmatch(call.name)
        ]
        unclaimed = (one for one in others if not self._agents.has_run(*one))
        return next(unclaimed, others[0] if others else None)

    def _register(self, step: ConversationStep, key: Hashable) -> None:
        self.steps.append(step)
        request, answer = step.request, step.answer
        if request is None:
            return
        self._requests[key].append(step)
        after = key
        if answer is not None:
            item = _build_answer_key(answer.text, answer.tool_calls)
            after = hash((key, item))
            if answer.text.strip() or answer.tool_calls:
                self._answers[item].append(step)
        self._after[after].append(step)
        for name in (request.previous_response_id, None if answer is None else answer.id):
            if name is not None:
                self._stored[name] = step, after


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


def _find_uncontinued(steps: Sequence[ConversationStep]) -> ConversationStep | None:
    return next((one for one in reversed(steps) if one.answer and not one.is_continued), None)


def _select_last_input(messages: Sequence[RequestMessage]) -> tuple[RequestMessage, ...]:
    """Return the messages after the last answer: earlier ones are no part of the episode."""
    places = [place for place, message in enumerate(messages) if message.role == "assistant"]
    return tuple(messages[places[-1] + 1 if places else 0 :])


def _get_instructions(request: ModelRequest | None) -> Hashable:
    if request is None:
        return None
    texts = tuple(message.text for message in request.messages if message.role == "system")
    return texts, tuple(sorted(tool.name for tool in request.tools))


def _list_items(messages: Sequence[RequestMessage]) -> Iterator[_Item]:
    """Yield the parts of a conversation; consecutive messages of the model are one."""
    text, last = "", -1
    calls: tuple[ToolCall, ...] = ()
    for place, message in enumerate(messages):
        if message.role == "system":
            continue
        if message.role == "assistant":
            text, calls, last = text + message.text, (*calls, *message.tool_calls), place
            continue
        if last >= 0:
            yield _Item(_build_answer_key(text, calls), last)
            text, calls, last = "", (), -1
        for key in _list_input_keys(message):
            yield _Item(key, place)
    if last >= 0:
        yield _Item(_build_answer_key(text, calls), last)


def _list_input_keys(message: RequestMessage) -> Iterator[tuple[Hashable, ...]]:
    for result in message.tool_results:
        yield "result", _render(result.value)
    if message.text.strip():
        yield "text", message.text.strip()
    for attachment in message.attachments:
        yield "attachment", attachment.media_type, attachment.sha256


def _build_answer_key(text: str, calls: Iterable[ToolCall]) -> tuple[Hashable, ...]:
    made = tuple((call.name, _render(call.arguments)) for call in calls if is_open(call))
    return "answer", text.strip(), made


def _hash_prefixes(items: Sequence[_Item], first: Hashable) -> Sequence[Hashable]:
    """Return a key of the first n items for each n, from 0 on."""
    keys = [first]
    for item in items:
        keys.append(hash((keys[-1], item.key)))
    return keys


def _render(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _list_texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value that are long enough for a prompt."""
    if isinstance(value, str) and len(value.strip()) >= _MIN_PROMPT_CHARACTERS:
        yield value.strip()
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(item)
