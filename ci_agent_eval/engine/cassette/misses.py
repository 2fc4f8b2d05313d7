"""Messages for cassette misses: the changed part of the request, as a short diff.

All compared values are already redacted.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence

from ci_agent_eval.engine.cassette.canonical import CanonicalRequest, Json
from ci_agent_eval.engine.infrastructure_errors import ModelError

MAX_LINES = 16
"""Longest diff in a message, in lines."""
MAX_LINE_LENGTH = 160


Changes = Iterator[tuple[str, str]]
"""Label and diff of each changed part."""


class CassetteMissError(ModelError):
    """A request without a recorded response in replay, where no model may be called."""


def find_nearest_request(
    request: CanonicalRequest, recorded: Sequence[CanonicalRequest]
) -> CanonicalRequest | None:
    """Return the most similar recorded request; the first of several equals."""
    return max(recorded, key=lambda other: _measure_similarity(request, other), default=None)


def _measure_similarity(request: CanonicalRequest, other: CanonicalRequest) -> tuple[int, int, int]:
    pairs = zip(request.digests, other.digests, strict=False)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    heads = sum(1 for name in request.head if request.head[name] == other.head.get(name))
    closeness = -abs(len(request.messages) - len(other.messages))
    return (same, closeness, heads + (request.tools_digest == other.tools_digest))


def find_changes(old: CanonicalRequest, new: CanonicalRequest) -> Changes:
    """Yield the label and diff of each part that differs from the recorded request."""
    for name, label in _HEAD.items():
        before, after = old.head.get(name), new.head.get(name)
        if before != after:
            yield label, _render_diff(before, after)
    yield from _find_toolset_changes(_index_tools(old.tools), _index_tools(new.tools))
    if old.tools != new.tools and _index_tools(old.tools) == _index_tools(new.tools):
        yield (
            "the order of the tools",
            _render_diff([*_index_tools(old.tools)], [*_index_tools(new.tools)]),
        )
    yield from _find_message_changes(old.messages, new.messages)


_HEAD = {
    "model": "the model",
    "settings": "the model settings",
    "instructions": "the system prompt",
    "output": "the output it is asked for",
}


def describe_changes(old: CanonicalRequest, new: CanonicalRequest) -> str:
    """List the changed parts in one line, followed by a short diff of each."""
    changes = list(find_changes(old, new))
    if not changes:
        return "nothing changed, but it was asked more often than it was recorded"
    lines = [line for label, diff in changes for line in (f"--- {label}", *diff.splitlines())]
    hidden = len(lines) - MAX_LINES
    diff_lines = [_shorten_line(line) for line in lines[:MAX_LINES]]
    diff_lines += [f"... and {hidden} more lines"] if hidden > 0 else []
    return f"changed: {', '.join(label for label, _ in changes)}\n" + "\n".join(diff_lines)


def _find_toolset_changes(old: Mapping[str, Json], new: Mapping[str, Json]) -> Changes:
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before is None:
            yield f"the tools ({name!r} is new)", f"+ {name}"
        elif after is None:
            yield f"the tools ({name!r} is gone)", f"- {name}"
        else:
            yield from _find_tool_changes(name, before, after)


def _find_tool_changes(name: str, old: Json, new: Json) -> Changes:
    for field in sorted(old.keys() | new.keys()):
        if old.get(field) != new.get(field):
            label = _TOOL_FIELDS.get(field, field)
            yield f"the {label} of tool {name!r}", _render_diff(old.get(field), new.get(field))


_TOOL_FIELDS = {"parameters_json_schema": "parameters"}


def _find_message_changes(old: Sequence[Json], new: Sequence[Json]) -> Changes:
    """Yield the first difference of the conversation; later ones are its consequences."""
    before = [part for message in old for part in message["parts"]]
    after = [part for message in new for part in message["parts"]]
    for was, now in itertools.zip_longest(before, after):
        if was == now:
            continue
        if was is None or now is None:
            longer = "longer" if was is None else "shorter"
            yield f"the conversation (it is {longer})", _render_diff(was, now)
            return
        yield (
            _describe_part(was, now),
            _render_diff(_select_changed_value(was, now), _select_changed_value(now, was)),
        )
        return


def _select_changed_value(part: Json, other: Json) -> object:
    """Return the only field that differs, or the whole part."""
    differing = [name for name in part.keys() | other.keys() if part.get(name) != other.get(name)]
    return part.get(differing[0]) if len(differing) == 1 else part


def _describe_part(old: Json, new: Json) -> str:
    if old["part_kind"] != new["part_kind"]:
        return f"the conversation ({new['part_kind']} in place of {old['part_kind']})"
    label = _PARTS.get(old["part_kind"], f"the {old['part_kind']}")
    tool = f" of {new['tool_name']!r}" if "tool_name" in new else ""
    return label + tool


_PARTS = {
    "user-prompt": "the prompt",
    "system-prompt": "the system prompt",
    "tool-call": "the arguments",
    "tool-return": "the result",
    "text": "what the model said",
    "retry-feedback": "the feedback to the model",
}


def _index_tools(tools: Sequence[Json]) -> dict[str, Json]:
    return {str(tool.get("name")): tool for tool in tools}


def _render_diff(old: object, new: object) -> str:
    lines = difflib.unified_diff(_render_lines(old), _render_lines(new), lineterm="", n=1)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def _render_lines(value: object) -> list[str]:
    if value is None:
        return []
    from ci_agent_eval.engine.cassette.yaml_text import render_cassette_yaml  # noqa: PLC0415 - most need no YAML

    return (value if isinstance(value, str) else render_cassette_yaml(value)).splitlines()


def _shorten_line(line: str) -> str:
    return line if len(line) <= MAX_LINE_LENGTH else f"{line[:MAX_LINE_LENGTH]}… (cut)"
