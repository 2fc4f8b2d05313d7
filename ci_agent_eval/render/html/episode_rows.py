"""The episodes of the page: rows of its list, with their conversations, and budgets as bars.

The keys are read by `assets/*.js`; empty and false values are left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ci_agent_eval.analysis.behaviour_pairs import list_faults
from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.analysis.summary import Totals
from ci_agent_eval.contract.budget_kinds import BUDGET_KINDS
from ci_agent_eval.contract.budgets import STATISTICS, SuiteBudgets
from ci_agent_eval.contract.measurement import BudgetViolation, compute_latency_statistic
from ci_agent_eval.contract.wording import format_column
from ci_agent_eval.render import numbers
from ci_agent_eval.render.behaviour_diff import list_state_lines
from ci_agent_eval.render.budget_overruns import budget_figures, budget_label
from ci_agent_eval.render.html.conversation import ConversationWriter
from ci_agent_eval.render.html.page_limits import PageFiles, PageText, drop_empty, embed_json
from ci_agent_eval.render.numbers import NOT_MEASURED, count_noun, format_count, format_seconds

Row = dict[str, Any]

IterationKey = tuple[str, str | None, str | None, int]


def _build_key(record: EpisodeRecord) -> IterationKey:
    return record.scenario_id, record.agent, record.nodeid, record.iteration


def count_attempts(episodes: Iterable[EpisodeRecord]) -> Mapping[IterationKey, int]:
    """Return the attempts of each iteration that took more than one."""
    counts = Counter(map(_build_key, episodes))
    return {key: number for key, number in counts.items() if number > 1}


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
            row = embed_json(self._row(number, scenario, record, episode))
            rows -= len(row)
            yield self._with_conversation(row, record, episode, room)

    def _with_conversation(
        self, row: str, record: EpisodeRecord, episode: Mapping[str, Any], room: dict[bool, int]
    ) -> str:
        trajectory = episode.get("trajectory", {})
        turns = trajectory.get("turns")
        if not turns:
            return row
        kind = record.outcome in ("failed", "error")
        if room[kind] <= 0:
            self.texts.cut.conversations += 1
            return f'{row[:-1]},"left_out":1}}'
        writer = ConversationWriter(self.texts, trajectory.get("agents", ()))
        written = embed_json(writer.turns(turns))
        room[kind] -= len(written)
        return f'{row[:-1]},"turns":{written}}}'

    def _row(
        self, number: int, scenario: int, record: EpisodeRecord, episode: Mapping[str, Any]
    ) -> Row:
        row: Row = {
            "number": number,
            "scenario": scenario,
            "outcome": record.outcome,
            "iteration": record.iteration,
            "attempt": record.attempt if record.attempt > 1 else None,
            "attempts": self.attempts.get(_build_key(record)),
            "evaluation": episode.get("mode") == "evaluation",
            "over": any(violation.hard for violation in record.violations),
            "test": self._name(record.nodeid),
            "place": self.places.locate(record.file, record.line),
            "model": self._name(record.model),
            "stopped": (record.stop_reason or "").replace("_", " "),
            "reason": self.texts.text(record.reason or ""),
            "figures": [
                *_list_figures(record, episode),
                *self._faults(episode),
                *self._columns(episode.get("columns", {})),
            ],
            "traffic": [self._name(note) for note in _list_traffic_notes(episode.get("traffic"))],
            "cost": record.cost_usd,
            "latency": compute_latency_statistic(record.latencies_ms, "p95"),
            "checks": self._checks(episode.get("assertions", ())),
            "scores": self._scores(episode.get("scores", ())),
            "budgets": build_episode_bars(episode.get("budgets", {}), record, self.texts),
            "states": self._states(episode.get("states", ())),
            "metadata": self._metadata(episode.get("metadata")),
        }
        return drop_empty(row)

    def _name(self, text: str | None) -> str | None:
        return self.texts.name(text) if text else None

    def _faults(self, episode: Mapping[str, Any]) -> Iterable[str]:
        return map(self.texts.name, list_faults(episode.get("faults", ())))

    def _columns(self, columns: Mapping[str, bool | float | str]) -> Iterator[str]:
        """Yield the columns of plugins."""
        for name, value in columns.items():
            yield f"{self.texts.name(name)} {self.texts.name(format_column(value))}"

    def _checks(self, assertions: Sequence[Mapping[str, Any]]) -> list[Row]:
        return [self._check(assertion) for assertion in self.texts.first(assertions)]

    def _check(self, assertion: Mapping[str, Any]) -> Row:
        passed, score = assertion["passed"], assertion.get("score")
        row: Row = {"name": self.texts.name(assertion["name"]), "passed": passed}
        if assertion.get("reason"):
            row["reason"] = self.texts.text(assertion["reason"])
        if assertion.get("severity") == "warning":
            row["warning"] = True
        if score not in (None, float(passed)):
            row["score"] = numbers.format_amount(score)
        if place := self.places.locate(assertion.get("file"), assertion.get("line")):
            row["place"] = place
        return row

    def _scores(self, scores: Sequence[Mapping[str, Any]]) -> list[Row]:
        return [
            {
                "name": self.texts.name(score["name"]),
                "value": numbers.format_amount(score["value"]),
                "reason": self.texts.text(score.get("reason") or ""),
            }
            for score in self.texts.first(scores)
        ]

    def _states(self, states: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
        """Return the lines of the diff of all states, with their kinds."""
        if not states:
            return []
        # Few episodes watch a state, and each module has its start-up time.
        from ci_agent_eval.analysis.state_changes import summarize_states  # noqa: PLC0415 - see above
        from ci_agent_eval.render.html.cause_cards import mark_diff_line  # noqa: PLC0415 - see above

        lines = list_state_lines(summarize_states(states, self.texts.caps.items))
        return list(map(mark_diff_line, lines))

    def _metadata(self, metadata: Mapping[str, Any] | None) -> str:
        if not metadata:
            return ""
        return self.texts.text(json.dumps(metadata, ensure_ascii=False, indent=2))


def _list_figures(record: EpisodeRecord, episode: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures of an episode."""
    if record.turns:
        yield count_noun(record.turns, "turn")
    if record.tool_calls:
        yield count_noun(record.tool_calls, "tool call")
    if record.duration_ms is not None:
        yield numbers.format_milliseconds(record.duration_ms)
    if record.tokens is not None:
        yield f"{format_count(record.tokens)} tokens"
    if record.cost_usd is not None:
        yield numbers.format_money(record.cost_usd)
    if record.calls.rate_limited:
        yield f"rate limited {count_noun(record.calls.rate_limited, 'time')}"
    if record.calls.misses:
        yield count_noun(record.calls.misses, "cassette miss", "cassette misses")
    yield from _list_test_runs(episode.get("trajectory", {}).get("turns", ()))
    if (judge := episode.get("judge")) is not None:
        yield count_noun(judge.get("calls", 0), "call of the judge", "calls of the judge")


_CALL_NOTES = {
    "refused": "refused",
    "failed": "failed",
    "replayed": "replayed",
    "unattributed": "not attributed to an episode",
}
_PRICE_NOTES = {
    "unpriced_models": "cost unknown: no price of",
    "vendor_priced_models": "priced as the API's vendor:",
}


def _list_traffic_notes(traffic: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the numbers of the episode's model traffic, and the gaps in it."""
    if traffic is None:
        return
    if traffic["requests"]:
        yield count_noun(traffic["requests"], "request")
    elif not traffic.get("vendor_priced_models"):
        yield "no model traffic seen"
    for name, text in _CALL_NOTES.items():
        if traffic.get(name):
            yield f"{format_count(traffic[name])} {text}"
    if traffic.get("is_shared"):
        yield "with requests from outside the test's context"
    for name, text in _PRICE_NOTES.items():
        if models := traffic.get(name):
            yield f"{text} {', '.join(models)}"


def _list_test_runs(turns: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the held full runs of an episode, and the test runs that ran; nothing without a hold.

    Durations are those of the tool calls. There is no estimate of a held run's duration.
    """
    runs = [call for turn in turns for call in turn.get("tool_calls", ()) if call.get("test_run")]
    held = sum(1 for call in runs if call.get("steered_by"))
    if not held:
        return
    yield f"{count_noun(held, 'full test run')} held back"
    for extent in ("full", "targeted"):
        ran = [c for c in runs if c["test_run"] == extent and not c.get("steered_by")]
        if ran:
            yield f"{count_noun(len(ran), f'{extent} test run')} ({_describe_run_time(ran)})"


def _describe_run_time(calls: Sequence[Mapping[str, Any]]) -> str:
    known = [c["duration_ms"] for c in calls if c.get("duration_ms") is not None]
    if not known:
        return "not measured"
    total = format_seconds(sum(known) / 1000)
    return total if len(known) == len(calls) else f"{total}, {len(known)} measured"


BudgetBar = dict[str, Any]
"""`name`, `used` and `limit` in words, `share` of the limit (absent: not measured), `soft`."""

MOST_SHARE = 99.0
"""Larger shares are texts as this one; the bar is full long before."""


def build_episode_bars(
    budgets: Mapping[str, Any], record: EpisodeRecord, texts: PageText
) -> list[BudgetBar]:
    """Return the budgets of an episode as canonical JSON holds them."""
    return [
        _name_bar(*_build_cached_bar(*figure), texts)
        for figure in _list_budget_values(budgets, record, texts)
    ]


def _list_budget_values(
    budgets: Mapping[str, Any], record: EpisodeRecord, texts: PageText
) -> Iterator[tuple[Any, ...]]:
    """Yield for each budget whether it is exceeded, and the values of its `BudgetViolation`."""
    for kind in BUDGET_KINDS:
        if kind.name in budgets:
            is_sampled = kind.samples is not None
            is_over = not is_sampled or any(v.statistic for v in record.violations)
            turns = len(record.latencies_ms) if is_sampled else 0
            yield is_over, *_read_budget(kind.name, budgets[kind.name]), turns or None
    custom = sorted(budgets.get("custom", {}).items())
    for name, budget in texts.first(custom):
        yield True, *_read_budget(name, budget)


def _read_budget(name: str, budget: Mapping[str, Any]) -> tuple[Any, ...]:
    statistic = next((known for known in STATISTICS if known in budget), None)
    used = budget.get(statistic) if statistic else budget.get("used")
    hard = bool(budget.get("hard", True))
    return name, budget["limit"], used, hard, statistic, budget.get("unit")


def build_suite_bars(budgets: SuiteBudgets, totals: Totals, texts: PageText) -> list[BudgetBar]:
    """Return the budgets of the whole suite."""
    figures = (
        BudgetViolation(kind.name, budget.limit, getattr(totals, kind.total), budget.hard)
        for kind, budget in budgets.iter_named()
    )
    return [_name_bar(*_build_bar(figure), texts) for figure in figures]


def _name_bar(label: str, bar: BudgetBar, texts: PageText) -> BudgetBar:
    return {"name": texts.name(label), **bar}


@lru_cache(4096, typed=True)
def _build_cached_bar(is_over: bool, *figure: Any) -> tuple[str, BudgetBar]:
    """Return the bar of these values; cached, for thousands of episodes share them."""
    return _build_bar(BudgetViolation(*figure), is_over=is_over)


def _build_bar(figure: BudgetViolation, *, is_over: bool = True) -> tuple[str, BudgetBar]:
    """Return a budget's label, which may be foreign text, and the rest of its bar.

    A figure above its limit is over it unless the budget allows for chance.
    """
    limit, used = budget_figures(figure)
    bar: BudgetBar = {"used": used, "limit": limit}
    if figure.observed is not None:
        bar["share"] = _compute_share(figure.observed, figure.limit)
        if is_over and figure.observed > figure.limit:
            bar["over"] = True
    else:
        bar["used"] = NOT_MEASURED
    if not figure.hard:
        bar["soft"] = True
    return budget_label(figure), bar


def _compute_share(used: float, limit: float) -> float:
    if limit == 0:
        return MOST_SHARE if used else 0.0
    return round(min(used / limit, MOST_SHARE), 4)
