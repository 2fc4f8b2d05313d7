"""OpenAI's Chat Completions: https://platform.openai.com/docs/api-reference/chat.

Only completions with one choice can be continued.
"""

from __future__ import annotations

from collections.abc import Mapping

from ci_agent_eval.model_traffic.formats.chat_calls import (
    FUNCTION_CALL,
    iterate_fragments,
    parse_call_entry,
)
from ci_agent_eval.model_traffic.formats.json_values import Json, get_object, get_objects, get_text
from ci_agent_eval.model_traffic.formats.openai_chat import CHAT_READER
from ci_agent_eval.model_traffic.formats.sse import get_data
from ci_agent_eval.steering.proxy.api import Api, ClientCall, Joiner, Part

_SEPARATOR = "\n\n"
"""Between the texts of two answers, which a completion has as one text."""

_TEXTS = ("content", "reasoning_content", "reasoning")
"""Texts of a message; the reasoning is of other vendors' models."""


def _get_message(body: Json) -> Json:
    return get_object(next(iter(get_objects(body, "choices")), {}), "message")


def _list_calls(body: Json) -> list[ClientCall]:
    message = _get_message(body)
    calls = [_read_call(entry) for entry in get_objects(message, "tool_calls")]
    # The call of older models has no id.
    return [*calls, ClientCall("", None)] if message.get(FUNCTION_CALL) else calls


def _read_call(entry: Json) -> ClientCall:
    return ClientCall(get_text(entry, "id") or "", *(parse_call_entry(entry) or (None, None)))


def _find_obstacle(request: Json, body: Json) -> str | None:
    if request.get("n") not in (None, 1):
        return "the request asks for several choices"
    reasons = [choice.get("finish_reason") for choice in get_objects(body, "choices")]
    return None if reasons in (["tool_calls"], ["stop"]) else "the answer is incomplete"


def _extend_request(request: Json, body: Json, results: Mapping[str, str]) -> Json:
    # A server may return empty values and refuse them in a request.
    message = {k: v for k, v in _get_message(body).items() if v not in (None, [], {})}
    told = [{"role": "tool", "tool_call_id": i, "content": text} for i, text in results.items()]
    answer = {"role": "assistant", "content": None, **message}
    return {**request, "messages": [*get_objects(request, "messages"), answer, *told]}


def _join_answers(earlier: Json, body: Json) -> Json:
    """Return a completion with the texts of both; its usage is the last one's."""
    shown, message = _get_message(earlier), _get_message(body)
    texts = {
        key: _SEPARATOR.join(str(text) for text in (shown[key], message.get(key)) if text)
        for key in _TEXTS
        if shown.get(key)
    }
    choices = get_objects(body, "choices")
    return {**body, "choices": [{**each, "message": {**message, **texts}} for each in choices[:1]]}


def _find_part(data: Json) -> Part | None:
    choices = get_objects(data, "choices")
    return "call" if any(any(iterate_fragments(choice)) for choice in choices) else None


def _is_last(raw: bytes, data: Json | None) -> bool:
    return data is None and get_data(raw).strip() == b"[DONE]"


class _ChatJoiner(Joiner):
    """Joins the chunks of several completions into one with the first one's id."""

    def __init__(self) -> None:
        self._id: object = None
        self._sent: set[str] = set()
        """Keys of the texts that the client has of the current completion."""
        self._to_separate: set[str] = set()
        """Keys of the texts that it has of earlier ones only."""

    def start_answer(self) -> None:
        """Continue with the chunks of the next completion."""
        super().start_answer()
        self._to_separate |= self._sent
        self._sent.clear()

    def change(self, data: Json) -> Json | None:
        """Return a chunk with the first completion's id, and a separator before its first text."""
        self._id = self._id or data.get("id")
        choices = [self._separate(choice) for choice in get_objects(data, "choices")]
        return {**data, "id": self._id, "choices": choices}

    def _separate(self, choice: Json) -> Json:
        delta = dict(get_object(choice, "delta"))
        for key in _TEXTS:
            text = get_text(delta, key)
            if text and key in self._to_separate:
                delta[key] = _SEPARATOR + text
                self._to_separate.discard(key)
            if text:
                self._sent.add(key)
        return {**choice, "delta": delta}


CHAT = Api(
    CHAT_READER,
    "none",
    _list_calls,
    _find_obstacle,
    _extend_request,
    _join_answers,
    _find_part,
    _is_last,
    _ChatJoiner,
)
