"""OpenAI's Chat Completions: held calls and their results.

Shapes: https://platform.openai.com/docs/api-reference/chat.
"""

from __future__ import annotations

from collections.abc import Mapping

from ci_agent_eval.model_traffic.formats.chat_calls import FUNCTION_CALL, parse_call_entry
from ci_agent_eval.model_traffic.formats.json_values import Json, get_object, get_objects, get_text
from ci_agent_eval.model_traffic.formats.openai_chat import CHAT_READER
from ci_agent_eval.steering.proxy.chat_events import SEPARATOR, ChatEditor
from ci_agent_eval.steering.proxy.dialect import ClientCall, FindHeld, HeldAnswer, HeldCall


class ChatDialect:
    """OpenAI's Chat Completions. Only completions with one choice can be continued."""

    reader = CHAT_READER
    has_stored_answers = False

    def list_calls(self, body: Json) -> list[ClientCall]:
        """Return the calls of a completion; the call of older models has no id."""
        message = _get_message(body)
        calls = [_read_call(entry) for entry in get_objects(message, "tool_calls")]
        return [*calls, ClientCall("", None)] if message.get(FUNCTION_CALL) else calls

    def is_cut_off(self, body: Json) -> bool:
        """Return whether a completion ended before its regular end."""
        reasons = [choice.get("finish_reason") for choice in get_objects(body, "choices")]
        return reasons not in (["tool_calls"], ["stop"])

    def find_obstacle(self, request: Json) -> str | None:
        """Return why a completion cannot be continued: it has several choices."""
        return None if request.get("n") in (None, 1) else "the request asks for several choices"

    def hold_calls(self, body: Json, messages: Mapping[str, str]) -> tuple[Json, HeldAnswer]:
        """Return the completion without held calls, and what has to be remembered."""
        message = _get_message(body)
        entries = get_objects(message, "tool_calls")
        kept = [entry for entry in entries if get_text(entry, "id") not in messages]
        shown = {key: value for key, value in message.items() if key != "tool_calls"}
        sent = {key: value for key, value in shown.items() if value not in _EMPTY}
        held = tuple(
            HeldCall(_count_before(at, entries, kept), entry, _build_result(entry, messages))
            for at, entry in enumerate(entries)
            if get_text(entry, "id") in messages
        )
        answer = HeldAnswer(held, has_client_calls=bool(kept), shown_message=sent)
        return _replace_message(body, {**shown, "tool_calls": kept} if kept else shown), answer

    def build_request(self, request: Json, _body: Json, held: HeldAnswer) -> Json:
        """Return the request with the message and the results of its calls."""
        messages = [*get_objects(request, "messages"), *_build_messages(held)]
        return {**request, "messages": messages}

    def forbid_calls(self, request: Json) -> Json:
        """Return a request that lets the model answer with text only."""
        return {**request, "tool_choice": "none"}

    def merge_answers(self, shown: Json, body: Json) -> Json:
        """Return one completion with the texts of both; its usage is the last one's."""
        earlier, message = _get_message(shown), _get_message(body)
        texts: Json = {}
        for key in _list_texts(earlier):
            parts = [text for text in (earlier[key], message.get(key)) if text]
            texts[key] = SEPARATOR.join(map(str, parts))
        return _replace_message(body, {**message, **texts})

    def count_answers(self, request: Json) -> int:
        """Return the number of the model's answers in a client's history."""
        messages = get_objects(request, "messages")
        return sum(message.get("role") == "assistant" for message in messages)

    def list_anchors(self, body: Json, number: int) -> list[str]:
        """Return the ids of calls, or the text of a message without calls."""
        return _list_anchors(_get_message(body), number)

    def restore(self, request: Json, find: FindHeld) -> bool:
        """Insert held calls and their results into a request; return whether there were any."""
        messages = get_objects(request, "messages")
        restored: list[Json] = []
        results: list[Json] = []
        number = 0
        for at, message in enumerate(messages):
            if message.get("role") != "tool":
                restored, results = [*restored, *results], []
            is_assistant = message.get("role") == "assistant"
            is_answer = is_assistant and at < len(messages) - 1
            held = find(_list_anchors(message, number)) if is_answer else ()
            number += is_assistant
            for answer in held:
                if answer.has_client_calls:
                    message, results = _insert_held(message, answer), answer.results  # noqa: PLW2901
                else:
                    restored += _build_messages(answer)
                    message = _remove_shown(message, answer.shown_message)  # noqa: PLW2901
            restored.append(message)
        restored += results
        is_changed = restored != messages
        if is_changed:
            request["messages"] = restored
        return is_changed

    def create_editor(self) -> ChatEditor:
        """Return an editor for the chunks of a completion."""
        return ChatEditor()


_EMPTY: tuple[object, ...] = (None, [], {})
"""Values that a server may return and refuse in a request."""


def _get_message(body: Json) -> Json:
    return get_object(next(iter(get_objects(body, "choices")), {}), "message")


def _replace_message(body: Json, message: Json) -> Json:
    choices = get_objects(body, "choices")
    return {**body, "choices": [{**choices[0], "message": message}]} if choices else body


def _read_call(entry: Json) -> ClientCall:
    call = parse_call_entry(entry)
    return ClientCall(get_text(entry, "id") or "", *(call or (None, None)))


def _count_before(at: int, entries: list[Json], kept: list[Json]) -> int:
    return sum(any(entry is other for other in kept) for entry in entries[:at])


def _build_result(entry: Json, messages: Mapping[str, str]) -> Json:
    call_id = str(entry["id"])
    return {"role": "tool", "tool_call_id": call_id, "content": messages[call_id]}


def _build_messages(held: HeldAnswer) -> list[Json]:
    """Build the message with held calls only, and their results."""
    calls = [call.part for call in held.held]
    return [
        {"role": "assistant", "content": None, **held.shown_message, "tool_calls": calls},
        *held.results,
    ]


def _insert_held(message: Json, answer: HeldAnswer) -> Json:
    entries = list(get_objects(message, "tool_calls"))
    for call in reversed(answer.held):
        entries.insert(call.position, call.part)
    return {**message, "tool_calls": entries}


def _remove_shown(message: Json, shown: Json) -> Json:
    """Remove the texts of an earlier answer from the beginning of the client's message."""
    changed = dict(message)
    for key in _list_texts(shown):
        text, earlier = changed.get(key), str(shown[key])
        if isinstance(text, str) and text.startswith(earlier):
            changed[key] = text[len(earlier) :].removeprefix(SEPARATOR)
    return changed


def _list_texts(message: Json) -> list[str]:
    """Return the keys of texts, such as the reasoning of other vendors' models."""
    return [
        key for key, value in message.items() if key != "role" and value and isinstance(value, str)
    ]


def _list_anchors(message: Json, number: int) -> list[str]:
    entries = get_objects(message, "tool_calls")
    ids = [call_id for entry in entries if (call_id := get_text(entry, "id"))]
    found = ids or [CHAT_READER.read(_wrap(message)).text.strip()]
    return [f"{number}:{anchor}" for anchor in found]


def _wrap(message: Json) -> Json:
    return {"choices": [{"message": message}]}
