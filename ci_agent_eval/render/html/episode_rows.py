"""What the page knows of each episode: a row of its list, and its conversation.

The keys are read by `assets/*.js`; what is empty or false is left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.contract.measurement import compute_latency_statistic
from ci_agent_eval.render import numbers
from ci_agent_eval.render.html.budget_bars import build_episode_bars
from ci_agent_eval.render.html.conversation import ConversationWriter
from ci_agent_eval.render.html.embed import drop_empty, embed_json
from ci_agent_eval.render.html.page_files import PageFiles
from ci_agent_eval.render.html.page_limits import PageText

Row = dict[str, Any]

IterationKey = tuple[str, str | None, str | None, int]


def _build_key(facts: EpisodeRecord) -> IterationKey:
    return facts.scenario_id, facts.agent, facts.nodeid, facts.iteration


def count_attempts(episodes: Iterable[EpisodeRecord]) -> Mapping[IterationKey, int]:
    """Return how many attempts an iteration took, where it is not one."""
    counts = Counter(map(_build_key, episodes))
    return {key: number for key, number in counts.items() if number > 1}


@dataclass(frozen=True, slots=True)
class EpisodeRows:
    """Writes episodes as JSON, one a line, until the page is full."""

    shown: PageText
    places: PageFiles
    scenarios: Mapping[tuple[str, str | None], int]
    """Where each scenario and agent stands in the page's list of them."""
    attempts: Mapping[IterationKey, int]

    def lines(self, episodes: Iterable[tuple[EpisodeRecord, str]]) -> Iterator[str]:
        """Yield the JSON of each episode: facts, and its line of canonical JSON."""
        caps, cut = self.shown.caps, self.shown.cut
        rows, room = caps.rows, {True: caps.failing, False: caps.others}
        for number, (facts, line) in enumerate(episodes, start=1):
            scenario = self.scenarios.get((facts.scenario_id, facts.agent or None))
            if scenario is None or rows <= 0:
                cut.episodes += 1
                continue
            said = json.loads(line)
            row = embed_json(self._row(number, scenario, facts, said))
            rows -= len(row)
            yield self._with_conversation(row, facts, said, room)

    def _with_conversation(
        self, row: str, facts: EpisodeRecord, said: Mapping[str, Any], room: dict[bool, int]
    ) -> str:
        turns = said.get("trajectory", {}).get("turns")
        if not turns:
            return row
        kind = facts.outcome in ("failed", "error")
        if room[kind] <= 0:
            self.shown.cut.conversations += 1
            return f'{row[:-1]},"left_out":1}}'
        written = embed_json(ConversationWriter(self.shown).turns(turns))
        room[kind] -= len(written)
        return f'{row[:-1]},"turns":{written}}}'

    def _row(
        self, number: int, scenario: int, facts: EpisodeRecord, said: Mapping[str, Any]
    ) -> Row:
        row: Row = {
            "number": number,
            "scenario": scenario,
            "outcome": facts.outcome,
            "iteration": facts.iteration,
            "attempt": facts.attempt if facts.attempt > 1 else None,
            "attempts": self.attempts.get(_build_key(facts)),
            "evaluation": said.get("mode") == "evaluation",
            "over": any(violation.hard for violation in facts.violations),
            "test": self._name(facts.nodeid),
            "place": self.places.of(facts.file, facts.line),
            "model": self._name(facts.model),
            "stopped": (facts.stop_reason or "").replace("_", " "),
            "reason": self.shown.text(facts.reason or ""),
            "figures": list(_list_figures(facts, said)),
            "cost": facts.cost_usd,
            "latency": compute_latency_statistic(facts.latencies_ms, "p95"),
            "checks": self._checks(said.get("assertions", ())),
            "scores": self._scores(said.get("scores", ())),
            "budgets": build_episode_bars(said.get("budgets", {}), self.shown),
            "metadata": self._metadata(said.get("metadata")),
        }
        return drop_empty(row)

    def _name(self, text: str | None) -> str | None:
        return self.shown.name(text) if text else None

    def _checks(self, assertions: Sequence[Mapping[str, Any]]) -> list[Row]:
        return [self._check(assertion) for assertion in self.shown.first(assertions)]

    def _check(self, assertion: Mapping[str, Any]) -> Row:
        passed, score = assertion["passed"], assertion.get("score")
        row: Row = {"name": self.shown.name(assertion["name"]), "passed": passed}
        if assertion.get("reason"):
            row["reason"] = self.shown.text(assertion["reason"])
        if assertion.get("severity") == "warning":
            row["warning"] = True
        if score not in (None, float(passed)):
            row["score"] = numbers.format_amount(score)
        if place := self.places.of(assertion.get("file"), assertion.get("line")):
            row["place"] = place
        return row

    def _scores(self, scores: Sequence[Mapping[str, Any]]) -> list[Row]:
        return [
            {
                "name": self.shown.name(score["name"]),
                "value": numbers.format_amount(score["value"]),
                "reason": self.shown.text(score.get("reason") or ""),
            }
            for score in self.shown.first(scores)
        ]

    def _metadata(self, metadata: Mapping[str, Any] | None) -> str:
        if not metadata:
            return ""
        return self.shown.text(json.dumps(metadata, ensure_ascii=False, indent=2))


def _list_figures(facts: EpisodeRecord, said: Mapping[str, Any]) -> Iterator[str]:
    """Write what was measured of an episode, and how its replies came about."""
    if facts.turns:
        yield numbers.count_noun(facts.turns, "turn")
    if facts.tool_calls:
        yield numbers.count_noun(facts.tool_calls, "tool call")
    if facts.duration_ms is not None:
        yield numbers.format_milliseconds(facts.duration_ms)
    if facts.tokens is not None:
        yield f"{numbers.format_count(facts.tokens)} tokens"
    if facts.cost_usd is not None:
        yield numbers.format_money(facts.cost_usd)
    if facts.calls.rate_limited:
        yield f"rate limited {numbers.count_noun(facts.calls.rate_limited, 'time')}"
    if facts.calls.misses:
        yield numbers.count_noun(facts.calls.misses, "cassette miss", "cassette misses")
    if (judge := said.get("judge")) is not None:
        yield numbers.count_noun(judge.get("calls", 0), "call of the judge", "calls of the judge")
