"""Messages for cassette misses: the changed part of the request, as a short diff.

All compared values are already redacted.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.engine.cassette.document import RecordedRequest, ToolRequest, TrafficRequest
from ci_agent_eval.engine.cassette.rules import SETTING, suggest_rules
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

    nearest: RecordedRequest | None = None
    """The most similar recorded request."""


def find_nearest_request(
    request: RecordedRequest, recorded: Sequence[RecordedRequest]
) -> RecordedRequest | None:
    """Return the most similar recorded request of the kind; the first of several equals."""
    similar = [other for other in recorded if type(other) is type(request)]
    return max(similar, key=lambda other: _measure_similarity(request, other), default=None)


def _measure_similarity(request: RecordedRequest, other: RecordedRequest) -> tuple[int, int, int]:
    if isinstance(request, TrafficRequest) and isinstance(other, TrafficRequest):
        fields = [(name, value, other.body.get(name)) for name, value in request.body.items()]
        compared = [
            _compare_lists(new, old if isinstance(old, list) else [])
            for name, new, old in fields
            if isinstance(new, list) and name != "tools"
        ]
        same, closeness = (sum(figures) for figures in zip((0, 0), *compared, strict=True))
        equal = sum(1 for _, new, old in fields if new == old)
        return (same, closeness, equal + (request.format == other.format))
    if isinstance(request, ToolRequest) and isinstance(other, ToolRequest):
        return (request.tool == other.tool, request.arguments == other.arguments, 0)
    return (0, 0, 0)


def _compare_lists(new: Sequence[Any], old: Sequence[Any]) -> tuple[int, int]:
    """Return the number of equal items at the start, and minus the difference in length."""
    pairs = zip(new, old, strict=False)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    return same, -abs(len(new) - len(old))


def _find_changes(old: RecordedRequest, new: RecordedRequest) -> Iterator[_Change]:
    """Yield each part that differs from the recorded request."""
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
