"""OpenAI's Chat Completions: https://platform.openai.com/docs/api-reference/chat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import Json, get_object, get_objects, get_text
from ci_agent_eval.model_traffic.formats.openai_chat import (
    CHAT_READER,
    FUNCTION_CALL,
    iterate_fragments,
    parse_call_entry,
)
from ci_agent_eval.model_traffic.formats.sse import get_data, replace_data
from ci_agent_eval.steering.proxy.api import ClientCall, Part

_SEPARATOR = "\n\n"
"""Between the texts of two answers, which a completion has as one text."""

_TEXTS = ("content", "reasoning_content", "reasoning")
"""Texts of a message; the reasoning is of other vendors' models."""


class ChatApi:
    """OpenAI's Chat Completions. Only completions with one choice can be continued."""

    reader = CHAT_READER
    no_calls = "none"

    def list_calls(self, body: Json) -> list[ClientCall]:
        """Return the calls of a completion; the call of older models has no id."""
        message = _get_message(body)
        calls = [_read_call(entry) for entry in get_objects(message, "tool_calls")]
        return [*calls, ClientCall("", None)] if message.get(FUNCTION_CALL) else calls

    def find_obstacle(self, request: Json, body: Json) -> str | None:
        """Return why a completion cannot be continued."""
        if request.get("n") not in (None, 1):
            return "the request asks for several choices"
        reasons = [choice.get("finish_reason") for choice in get_objects(body, "choices")]
        return None if reasons in (["tool_calls"], ["stop"]) else "the answer is incomplete"

    def extend_request(self, request: Json, body: Json, results: Mapping[str, str]) -> Json:
        """Return the request with the message and the results of its calls."""
        # A server may return empty values and refuse them in a request.
        message = {k: v for k, v in _get_message(body).items() if v not in (None, [], {})}
        told = [{"role": "tool", "tool_call_id": i, "content": text} for i, text in results.items()]
        answer = {"role": "assistant", "content": None, **message}
        return {**request, "messages": [*get_objects(request, "messages"), answer, *told]}

    def join_answers(self, earlier: Json, body: Json) -> Json:
        """Return a completion with the texts of both; its usage is the last one's."""
        shown, message = _get_message(earlier), _get_message(body)
        texts = {
            key: _SEPARATOR.join(str(text) for text in (shown[key], message.get(key)) if text)
            for key in _TEXTS
            if shown.get(key)
        }
        choices = get_objects(body, "choices")
        joined = [{**choice, "message": {**message, **texts}} for choice in choices[:1]]
        return {**body, "choices": joined}

    def find_part(self, data: Json) -> Part | None:
        """Return `call` for a chunk with a piece of a call."""
        choices = get_objects(data, "choices")
        return "call" if any(any(iterate_fragments(choice)) for choice in choices) else None

    def is_last(self, raw: bytes, data: Json | None) -> bool:
        """Return whether this is the mark at the end of a completion."""
        return data is None and get_data(raw).strip() == b"[DONE]"

    def create_joiner(self) -> ChatJoiner:
        """Return what joins the chunks of completions."""
        return ChatJoiner()


@dataclass(slots=True)
class ChatJoiner:
    """Joins the chunks of several completions into one with the first one's id."""

    _is_continued: bool = False
    _id: object = None
    _sent: set[str] = field(default_factory=set)
    """Keys of the texts that the client has of the current completion."""
    _to_separate: set[str] = field(default_factory=set)
    """Keys of the texts that it has of earlier ones only."""

    def start_answer(self) -> None:
        """Continue with the chunks of the next completion."""
        self._is_continued = True
        self._to_separate |= self._sent
        self._sent.clear()

    def render(self, raw: bytes, data: Json | None) -> bytes:
        """Return the bytes of a chunk for the client."""
        if data is None:
            return raw
        self._id = self._id or data.get("id")
        choices = [self._separate(choice) for choice in get_objects(data, "choices")]
        if not self._is_continued:
            return raw
        return replace_data(raw, {**data, "id": self._id, "choices": choices})

    def _separate(self, choice: Json) -> Json:
        """Add a separator to the first text of a later completion."""
        delta = dict(get_object(choice, "delta"))
        for key in _TEXTS:
            text = get_text(delta, key)
            if not text:
                continue
            self._sent.add(key)
            if key in self._to_separate:
                delta[key] = _SEPARATOR + text
                self._to_separate.discard(key)
        return {**choice, "delta": delta}


def _get_message(body: Json) -> Json:
    return get_object(next(iter(get_objects(body, "choices")), {}), "message")


def _read_call(entry: Json) -> ClientCall:
    return ClientCall(get_text(entry, "id") or "", *(parse_call_entry(entry) or (None, None)))
