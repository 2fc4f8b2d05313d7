"""Messages for cassette misses: the changed part of the request, as a short diff.

All compared values are already redacted.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.engine.cassette.document import RecordedRequest, ToolRequest, TrafficRequest
from ci_agent_eval.engine.infrastructure_errors import ModelError
from ci_agent_eval.errors import InputError
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


SETTING = "cassette_replace"
"""Name of the setting with the rules."""
_ARROW = " => "


@dataclass(frozen=True, slots=True)
class ReplaceRule:
    """A pattern and its replacement."""

    pattern: re.Pattern[str]
    replacement: str

    def __str__(self) -> str:
        return f"{self.pattern.pattern}{_ARROW}{self.replacement}"


def parse_rules(lines: Iterable[str]) -> tuple[ReplaceRule, ...]:
    """Parse rules of the form `PATTERN => REPLACEMENT`. Raises InputError."""
    return tuple(_parse_rule(line) for line in lines if line.strip())


def _parse_rule(line: str) -> ReplaceRule:
    pattern, arrow, replacement = line.partition(_ARROW)
    try:
        rule = ReplaceRule(re.compile(pattern.strip()), replacement.strip())
        rule.pattern.sub(rule.replacement, "")  # an unknown group is an error even without a match
        problem = None if arrow else f"give a pattern, `{_ARROW.strip()}` and a replacement"
        if rule.pattern.match("") is not None:
            problem = "its pattern matches an empty text"
    except (IndexError, re.error) as error:
        problem = str(error)
    if problem is not None:
        raise InputError(f"{SETTING}: {line.strip()!r} is not a rule: {problem}")
    return rule


def apply_rules(rules: Sequence[ReplaceRule], value: Any) -> Any:
    """Apply the rules, in order, to each text of a JSON value."""
    if isinstance(value, str):
        for rule in rules:
            value = rule.pattern.sub(rule.replacement, value)
        return value
    if isinstance(value, dict):
        return {name: apply_rules(rules, item) for name, item in value.items()}
    if isinstance(value, list):
        return [apply_rules(rules, item) for item in value]
    return value


def suggest_rules(old: object, new: object) -> tuple[ReplaceRule, ...]:
    """Return the rules that make two values equal; empty if no known kind of text differs."""
    for rule in _KNOWN:
        if apply_rules([rule], old) == apply_rules([rule], new):
            return (rule,)
    if apply_rules(_KNOWN, old) != apply_rules(_KNOWN, new):
        return ()
    needed = list(_KNOWN)
    for rule in _KNOWN:
        fewer = [other for other in needed if other is not rule]
        if apply_rules(fewer, old) == apply_rules(fewer, new):
            needed = fewer
    return tuple(needed)


_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"\d\d:\d\d(:\d\d([.,]\d+)?)?"
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_KNOWN = parse_rules(
    (
        rf"{_DATE} => <date>",
        rf"{_TIME} => <time>",
        rf"{_DATE}[T ]{_TIME}(Z|[+-]\d\d:?\d\d)? => <time>",
        rf"({_MONTH}) \d{{1,2}},? \d{{4}} => <date>",
        r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12} => <uuid>",
        r"(/private)?/(tmp|var/folders)/[^\s\"']+ => <temporary path>",
        r"0x[0-9a-f]{6,16} => <address>",
        r"\b[0-9a-f]{16,}\b => <id>",
        r"\b1[0-9]{9}(\.\d+|[0-9]{3})?\b => <timestamp>",
        r"(?i)\b(pid|process id|port)\b(\W{1,3})\d+ => \1\2<number>",
    )
)
"""Kinds of texts that usually differ from run to run."""
