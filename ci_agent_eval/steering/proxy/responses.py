"""OpenAI's Responses: held call items and their outputs.

Shapes: https://platform.openai.com/docs/api-reference/responses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    get_objects,
    get_text,
    render_compact_json,
)
from ci_agent_eval.model_traffic.formats.openai_responses import RESPONSES_READER
from ci_agent_eval.model_traffic.formats.response_items import get_item_role, read_text
from ci_agent_eval.steering.proxy.answer_parts import (
    PartRules,
    collect_keys,
    hold_parts,
    restore_parts,
)
from ci_agent_eval.steering.proxy.dialect import ClientCall, FindHeld, HeldAnswer
from ci_agent_eval.steering.proxy.responses_events import ResponsesEditor, parse_client_call

_CLIENT_CALLS = (
    "apply_patch_call",
    "computer_call",
    "custom_tool_call",
    "function_call",
    "local_shell_call",
    "mcp_approval_request",
    "shell_call",
)


class ResponsesDialect:
    """OpenAI's Responses."""

    reader = RESPONSES_READER
    has_stored_answers = True

    def list_calls(self, body: Json) -> list[ClientCall]:
        """Return the calls of a response that the client is to run."""
        return [
            _read_call(item)
            for item in get_objects(body, "output")
            if _get_call_id(item) is not None
        ]

    def is_cut_off(self, body: Json) -> bool:
        """Return whether a response ended before its regular end."""
        return body.get("status") != "completed"

    def find_obstacle(self, request: Json) -> str | None:
        """Return why a response cannot be continued: the client may fetch it by its id."""
        return "the response runs in the background" if request.get("background") else None

    def hold_calls(self, body: Json, messages: Mapping[str, str]) -> tuple[Json, HeldAnswer]:
        """Return the response without held calls, and what has to be remembered."""
        shown, held = hold_parts(get_objects(body, "output"), messages, _RULES)
        return {**body, "output": shown}, held

    def build_request(self, request: Json, body: Json, held: HeldAnswer) -> Json:
        """Return the request with the response's items and the outputs of its calls.

        The provider adds the items of a response to its conversation; `previous_response_id`
        stays, so that the last response has the whole history, also where nothing is stored.
        """
        if list_conversations(request):
            return {**request, "input": held.results}
        items = [i for i in get_objects(body, "output") if _can_be_sent(i, request)]
        return {**request, "input": [*list_input_items(request), *items, *held.results]}

    def forbid_calls(self, request: Json) -> Json:
        """Return a request that lets the model answer with text only."""
        return {**request, "tool_choice": "none"}

    def merge_answers(self, shown: Json, body: Json) -> Json:
        """Return one response with the items of both; its usage is the last one's."""
        return {**body, "output": [*get_objects(shown, "output"), *get_objects(body, "output")]}

    def count_answers(self, request: Json) -> int:
        """Return the number of the model's answers in a client's history."""
        roles = [get_item_role(item) for item in get_objects(request, "input")]
        return sum(role == "assistant" for role, _ in groupby(roles))

    def list_anchors(self, body: Json, number: int) -> list[str]:
        """Return the ids of calls, or the text of a response without calls."""
        items = get_objects(body, "output")
        ids = [call_id for item in items if (call_id := _get_call_id(item))]
        found = ids or ["".join(map(read_text, items)).strip()]
        return [f"{number}:{anchor}" for anchor in found]

    def restore(self, request: Json, find: FindHeld) -> bool:
        """Insert held calls and their outputs into a request; return whether there were any."""
        items = get_objects(request, "input")
        runs = [(role, list(run)) for role, run in groupby(items, get_item_role)]
        restored: list[Json] = []
        number = 0
        for at, (role, run) in enumerate(runs):
            is_answer = role == "assistant" and at < len(runs) - 1
            anchors = self.list_anchors({"output": run}, number) if is_answer else []
            held = find(anchors) if is_answer else ()
            number += role == "assistant"
            for answer in restore_parts(run, held, _RULES):
                restored += [*answer.parts, *answer.results]
        is_changed = len(restored) > len(items)
        if is_changed:
            request["input"] = restored
        return is_changed

    def create_editor(self) -> ResponsesEditor:
        """Return an editor for the events of a response."""
        return ResponsesEditor()


def list_input_items(request: Json) -> list[object]:
    """Return the input of a request as items."""
    items = request.get("input")
    if isinstance(items, str):
        return [{"type": "message", "role": "user", "content": items}]
    return list(items) if isinstance(items, list) else []


def list_conversations(request: Json) -> list[str]:
    """Return the provider's conversation of a request, if it has one."""
    value = request.get("conversation")
    value = value.get("id") if isinstance(value, dict) else value
    return [value] if isinstance(value, str) and value else []


def _can_be_sent(item: Json, request: Json) -> bool:
    """Return whether the provider takes an item: it does not store the reasoning of all."""
    is_stored = request.get("store") is not False
    return is_stored or item.get("type") != "reasoning" or bool(item.get("encrypted_content"))


def _read_call(item: Json) -> ClientCall:
    call = parse_client_call(item)
    return ClientCall(_get_call_id(item) or "", *(call or (None, None)))


def _get_call_id(item: Json) -> str | None:
    if item.get("type") not in _CLIENT_CALLS:
        return None
    return get_text(item, "call_id") or ""


def _get_keys(item: Json) -> frozenset[str]:
    texts = [text.strip()] if (text := read_text(item)) else []
    return collect_keys(item, "id", "call_id", "encrypted_content") | frozenset(texts)


def _build_result(item: Json, message: str) -> Json:
    """Build the output item of a call, with a failing exit code if its format has one."""
    kind = str(item["type"])
    result: Json = {"type": f"{kind}_output", "call_id": item["call_id"], "output": message}
    if kind == "local_shell_call":
        output = {"output": message, "metadata": {"exit_code": 1}}
        text = render_compact_json(output).decode()
        return {"type": result["type"], "id": item["call_id"], "output": text}
    if kind == "shell_call":
        outcome = {"type": "exit", "exit_code": 1}
        result["output"] = [{"stdout": "", "stderr": message, "outcome": outcome}]
    return result


_RULES = PartRules(get_call_id=_get_call_id, get_keys=_get_keys, build_result=_build_result)


def list_unanswered(results: Sequence[Json], items: Sequence[object]) -> list[Json]:
    """Return the results that a request's items do not contain."""
    answered = {_get_answered_id(item) for item in items}
    return [result for result in results if _get_answered_id(result) not in answered]


def _get_answered_id(item: object) -> object:
    """Return the call id of an output item; None for other items."""
    if not isinstance(item, dict) or not str(item.get("type")).endswith("_output"):
        return None
    return item.get("call_id", item.get("id"))
