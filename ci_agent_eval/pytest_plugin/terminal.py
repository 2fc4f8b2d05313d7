"""The terminal summary: failing scenarios, then exceeded budgets, then totals.

It works on the plain data in reports, so it is the same with and without xdist and costs nothing
without episodes.
"""

from __future__ import annotations

import math
import os
import shlex
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import pytest

from ci_agent_eval.contract.evidence import describe_unseen
from ci_agent_eval.contract.trajectory import Turn
from ci_agent_eval.contract.wording import (
    count_columns,
    format_cost,
    make_printable,
    one_line,
    pluralize,
    wrap_columns,
)
from ci_agent_eval.pytest_plugin.episodes.episode_summary import format_call
from ci_agent_eval.pytest_plugin.run import NOTES, RECORD

LOST_REASON = "the process ended before the episode did"
"""Reason of an episode of which only the start was written."""

MAX_LINE = 200
"""Characters of a failure that its block is sure to have whole."""

SummaryRecord = Mapping[str, Any]


class EpisodeReports:
    """Keeps the last record of each episode and writes the summary at the end."""

    def __init__(self) -> None:
        self._records: dict[tuple[Any, ...], SummaryRecord] = {}
        self._costs: dict[tuple[Any, ...], list[float]] = {}
        """Of each attempt: a retry's cost comes on top."""
        self._notes: dict[str, None] = {}
        self.evaluated: dict[tuple[Any, ...], SummaryRecord] = {}
        """The records of evaluations, of every attempt; the evaluation report shows them."""
        self.load_records: Callable[[], Iterable[SummaryRecord]] | None = None
        """Loads the records of all episodes from the report directory, if there is one."""

    def note_report(self, report: pytest.TestReport) -> None:
        """Keep the report's record; a later phase or attempt replaces it."""
        record: SummaryRecord | None = getattr(report, RECORD, None)
        if record is not None:
            self.keep(record)

    def keep(self, record: SummaryRecord) -> None:
        """Keep an episode's record in place of an earlier one."""
        # Without the attempt, the last part: only the last one counts here. Without the scenario,
        # the first part: for a test that returns its episode it is known late.
        scenario, nodeid, iteration, attempt = record["key"]
        if record["evaluation"] is not None:
            self.evaluated[nodeid or scenario, iteration, attempt] = record
        else:
            self._records[nodeid or scenario, iteration] = record
            costs = (record[key] for key in ("cost_usd", "judge_cost_usd", "user_cost_usd"))
            known = [cost for cost in costs if cost is not None]
            self._costs[nodeid or scenario, iteration, attempt] = known

    @property
    def count(self) -> int:
        """Number of episodes with a report, however many attempts each had."""
        return len(self._records) + len({key[:2] for key in self.evaluated})

    def add_notes(self, output: Mapping[str, Any]) -> None:
        """Add the notes of an xdist worker; all workers collect the same items."""
        self._notes.update(dict.fromkeys(output.get(NOTES, ())))

    def shorten_repeated(self, session: pytest.Session) -> None:
        """Shorten repeated failures in the terminal; JUnit and other plugins keep theirs."""
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:
            return
        seen: dict[tuple[Any, ...], str] = {}
        for kind in ("failed", "error"):
            reports: list[Any] = reporter.stats.get(kind, [])
            reports[:] = [_shorten_repeated(report, seen) for report in reports]

    def write_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the summary if there were episodes."""
        if self.load_records is not None and any(
            f["reason"] == LOST_REASON for f in self._records.values()
        ):
            # An interrupted xdist worker wrote more to its journal than it could report.
            for record in self.load_records():
                self.keep(record)
        if self._records or self._notes:
            terminalreporter.write_sep("=", "episodes")
            notes = [f"note: {note}" for note in self._notes]
            ordered = sorted(self._records.values(), key=lambda record: record["key"])

            config = terminalreporter.config
            # `agent-eval run` prints its own report after pytest's output.
            shown = [] if config.option.episode_watched else ordered
            costs = [cost for attempt in self._costs.values() for cost in attempt]
            lines = render_summary(ordered, shown, costs) if ordered else ()
            sizes = Counter(_get_scenario(record) for record in ordered)
            width = config.get_terminal_writer().fullwidth
            rootdir = os.path.relpath(config.rootpath, config.invocation_params.dir)
            for line, markup in render_failure_blocks(shown, sizes, width, rootdir):
                terminalreporter.write_line(line, **markup)
            for line in (*notes, *lines):
                terminalreporter.write_line(make_printable(line))


def hide_shown_failures(
    terminalreporter: pytest.TerminalReporter,
) -> Generator[None, None, None]:
    """Keep out of pytest's lists what the report of `agent-eval run` says whole."""
    stats = terminalreporter.stats
    failed = stats.get("failed", [])
    if terminalreporter.config.option.episode_asked is None or not failed:
        return (yield)
    stats["failed"] = [report for report in failed if not _is_one_line(report)]
    try:
        return (yield)
    finally:
        stats["failed"] = failed  # pytest counts them in its last line


def _shorten_repeated(report: Any, seen: dict[tuple[Any, ...], str]) -> Any:
    """Return a report, or one that names the earlier test with the same failure."""
    record: SummaryRecord | None = getattr(report, RECORD, None)
    details = None if record is None else record["failure"]
    if record is None or details is None:
        return report
    key = (record["scenario_id"], record["agent"], details["cause"])
    first = seen.setdefault(key, report.nodeid)
    if first == report.nodeid:
        return report
    shortened = copy(report)
    shortened.longrepr, shortened.sections = f"the same failure as {first}", []
    return shortened


def _is_one_line(report: pytest.TestReport) -> bool:
    """Return whether a failed episode's report says no more than its block."""
    record: SummaryRecord | None = getattr(report, RECORD, None)
    text = report.longreprtext.strip()
    is_plain = "\n" not in text and len(text) <= MAX_LINE and not report.sections
    return record is not None and record["failure"] is not None and is_plain


def render_summary(
    episodes: Sequence[SummaryRecord], listed: Sequence[SummaryRecord], costs: Sequence[float]
) -> Iterator[str]:
    """Yield a line for each kind of finding of the listed episodes, and the totals of all.

    `costs` are those of all attempts, in US dollars.
    """
    sizes = Counter(_get_scenario(record) for record in episodes)
    failed = [
        (record, _format_failure(record)) for record in listed if record["outcome"] == "failed"
    ]
    errors = [
        (record, _get_first_line(record["reason"]))
        for record in listed
        if record["outcome"] == "error"
    ]
    violations = [(record, violation) for record in listed for violation in record["violations"]]
    for word, found in (("FAILED", failed), ("ERROR ", errors), ("BUDGET", violations)):
        times = Counter((_get_scenario(record), text) for record, text in found)
        for (scenario, text), number in times.items():
            size = sizes[scenario]
            share = f" [{number} of {size} iterations]" if size > 1 else ""
            yield f"{word} {_format_title(scenario)}: {text}{share}"
    if unseen := sum(record["is_unseen"] for record in episodes):
        yield f"WARNING {describe_unseen(pluralize(unseen, 'episode'))}"
    yield _format_totals(episodes, costs)


def _get_scenario(record: SummaryRecord) -> tuple[str, str]:
    return record["scenario_id"], record["agent"] or ""


def _format_title(scenario: tuple[str, str]) -> str:
    name, agent = scenario
    return f"{name} (agent {agent})" if agent else name


def _format_failure(record: SummaryRecord) -> str:
    failed: Sequence[str] = record["failed"]
    if not failed:
        return _get_first_line(record["reason"])
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    return _get_first_line(failed[0]) + more


def _get_first_line(text: str | None) -> str:
    return (text or "no reason given").partition("\n")[0]


def _format_totals(episodes: Sequence[SummaryRecord], costs: Sequence[float]) -> str:
    outcomes = Counter(map(_get_test_outcome, episodes))
    counts = [f"{outcomes[key]} {word}" for key, word in _WORDS.items() if outcomes[key]]
    reruns = sum(record["key"][-1] - 1 for record in episodes)
    violations = sum(len(record["violations"]) for record in episodes)
    parts = [f"{pluralize(len(episodes), 'episode')}: {', '.join(counts)}"]
    parts += [pluralize(reruns, "rerun")] if reruns else []
    parts += [pluralize(violations, "budget violation")] if violations else []
    parts += [format_cost(math.fsum(costs))] if costs else []
    return "; ".join(parts)


def _get_test_outcome(record: SummaryRecord) -> str:
    """Return the outcome as pytest counts it: the test of a passed episode fails over budget."""
    is_over_budget = record["outcome"] == "passed" and record["failure"] is not None
    return "over_budget" if is_over_budget else str(record["outcome"])


_WORDS = {
    "passed": "passed",
    "failed": "failed",
    "over_budget": "over a hard budget",
    "error": "errored",
    "skipped": "skipped",
}


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
