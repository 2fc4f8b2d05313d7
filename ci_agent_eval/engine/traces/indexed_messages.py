"""Messages in indexed attributes, as OpenInference and older GenAI instrumentations write them.

OpenInference: `llm.input_messages.0.message.tool_calls.0.tool_call.function.name`
(https://arize-ai.github.io/openinference/spec/semantic_conventions.html). Older OpenLLMetry:
`gen_ai.prompt.0.tool_calls.0.name`. Pure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

Message = dict[str, Any]
"""A message of the conventions: `role`, and `parts` that each have a `type`."""

_INPUT = re.compile(r"(?:llm\.input_messages|gen_ai\.prompt)\.(\d{1,5})\.(?:message\.)?(.+)")
_OUTPUT = re.compile(r"(?:llm\.output_messages|gen_ai\.completion)\.(\d{1,5})\.(?:message\.)?(.+)")
_CALL = re.compile(r"tool_calls\.(\d{1,5})\.(?:tool_call\.)?(?:function\.)?(id|name|arguments)")
_TEXT = re.compile(r"contents\.(\d{1,5})\.message_content\.text")


def read_indexed_input(attributes: Mapping[str, Any]) -> list[Message]:
    """Return the messages to the model."""
    return list(_read_messages(attributes, _INPUT))


def read_indexed_output(attributes: Mapping[str, Any]) -> list[Message]:
    """Return the messages from the model."""
    return list(_read_messages(attributes, _OUTPUT))


def _read_messages(attributes: Mapping[str, Any], name: re.Pattern[str]) -> Iterator[Message]:
    for fields in _group_by_index(attributes, name):
        if fields.get("role") == "tool":
            result = {"id": fields.get("tool_call_id"), "response": fields.get("content")}
            yield {"role": "tool", "parts": [{"type": "tool_call_response", **result}]}
            continue
        parts: list[Message] = [
            {"type": "tool_call", **call} for call in _group_by_index(fields, _CALL)
        ]
        content = fields.get("content")
        texts = [text for _, text in _sort_matches(fields, _TEXT)] if content is None else [content]
        parts += [{"type": "text", "content": text} for text in texts]
        if parts:
            yield {"role": fields.get("role"), "parts": parts}


def _group_by_index(
    attributes: Mapping[str, Any], name: re.Pattern[str]
) -> Iterator[dict[str, Any]]:
    """Yield the attributes of each index, with the rest of their names."""
    found: dict[int, dict[str, Any]] = defaultdict(dict)
    for match, value in _sort_matches(attributes, name):
        found[int(match[1])][match[2]] = value
    yield from found.values()


def _sort_matches(
    attributes: Mapping[str, Any], name: re.Pattern[str]
) -> list[tuple[re.Match[str], Any]]:
    matches = [(name.fullmatch(key), value) for key, value in attributes.items()]
    known = [(match, value) for match, value in matches if match is not None]
    return sorted(known, key=lambda pair: int(pair[0][1]))
