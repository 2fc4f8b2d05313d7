"""A compared scenario on the page: how it differs, and a conversation of both sides."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ci_agent_eval.analysis.comparison.findings import describe_set_aside
from ci_agent_eval.analysis.comparison.model import ConversationSample, ScenarioComparison
from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.render.behaviour_diff import describe_divergence, list_trajectory_lines
from ci_agent_eval.render.comparison_wording import describe_note, is_changed
from ci_agent_eval.render.html.cause_cards import mark_diff_line
from ci_agent_eval.render.html.episodes import ValueCutter
from ci_agent_eval.render.html.page_limits import PageText, drop_empty, embed_json
from ci_agent_eval.render.phrases import ScenarioKey, get_key

Row = dict[str, Any]


def build_compared_row(
    scenario: ScenarioComparison, texts: PageText, conversations: BaselineConversations
) -> Row:
    """Return how a scenario differs from the baseline, as the page's script reads it."""
    lines = list_trajectory_lines(scenario.divergence) if scenario.divergence else []
    return drop_empty(
        {
            "notes": list(map(texts.text, _list_notes(scenario))),
            "steps": list(map(mark_diff_line, lines)),
            "talk": (is_changed(scenario) and conversations.find_pair(scenario)) or None,
        }
    )


def _list_notes(scenario: ScenarioComparison) -> Iterator[str]:
    """Yield change and certainty, former name, other conditions, budgets, and first divergence."""
    if scenario.change != "unchanged" or scenario.call:
        yield describe_note(scenario)
    if scenario.renamed_from:
        yield f"it was called {scenario.renamed_from}"
    is_apart = scenario.change == "not_comparable"
    for one in scenario.differences:
        apart = "not comparable" if is_apart else describe_set_aside(scenario)
        yield f"{apart}: {one.condition} was {one.before}, is {one.after}"
    if scenario.newly_over:
        yield f"newly over budget: {', '.join(scenario.newly_over)}"
    if scenario.divergence is not None:
        yield describe_divergence(scenario.divergence)


Numbered = tuple[int, EpisodeRecord]


class BaselineConversations:
    """Finds both conversations of a scenario until their share of the page is used up.

    `samples` are of the baseline, `episodes` of this run, in the order of the page.
    """

    def __init__(
        self,
        samples: Iterable[ConversationSample],
        episodes: Iterable[EpisodeRecord],
        texts: PageText,
    ) -> None:
        self._texts = texts
        self._left = texts.caps.baseline
        self._samples: Mapping[ScenarioKey, list[ConversationSample]] = defaultdict(list)
        for sample in samples:
            self._samples[sample.scenario_id, sample.agent].append(sample)
        self._episodes: Mapping[ScenarioKey, list[Numbered]] = defaultdict(list)
        for number, facts in enumerate(episodes, start=1):
            self._episodes[facts.scenario_id, facts.agent or None].append((number, facts))

    def find_pair(self, scenario: ScenarioComparison) -> dict[str, Any]:
        """Return both as the page's script reads them; empty without one in the baseline."""
        sample = _pick_sample(self._of_base(scenario), scenario)
        if sample is None:
            return {}
        now = _pick_episode(self._episodes.get(get_key(scenario), ()), scenario)
        row = {
            "iteration": sample.iteration,
            "outcome": sample.outcome,
            "turns": self._turns(sample),
            "now": now,
        }
        return drop_empty(row)

    def _of_base(self, scenario: ScenarioComparison) -> Sequence[ConversationSample]:
        name = scenario.renamed_from or scenario.scenario_id
        found = self._samples.get((name, scenario.agent), ())
        # An agent that is called otherwise now is the same where it is the only one.
        return found or [s for key, ss in self._samples.items() if key[0] == name for s in ss]

    def _turns(self, sample: ConversationSample) -> list[dict[str, Any]] | None:
        if sample.turns is None or self._left <= 0:
            self._texts.cut.conversations += 1
            return None
        turns: list[dict[str, Any]] = ValueCutter(self._texts).cut(json.loads(sample.turns))
        self._left -= len(embed_json(turns))
        return turns


def _find_failing_sides(scenario: ScenarioComparison) -> tuple[bool, bool]:
    """Return for each side whether to show a failed episode."""
    before, after = scenario.before, scenario.after
    rates = (before.pass_rate if before else None, after.pass_rate if after else None)
    was, now = (1.0 if rate is None else rate for rate in rates)
    still_fails = after is not None and after.passing is False
    return was < now or scenario.change == "still_failing", now < was or still_fails


def _pick_sample(
    found: Sequence[ConversationSample], scenario: ScenarioComparison
) -> ConversationSample | None:
    failing = _find_failing_sides(scenario)[0]
    way = scenario.divergence.before if scenario.divergence else None
    wanted = [s for s in found if (s.outcome == "failed") is failing] or found
    same = (s for s in wanted if way is None or s.tools == way)
    return next(same, next(iter(wanted), None))


def _pick_episode(found: Sequence[Numbered], scenario: ScenarioComparison) -> int | None:
    outcome = "failed" if _find_failing_sides(scenario)[1] else "passed"
    way = scenario.divergence.after if scenario.divergence else None
    wanted = [one for one in found if one[1].outcome == outcome] or found
    same = (n for n, f in wanted if way is None or f.tools == way)
    return next(same, next((number for number, _ in wanted), None))
