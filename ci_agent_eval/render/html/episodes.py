"""The episodes of the page: the JSON of each, cut to the size limits.

The page's script writes figures, turns and budgets itself (`assets/records.js`); here stand only
the values that the JSON does not hold. Empty and false values are left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.analysis.behaviour_pairs import list_faults
from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.analysis.summary import Totals
from ci_agent_eval.contract.budget_kinds import BUDGET_KINDS, BudgetFormat
from ci_agent_eval.contract.budgets import STATISTICS, SuiteBudgets
from ci_agent_eval.contract.measurement import BudgetViolation, compute_latency_statistic
from ci_agent_eval.render.behaviour_diff import list_state_lines
from ci_agent_eval.render.budget_overruns import budget_label
from ci_agent_eval.render.html.page_limits import PageFiles, PageText, drop_empty, embed_json

Row = dict[str, Any]

IterationKey = tuple[str, str | None, str | None, int]

_SHOWN_FIELDS = (
    *("reason", "columns", "traffic", "judge"),
    *("assertions", "scores", "metadata"),
)
"""Fields of an episode's JSON that the page's script reads."""
_NAMES = frozenset({"name", "model", "unit", "agent", "finish_reason", "steered_by"})
"""Keys of texts on one line."""
_VALUES = frozenset({"arguments", "result", "typed_output", "metadata"})
"""Keys of values of any kind, which are shown as one text."""

_ON_ONE_LINE = json.JSONEncoder(ensure_ascii=False).encode
_IN_LINES = json.JSONEncoder(ensure_ascii=False, indent=2).encode

_PLAIN_WIDTH = 72
"""Most characters of JSON that is written on one line."""


def count_attempts(episodes: Iterable[EpisodeRecord]) -> Mapping[IterationKey, int]:
    """Return the attempts of each iteration that took more than one."""
    counts = Counter(map(_build_key, episodes))
    return {key: number for key, number in counts.items() if number > 1}


def _build_key(record: EpisodeRecord) -> IterationKey:
    return record.scenario_id, record.agent, record.nodeid, record.iteration


class ValueCutter:
    """Cuts the texts and lists of a JSON value, until its share of the page is used up."""

    def __init__(self, texts: PageText) -> None:
        self._texts = texts
        self._left = texts.caps.conversation

    def cut(self, value: Any, key: str = "") -> Any:
        """Return the value with every text visible and cut; `key` is its name."""
        if key in _VALUES and value is not None and not isinstance(value, str):
            return self._cut_text(_format_value(value))
        if isinstance(value, str):
            return self._texts.name(value) if key in _NAMES else self._cut_text(value)
        if isinstance(value, list):
            return [self.cut(item, key) for item in self._while_room(value)]
        if isinstance(value, dict):
            items = self._texts.first(list(value.items()))
            return {self._texts.name(name): self.cut(item, name) for name, item in items}
        return value

    def _while_room(self, items: list[Any]) -> Iterator[Any]:
        for number, item in enumerate(self._texts.first(items)):
            if self._left <= 0:
                self._texts.cut.items += min(len(items), self._texts.caps.items) - number
                return
            yield item

    def _cut_text(self, text: str) -> str:
        shown = self._texts.text(text, max(self._left, 0))
        self._left -= len(shown)
        return shown


def _format_value(value: Any) -> str:
    short = _ON_ONE_LINE(value)
    return short if len(short) <= _PLAIN_WIDTH else _IN_LINES(value)


@dataclass(frozen=True, slots=True)
class EpisodeRows:
    """Renders episodes as lines of JSON until the page is full."""

    texts: PageText
    places: PageFiles
    scenarios: Mapping[tuple[str, str | None], int]
    """Index of each scenario in the page's list."""
    attempts: Mapping[IterationKey, int]

    def lines(self, episodes: Iterable[tuple[EpisodeRecord, str]]) -> Iterator[str]:
        """Yield the JSON of each episode from its record and its canonical JSON."""
        caps, cut = self.texts.caps, self.texts.cut
        rows, room = caps.rows, {True: caps.failing, False: caps.others}
        for number, (record, line) in enumerate(episodes, start=1):
            scenario = self.scenarios.get((record.scenario_id, record.agent or None))
            if scenario is None or rows <= 0:
                cut.episodes += 1
                continue
            episode = json.loads(line)
            row = embed_json(self._build_row(number, scenario, record, episode))
            rows -= len(row)
            yield self._add_conversation(row, record, episode.get("trajectory") or {}, room)

    def _add_conversation(
        self, row: str, record: EpisodeRecord, trajectory: Mapping[str, Any], room: dict[bool, int]
    ) -> str:
        if not trajectory.get("turns"):
            return row
        kind = record.outcome in ("failed", "error")
        if room[kind] <= 0:
            self.texts.cut.conversations += 1
            return f'{row[:-1]},"left_out":1}}'
        shown = {key: trajectory[key] for key in ("turns", "agents") if trajectory.get(key)}
        written = embed_json(ValueCutter(self.texts).cut(shown))
        room[kind] -= len(written)
        return f"{row[:-1]},{written[1:]}"

    def _build_row(
        self, number: int, scenario: int, record: EpisodeRecord, episode: Mapping[str, Any]
    ) -> Row:
        cutter = ValueCutter(self.texts)
        row = {key: cutter.cut(episode[key], key) for key in _SHOWN_FIELDS if key in episode}
        for check in row.get("assertions", ()):
            check["place"] = self.places.locate(check.pop("file", None), check.pop("line", None))
        turns = (episode.get("trajectory") or {}).get("turns", ())
        computed: Row = {
            "number": number,
            "scenario": scenario,
            "outcome": record.outcome,
            "iteration": record.iteration,
            "attempt": record.attempt if record.attempt > 1 else None,
            "attempts": self.attempts.get(_build_key(record)),
            "evaluation": episode.get("mode") == "evaluation",
            "over": any(violation.hard for violation in record.violations),
            "budgets": list(_list_bars(episode.get("budgets", {}), record, self.texts)),
            "test": self._cut_name(record.nodeid),
            "place": self.places.locate(record.file, record.line),
            "model": self._cut_name(record.model),
            "stopped": (record.stop_reason or "").replace("_", " "),
            "turn_count": record.turns or None,
            "tool_calls": record.tool_calls or None,
            "tokens": record.tokens,
            "cost": record.cost_usd,
            "duration_ms": record.duration_ms,
            "latency": compute_latency_statistic(record.latencies_ms, "p95"),
            "rate_limited": record.calls.rate_limited or None,
            "misses": record.calls.misses or None,
            "runs": _list_test_runs(turns),
            "faults": list(map(self.texts.name, list_faults(episode.get("faults", ())))),
            "states": self._list_states(episode.get("states", ())),
        }
        return drop_empty({**row, **computed})

    def _cut_name(self, text: str | None) -> str | None:
        return self.texts.name(text) if text else None

    def _list_states(self, states: list[Mapping[str, Any]]) -> list[tuple[str, str]]:
        """Return the lines of the diff of all states, with their kinds."""
        if not states:
            return []
        # Few episodes watch a state, and each module has its start-up time.
        from ci_agent_eval.analysis.behaviour_pairs import summarize_states  # noqa: PLC0415 - see above
        from ci_agent_eval.render.html.cause_cards import mark_diff_line  # noqa: PLC0415 - see above

        lines = list_state_lines(summarize_states(states, self.texts.caps.items))
        return list(map(mark_diff_line, lines))


def _list_test_runs(turns: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return the test runs of an episode of which one was held back; else none."""
    calls = [call for turn in turns for call in turn.get("tool_calls", ()) if call.get("test_run")]
    if not any(call.get("steered_by") for call in calls):
        return []
    return [
        {
            "extent": "held" if call.get("steered_by") else call["test_run"],
            "duration_ms": call.get("duration_ms"),
        }
        for call in calls
    ]


def build_suite_bars(budgets: SuiteBudgets, totals: Totals, texts: PageText) -> list[Row]:
    """Return the budgets of the whole suite, as the page's script draws them."""
    return [
        _build_bar(
            BudgetViolation(kind.name, budget.limit, getattr(totals, kind.total), budget.hard),
            kind.format,
            texts,
        )
        for kind, budget in budgets.iter_named()
    ]


def _list_bars(budgets: Mapping[str, Any], record: EpisodeRecord, texts: PageText) -> Iterator[Row]:
    """Yield the budgets of an episode, from its JSON."""
    named: list[tuple[str, Mapping[str, Any], BudgetFormat]]
    named = [
        (kind.name, budgets[kind.name], kind.format)
        for kind in BUDGET_KINDS
        if kind.name in budgets
    ]
    custom = texts.first(sorted(budgets.get("custom", {}).items()))
    named += [(name, budget, "count") for name, budget in custom]
    for name, budget, style in named:
        statistic = next((known for known in STATISTICS if known in budget), None)
        figure = BudgetViolation(
            name,
            budget["limit"],
            budget.get(statistic or "used"),
            budget.get("hard", True),
            statistic,
            budget.get("unit"),
            len(record.latencies_ms) or None if statistic else None,
        )
        # A statistic above its limit may be chance.
        is_over = not statistic or any(one.statistic for one in record.violations)
        yield _build_bar(figure, style, texts, is_over=is_over)


def _build_bar(
    figure: BudgetViolation, style: BudgetFormat, texts: PageText, *, is_over: bool = True
) -> Row:
    return drop_empty(
        {
            "name": texts.name(budget_label(figure)),
            "format": style,
            "limit": figure.limit,
            "used": figure.observed,
            "over": is_over and (figure.observed or 0) > figure.limit,
            "soft": not figure.hard,
        }
    )
