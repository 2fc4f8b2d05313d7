"""Anthropic's Messages: held `tool_use` blocks and their results.

Shapes: https://docs.anthropic.com/en/api/messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from ci_agent_eval.model_traffic.formats.anthropic_messages import MESSAGES_READER, parse_tool_use
from ci_agent_eval.model_traffic.formats.json_values import Json, get_objects, get_text, join_texts
from ci_agent_eval.steering.proxy.answer_parts import (
    PartRules,
    RestoredAnswer,
    collect_keys,
    hold_parts,
    restore_parts,
)
from ci_agent_eval.steering.proxy.dialect import ClientCall, FindHeld, HeldAnswer
from ci_agent_eval.steering.proxy.messages_events import MessagesEditor, is_programmatic


class MessagesDialect:
    """Anthropic's Messages."""

    reader = MESSAGES_READER
    has_stored_answers = False

    def list_calls(self, body: Json) -> list[ClientCall]:
        """Return the calls of a message that the client is to run."""
        return [
            _read_call(block)
            for block in get_objects(body, "content")
            if block.get("type") == "tool_use"
        ]

    def is_cut_off(self, body: Json) -> bool:
        """Return whether a message ended before its regular end."""
        return body.get("stop_reason") != "tool_use"

    def find_obstacle(self, _request: Json) -> str | None:
        """Return None: every message can be continued."""
        return None

    def hold_calls(self, body: Json, messages: Mapping[str, str]) -> tuple[Json, HeldAnswer]:
        """Return the message without held calls, and what has to be remembered."""
        shown, held = hold_parts(get_objects(body, "content"), messages, _RULES)
        return {**body, "content": shown}, held

    def build_request(self, request: Json, body: Json, held: HeldAnswer) -> Json:
        """Return the request with the message and the results of its calls."""
        # The API returns empty texts and refuses them in requests.
        blocks = [b for b in get_objects(body, "content") if b.get("text") != ""]
        answer = {"role": "assistant", "content": blocks}
        results = {"role": "user", "content": held.results}
        return {**request, "messages": [*get_objects(request, "messages"), answer, results]}

    def forbid_calls(self, request: Json) -> Json:
        """Return a request that lets the model answer with text only."""
        return {**request, "tool_choice": {"type": "none"}}

    def merge_answers(self, shown: Json, body: Json) -> Json:
        """Return one message with the blocks of both; its usage is the last one's."""
        return {**body, "content": [*get_objects(shown, "content"), *get_objects(body, "content")]}

    def count_answers(self, request: Json) -> int:
        """Return the number of the model's answers in a client's history."""
        roles = [message.get("role") for message in get_objects(request, "messages")]
        return sum(role == "assistant" for role, _ in groupby(roles))

    def list_anchors(self, body: Json, number: int) -> list[str]:
        """Return the ids of calls, or the text of a message without calls."""
        blocks = get_objects(body, "content")
        ids = [call_id for block in blocks if (call_id := _get_call_id(block))]
        found = ids or [join_texts(blocks).strip()]
        return [f"{number}:{anchor}" for anchor in found]

    def restore(self, request: Json, find: FindHeld) -> bool:
        """Insert held calls and their results into a request; return whether there were any."""
        messages = get_objects(request, "messages")
        runs = [(role, list(run)) for role, run in groupby(messages, lambda m: m.get("role"))]
        history = _History()
        number = 0
        for at, (role, run) in enumerate(runs):
            is_answer = role == "assistant" and at < len(runs) - 1
            blocks = [block for message in run for block in _list_blocks(message)]
            anchors = self.list_anchors({"content": blocks}, number) if is_answer else []
            held = find(anchors) if is_answer else ()
            number += role == "assistant"
            if held:
                history.add_answers(restore_parts(blocks, held, _RULES))
            else:
                history.add_messages(run)
        request["messages"] = history.messages if history.is_changed else request.get("messages")
        return history.is_changed

    def create_editor(self) -> MessagesEditor:
        """Return an editor for the events of a message."""
        return MessagesEditor()


class _History:
    """The messages for the provider; results wait for the next message of the user."""

    def __init__(self) -> None:
        self.messages: list[Json] = []
        self.is_changed = False
        self._results: list[Json] = []

    def add_answers(self, answers: list[RestoredAnswer]) -> None:
        self.is_changed = True
        for answer in answers:
            if answer.parts:
                self._add_results()
                self.messages.append({"role": "assistant", "content": answer.parts})
            self._results += answer.results

    def add_messages(self, run: list[Json]) -> None:
        if self._results and run[0].get("role") == "user":
            # Results have to come first in a message; the client's own follow.
            content = [*self._results, *_list_blocks(run[0])]
            run = [{**run[0], "content": content}, *run[1:]]
            self._results = []
        self._add_results()
        self.messages += run

    def _add_results(self) -> None:
        if self._results:
            self.messages.append({"role": "user", "content": self._results})
            self._results = []


def _list_blocks(message: Json) -> list[Json]:
    text = get_text(message, "content")
    return [{"type": "text", "text": text}] if text else get_objects(message, "content")


def _read_call(block: Json) -> ClientCall:
    call = None if is_programmatic(block) else parse_tool_use(block)
    is_readable = call is not None and isinstance(call[1], dict)
    tool, arguments = call if call is not None and is_readable else (None, None)
    return ClientCall(get_text(block, "id") or "", tool, arguments)


def _get_call_id(block: Json) -> str | None:
    return get_text(block, "id") or "" if block.get("type") == "tool_use" else None


def _build_result(block: Json, message: str) -> Json:
    return {"type": "tool_result", "tool_use_id": block["id"], "content": message}


_RULES = PartRules(
    get_call_id=_get_call_id,
    get_keys=lambda block: collect_keys(block, "id", "text", "signature", "data", "tool_use_id"),
    build_result=_build_result,
)
