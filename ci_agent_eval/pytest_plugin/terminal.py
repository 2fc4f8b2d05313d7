"""The terminal summary: failing scenarios, then exceeded budgets, then totals.

It works on the plain data in reports, so it is the same with and without xdist and costs nothing
without episodes.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import pytest

from ci_agent_eval.contract.evidence import describe_unseen
from ci_agent_eval.contract.wording import format_cost, make_printable, pluralize
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
            from ci_agent_eval.pytest_plugin.failure_blocks import (  # noqa: PLC0415 - inert until used
                render_failure_blocks,
                select_unnamed,
            )

            config = terminalreporter.config
            is_listed = config.option.episode_asked is None
            listed = ordered if is_listed else _select_listed(ordered, select_unnamed(ordered))
            costs = [cost for attempt in self._costs.values() for cost in attempt]
            lines = render_summary(ordered, listed, costs) if ordered else ()
            sizes = Counter(_get_scenario(record) for record in ordered)
            width = config.get_terminal_writer().fullwidth
            rootdir = os.path.relpath(config.rootpath, config.invocation_params.dir)
            for line, markup in render_failure_blocks(ordered, sizes, width, rootdir):
                terminalreporter.write_line(line, **markup)
            for line in (*notes, *lines):
                terminalreporter.write_line(make_printable(line))


def hide_shown_failures(
    terminalreporter: pytest.TerminalReporter,
) -> Generator[None, None, None]:
    """Keep out of pytest's lists what a block says whole, in a run by `agent-eval run`."""
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


def _select_listed(
    episodes: Sequence[SummaryRecord], unnamed: Sequence[SummaryRecord]
) -> list[SummaryRecord]:
    """Return the episodes of which no block tells: the unnamed ones, and those that passed."""
    keys = {tuple(record["key"]) for record in unnamed}
    return [one for one in episodes if one["failure"] is None or tuple(one["key"]) in keys]


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
