"""Failing scenarios in the terminal: one block for each cause, with its conversation."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from ci_agent_eval.contract.trajectory import Turn
from ci_agent_eval.contract.wording import (
    count_columns,
    make_printable,
    one_line,
    pluralize,
    wrap_columns,
)
from ci_agent_eval.pytest_plugin.episodes.episode_summary import format_call

MAX_BLOCKS = 10
MAX_LINES = {"user": 2, "assistant": 3, "calls": 1, "check": 3, "error": 3, "budget": 3}
MAX_TURNS = 50
MAX_TURN_LINES = 10
MAX_WIDTH = 100
_LABEL = 11
"""Width of a label with its margin."""

Line = tuple[str, Mapping[str, bool]]
"""A line and its markup for pytest's terminal writer."""
_RED: Mapping[str, bool] = {"red": True}
_BOLD: Mapping[str, bool] = {"bold": True, "red": True}
_PLAIN: Mapping[str, bool] = {}
_LABELS = {"failed": "check", "error": "error", "passed": "budget"}
"""Label of the reason, by the episode's outcome: one that passed is over budget."""


@dataclass(slots=True)
class _Group:
    """The failed episodes with one cause."""

    records: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def scenarios(self) -> list[tuple[str, str]]:
        return sorted({(one["scenario_id"], one["agent"] or "") for one in self.records})

    @property
    def example(self) -> Mapping[str, Any]:
        """The shortest episode of the first scenario."""
        first = self.scenarios[0]
        own = [one for one in self.records if (one["scenario_id"], one["agent"] or "") == first]
        return min(own, key=lambda one: (one["failure"]["length"], one["key"][2]))


def render_failure_blocks(
    records: Sequence[Mapping[str, Any]],
    sizes: Mapping[tuple[str, str], int],
    width: int,
    rootdir: str = ".",
) -> Iterator[Line]:
    """Yield the lines of the blocks, the most frequent cause last, where it is read first.

    `rootdir` is the path of pytest's rootdir from the folder in which pytest was started.
    """
    ordered = _group_by_cause(records)
    width = min(width, MAX_WIDTH)
    if (rest := len(ordered) - MAX_BLOCKS) > 0:
        yield f"{pluralize(rest, 'more cause')} below", _PLAIN
        yield "", _PLAIN
    for group in reversed(ordered[:MAX_BLOCKS]):
        yield from _render_block(group, sizes, width, rootdir)
        yield "", _PLAIN


def select_unnamed(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the failed episodes whose scenario no block of `render_failure_blocks` names."""
    return [
        record
        for number, group in enumerate(_group_by_cause(records))
        for record in group.records
        if number >= MAX_BLOCKS or len(group.scenarios) > 1
    ]


def _group_by_cause(records: Sequence[Mapping[str, Any]]) -> list[_Group]:
    """Return the failed episodes by cause, the most frequent first."""
    groups: dict[tuple[str, str, str], _Group] = {}
    for record in records:
        details = record.get("failure")
        if details is None:
            continue
        # One scenario's failed assertions are its own; an error or a budget is often everybody's.
        scope = record["scenario_id"] if record["outcome"] == "failed" else ""
        key = (record["outcome"], scope, details["cause"])
        groups.setdefault(key, _Group()).records.append(record)
    return sorted(groups.values(), key=lambda group: (-len(group.records), group.scenarios))


def _render_block(
    group: _Group, sizes: Mapping[tuple[str, str], int], width: int, rootdir: str
) -> Iterator[Line]:
    example = group.example
    details = example["failure"]
    yield _render_title(group, sizes, width), _BOLD
    label = _LABELS[example["outcome"]]
    if details["answer"] is not None:
        yield from _render_part("user", details["user"], width)
        for number, call in enumerate(details["calls"]):
            yield from _render_part("" if number else "calls", call, width)
        if details["more_calls"]:
            yield from _render_part("", f"and {details['more_calls']} more calls", width)
        mark = "✗" if label == "check" else ""
        yield from _render_part("assistant", details["answer"] or "(no text)", width, mark)
    parts = [part for part in (details["check"], details["reason"]) if part]
    for number, text in enumerate(parts or ["no reason given"]):
        yield from _render_part("" if number else label, text, width, most=MAX_LINES[label])
    if details["place"]:
        yield from _render_part("", details["place"], width)
    if details["columns"]:
        yield from _render_part("columns", details["columns"], width, most=3)
    yield f"  {'again':<{_LABEL}}{_build_command(example, sizes, rootdir)}", _PLAIN


def render_conversation(turns: Sequence[Turn], width: int) -> Iterator[Line]:
    """Yield the lines of a whole conversation; of a long one, the last turns."""
    width = min(width, MAX_WIDTH)
    if (rest := len(turns) - MAX_TURNS) > 0:
        yield f"  {pluralize(rest, 'earlier turn')}", _PLAIN
    for turn in turns[-MAX_TURNS:]:
        for number, call in enumerate(turn.tool_calls):
            yield from _render_part("" if number else "calls", format_call(call), width)
        yield from _render_part(turn.role, turn.content or "(no text)", width, most=MAX_TURN_LINES)


def _render_title(group: _Group, sizes: Mapping[tuple[str, str], int], width: int) -> str:
    scenarios, example = group.scenarios, group.example
    name = scenarios[0]
    size, count = sizes[name], len(group.records)
    if len(scenarios) > 1:
        same = "over the same budget" if example["outcome"] == "passed" else "same error"
        parts = [pluralize(len(scenarios), "scenario"), pluralize(count, "episode"), same]
    else:
        parts = [f"{name[0]} (agent {name[1]})" if name[1] else name[0]]
        if size > 1:
            rest = ", the shortest" if count > 1 else ""
            verb = "fails" if count == 1 else "fail"
            if example["outcome"] == "passed":
                verb = "over budget"
            parts.append(f"{count} of {size} iterations {verb}")
            parts.append(f"iteration {example['key'][2]}{rest}")
    title = make_printable(f"── {' · '.join(parts)} ")
    return title + "─" * max(0, width - count_columns(title))


def _render_part(
    label: str, text: str, width: int, mark: str = "", *, most: int | None = None
) -> Iterator[Line]:
    """Yield a label and its text, wrapped and cut to a number of lines, by default the label's."""
    room = max(width - _LABEL - 2, 20)
    # Each line: wrapping may have moved a workflow command to the start of one.
    lines = [make_printable(line) for line in wrap_columns(one_line(text), room)]
    most = most or MAX_LINES.get(label, 1)
    if len(lines) > most:
        left = len(" ".join(lines[most:]))
        lines = [*lines[:most], f"… ({left} more characters)"]
    head = f"{mark or ' '} {label:<{_LABEL}}"
    for number, line in enumerate(lines):
        yield f"{head if not number else ' ' * len(head)}{line}", _RED if mark else _PLAIN


def _build_command(
    example: Mapping[str, Any], sizes: Mapping[tuple[str, str], int], rootdir: str
) -> str:
    """Return the command that runs the example's scenario again, up to its iteration."""
    scenario, nodeid, iteration, _ = example["key"]
    words = ["agent-eval", "run"]
    if nodeid:
        words.append(str(PurePath(rootdir, nodeid.partition("::")[0])))
    words += ["--scenario", scenario]
    if sizes[example["scenario_id"], example["agent"] or ""] > 1:
        words += ["--iterations", str(iteration)]
    return make_printable(shlex.join(words))
