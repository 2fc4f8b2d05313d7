"""The history of a scenario over the baseline's runs, as small lines and as a table."""

from __future__ import annotations

from ci_agent_eval.analysis.comparison.model import BaselineRun
from ci_agent_eval.analysis.loaded_results import build_episode_record
from tests.builders import episode, failing, turn
from tests.integration.html.browser import page_of


def run_of(commit, *items):
    return BaselineRun(tuple(map(build_episode_record, items)), commit=commit * 40)


def priced(cost, make=episode, **fields):
    return make("refund", trajectory={"turns": [turn(cost_usd=cost, latency_ms=100)]}, **fields)


RUNS = (run_of("b", priced(0.004), priced(None, iteration=2)), run_of("a", priced(0.002, failing)))
"""Latest first."""


def test_a_scenario_shows_its_former_runs(show):
    page = page_of([priced(0.008), episode("other")], runs=RUNS)
    opened = show(page, fragment="#scenario=refund", viewport={"width": 390, "height": 800})
    detail = opened.page.locator("tr.detail")
    captions = detail.locator(".history figcaption").all_inner_texts()
    assert captions == ["passes: 1 / 1", "cost per episode: $0.008", "p95 latency: 100 ms"]
    detail.get_by_text("As a table").click()
    rows = [row.inner_text().split("\t") for row in detail.locator("tbody tr").all()]
    assert rows == [
        ["aaaaaaa", "0 / 1", "$0.002", "100 ms"],
        ["bbbbbbb", "2 / 2", "–", "100 ms"],
        ["this run", "1 / 1", "$0.008", "100 ms"],
    ]
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert opened.seen.nothing(), opened.seen
