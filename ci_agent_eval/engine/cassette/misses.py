"""Messages for cassette misses: the changed part of the request, as a short diff.

All compared values are already redacted.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ci_agent_eval.engine.cassette.canonical import CanonicalRequest, Json
from ci_agent_eval.engine.cassette.document import RecordedRequest
from ci_agent_eval.engine.cassette.rules import SETTING, suggest_rules
from ci_agent_eval.engine.cassette.tool_request import ToolRequest
from ci_agent_eval.engine.cassette.traffic_request import TrafficRequest
from ci_agent_eval.engine.infrastructure_errors import ModelError
from ci_agent_eval.model_traffic.recorder import MissingRecordingError

MAX_LINES = 16
"""Longest diff in a message, in lines."""
MAX_LINE_LENGTH = 160


@dataclass(frozen=True, slots=True)
class _Change:
    """A changed part of a request, and its recorded and its new value."""

    label: str
    old: object
    new: object


class CassetteMissError(ModelError, MissingRecordingError):
    """A request without a recorded response in replay, where no model may be called."""


def find_nearest_request(
    request: RecordedRequest, recorded: Sequence[RecordedRequest]
) -> RecordedRequest | None:
    """Return the most similar recorded request of the kind; the first of several equals."""
    similar = [other for other in recorded if type(other) is type(request)]
    return max(similar, key=lambda other: _measure_similarity(request, other), default=None)


def _measure_similarity(request: RecordedRequest, other: RecordedRequest) -> tuple[int, int, int]:
    if isinstance(request, CanonicalRequest) and isinstance(other, CanonicalRequest):
        heads = sum(1 for name in request.head if request.head[name] == other.head.get(name))
        rest = heads + (request.tools_digest == other.tools_digest)
        return (*_compare_lists(request.digests, other.digests), rest)
    if isinstance(request, TrafficRequest) and isinstance(other, TrafficRequest):
        compared = [
            _compare_lists(digests, other.digests.get(name, ()))
            for name, digests in request.digests.items()
        ]
        fields = sum(1 for name in request.body if request.body[name] == other.body.get(name))
        same, closeness = (sum(figures) for figures in zip((0, 0), *compared, strict=True))
        return (same, closeness, fields + (request.format == other.format))
    if isinstance(request, ToolRequest) and isinstance(other, ToolRequest):
        return (request.tool == other.tool, request.arguments == other.arguments, 0)
    return (0, 0, 0)


def _compare_lists(new: Sequence[str], old: Sequence[str]) -> tuple[int, int]:
    """Return the number of equal items at the start, and minus the difference in length."""
    pairs = zip(new, old, strict=False)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    return same, -abs(len(new) - len(old))


def _find_changes(old: RecordedRequest, new: RecordedRequest) -> Iterator[_Change]:
    """Yield each part that differs from the recorded request."""
    if isinstance(old, CanonicalRequest) and isinstance(new, CanonicalRequest):
        yield from _find_message_request_changes(old, new)
    if isinstance(old, TrafficRequest) and isinstance(new, TrafficRequest):
        yield from _find_traffic_changes(old, new)
    if isinstance(old, ToolRequest) and isinstance(new, ToolRequest):
        if old.tool != new.tool:
            yield _Change("the tool", old.tool, new.tool)
        if old.arguments != new.arguments:
            label = f"the arguments of tool {new.tool!r}"
            yield _Change(label, old.arguments, new.arguments)


def _find_traffic_changes(old: TrafficRequest, new: TrafficRequest) -> Iterator[_Change]:
    if old.format != new.format:
        yield _Change("the format", old.format, new.format)
    for name in sorted(old.body.keys() | new.body.keys()):
        if old.body.get(name) != new.body.get(name):
            yield _find_first_difference(name, old.body.get(name), new.body.get(name))
    if old.previous != new.previous:
        yield _Change("the exchange whose answer is continued", old.previous, new.previous)


def _find_first_difference(path: str, old: object, new: object) -> _Change:
    """Return the innermost value that holds all differences, or of a list the first one."""
    if isinstance(old, dict) and isinstance(new, dict):
        differing = [k for k in sorted(old.keys() | new.keys()) if old.get(k) != new.get(k)]
        if len(differing) == 1:
            name = differing[0]
            return _find_first_difference(f"{path}.{name}", old.get(name), new.get(name))
    if isinstance(old, list) and isinstance(new, list):
        for number, (before, after) in enumerate(itertools.zip_longest(old, new)):
            if before != after:
                return _find_first_difference(f"{path}[{number}]", before, after)
    return _Change(path, old, new)


def _find_message_request_changes(
    old: CanonicalRequest, new: CanonicalRequest
) -> Iterator[_Change]:
    for name, label in _HEAD.items():
        before, after = old.head.get(name), new.head.get(name)
        if before != after:
            yield _Change(label, before, after)
    yield from _find_toolset_changes(_index_tools(old.tools), _index_tools(new.tools))
    if old.tools != new.tools and _index_tools(old.tools) == _index_tools(new.tools):
        names = [*_index_tools(old.tools)], [*_index_tools(new.tools)]
        yield _Change("the order of the tools", *names)
    yield from _find_message_changes(old.messages, new.messages)


_HEAD = {
    "model": "the model",
    "settings": "the model settings",
    "instructions": "the system prompt",
    "output": "the output it is asked for",
}


def describe_changes(old: RecordedRequest, new: RecordedRequest) -> str:
    """List the changed parts in one line, followed by a short diff of each.

    The last line names the rules that would make the two requests equal, if they are of a kind
    that usually varies.
    """
    changes = list(_find_changes(old, new))
    if not changes:
        return "nothing changed, but it was asked more often than it was recorded"
    diffs = [(change.label, _render_diff(change.old, change.new)) for change in changes]
    lines = [line for label, diff in diffs for line in (f"--- {label}", *diff.splitlines())]
    hidden = len(lines) - MAX_LINES
    diff_lines = [_shorten_line(line) for line in lines[:MAX_LINES]]
    diff_lines += [f"... and {hidden} more lines"] if hidden > 0 else []
    labels = ", ".join(change.label for change in changes)
    return f"changed: {labels}\n" + "\n".join([*diff_lines, *_describe_rules(changes)])


def _describe_rules(changes: Sequence[_Change]) -> Iterator[str]:
    """Yield the line with the rules that help, if there are any."""
    rules = suggest_rules([c.old for c in changes], [c.new for c in changes])
    if rules:
        lines = "".join(f"\n  {rule}" for rule in rules)
        yield f"if this differs in every run, add to the ini setting {SETTING}:{lines}"


def _find_toolset_changes(old: Mapping[str, Json], new: Mapping[str, Json]) -> Iterator[_Change]:
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before is None:
            yield _Change(f"the tools ({name!r} is new)", None, name)
        elif after is None:
            yield _Change(f"the tools ({name!r} is gone)", name, None)
        else:
            yield from _find_tool_changes(name, before, after)


def _find_tool_changes(name: str, old: Json, new: Json) -> Iterator[_Change]:
    for field in sorted(old.keys() | new.keys()):
        if old.get(field) != new.get(field):
            label = _TOOL_FIELDS.get(field, field)
            yield _Change(f"the {label} of tool {name!r}", old.get(field), new.get(field))


_TOOL_FIELDS = {"parameters_json_schema": "parameters"}


def _find_message_changes(old: Sequence[Json], new: Sequence[Json]) -> Iterator[_Change]:
    """Yield the first difference of the conversation; later ones are its consequences."""
    before = [part for message in old for part in message["parts"]]
    after = [part for message in new for part in message["parts"]]
    for was, now in itertools.zip_longest(before, after):
        if was == now:
            continue
        if was is None or now is None:
            longer = "longer" if was is None else "shorter"
            yield _Change(f"the conversation (it is {longer})", was, now)
            return
        changed = _select_changed_value(was, now), _select_changed_value(now, was)
        yield _Change(_describe_part(was, now), *changed)
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
