"""The terminal summary: failing scenarios, then budgets not kept, then totals.

Works on the plain data that reports carry, so that it is the same with and without
xdist and costs nothing where there were no episodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from ci_agent_eval.contract.wording import make_printable, pluralize

ATTRIBUTE = "agent_eval"
"""Attribute of a test report that carries the facts of its episode."""

LOST = "the process ended before the episode did"
"""Reason of an episode that left nothing but its start."""

PLUGIN_NAME = "ci_agent_eval_reports"
"""Name under which pytest knows what collects the summary."""

NOTES = "agent_eval_notes"
"""Key under which an xdist worker hands its notes over."""

SummaryRecord = Mapping[str, Any]


class EpisodeReports:
    """Keeps the last facts of each episode and says them at the end."""

    def __init__(self) -> None:
        self._facts: dict[tuple[Any, ...], SummaryRecord] = {}
        self._notes: dict[str, None] = {}
        self.evaluated: dict[tuple[Any, ...], SummaryRecord] = {}
        """The facts of evaluations, of every attempt; their report tells of them."""
        self.look_up: Callable[[], Iterable[SummaryRecord]] | None = None
        """Reads the facts of all episodes from the report directory, where there is one."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what the report says of an episode; a later phase or attempt stands."""
        facts: SummaryRecord | None = getattr(report, ATTRIBUTE, None)
        if facts is not None:
            self.keep(facts)

    def keep(self, facts: SummaryRecord) -> None:
        """Keep an episode's facts in place of earlier ones."""
        # Without the attempt, which stands last: only the last one counts here. Without the
        # scenario, which stands first: a test that returns its episode says it late.
        scenario, nodeid, iteration, attempt = facts["key"]
        if facts["evaluation"] is not None:
            self.evaluated[nodeid or scenario, iteration, attempt] = facts
        else:
            self._facts[nodeid or scenario, iteration] = facts

    @property
    def count(self) -> int:
        """How many episodes there is a report of, whatever the number of its attempts."""
        return len(self._facts) + len({key[:2] for key in self.evaluated})

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take up the notes of an xdist worker; all of them collected the same."""
        output: Mapping[str, Any] = getattr(node, "workeroutput", None) or {}
        self._notes.update(dict.fromkeys(output.get(NOTES, ())))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the summary, where there were episodes."""
        if self.look_up is not None and any(f["reason"] == LOST for f in self._facts.values()):
            # An xdist worker that was interrupted wrote down more than it could report.
            for facts in self.look_up():
                self.keep(facts)
        if self._facts or self._notes:
            terminalreporter.write_sep("=", "episodes")
            notes = [f"note: {note}" for note in self._notes]
            ordered = sorted(self._facts.values(), key=lambda facts: facts["key"])
            lines = render_summary(ordered) if ordered else ()
            for line in (*notes, *lines):
                terminalreporter.write_line(make_printable(line))


def render_summary(episodes: Sequence[SummaryRecord]) -> Iterator[str]:
    """Yield the lines of the summary for episodes in their order; what repeats is counted."""
    sizes = Counter(_get_scenario(facts) for facts in episodes)
    failed = [(facts, _format_failure(facts)) for facts in episodes if facts["outcome"] == "failed"]
    errors = [
        (facts, _get_first_line(facts["reason"]))
        for facts in episodes
        if facts["outcome"] == "error"
    ]
    over = [(facts, violation) for facts in episodes for violation in facts["violations"]]
    for word, found in (("FAILED", failed), ("ERROR ", errors), ("BUDGET", over)):
        times = Counter((_get_scenario(facts), text) for facts, text in found)
        for (scenario, text), number in times.items():
            size = sizes[scenario]
            share = f" [{number} of {size} iterations]" if size > 1 else ""
            yield f"{word} {_format_title(scenario)}: {text}{share}"
    yield _format_totals(episodes)


def _get_scenario(facts: SummaryRecord) -> tuple[str, str]:
    return facts["scenario_id"], facts["agent"] or ""


def _format_title(scenario: tuple[str, str]) -> str:
    name, agent = scenario
    return f"{name} (agent {agent})" if agent else name


def _format_failure(facts: SummaryRecord) -> str:
    failed: Sequence[str] = facts["failed"]
    if not failed:
        return _get_first_line(facts["reason"])
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    return _get_first_line(failed[0]) + more


def _get_first_line(text: str | None) -> str:
    return (text or "no reason given").partition("\n")[0]


def _format_totals(episodes: Sequence[SummaryRecord]) -> str:
    outcomes = [facts["outcome"] for facts in episodes]
    counts = [
        f"{outcomes.count(outcome)} {word}"
        for outcome, word in _WORDS.items()
        if outcomes.count(outcome)
    ]
    reruns = sum(facts["key"][-1] - 1 for facts in episodes)
    violations = sum(len(facts["violations"]) for facts in episodes)
    costs = [
        facts[key]
        for facts in episodes
        for key in ("cost_usd", "judge_cost_usd", "user_cost_usd")
        if facts[key] is not None
    ]
    parts = [f"{pluralize(len(episodes), 'episode')}: {', '.join(counts)}"]
    parts += [pluralize(reruns, "rerun")] if reruns else []
    parts += [pluralize(violations, "budget violation")] if violations else []
    parts += [f"${math.fsum(costs):.4f}"] if costs else []
    return "; ".join(parts)


_WORDS = {"passed": "passed", "failed": "failed", "error": "errored", "skipped": "skipped"}
