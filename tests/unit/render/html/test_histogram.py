"""Histograms: every value is in one bar, for any values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.render.html.charts import MOST_BINS, build_charts, build_histogram
from tests.builders import episode, loaded, turn

AMOUNTS = st.floats(min_value=0, max_value=1e15)


@given(st.lists(AMOUNTS, max_size=200))
def test_every_value_is_counted_once_and_the_bars_are_few(values):
    found = build_histogram(values)
    if found is None:
        assert len(values) < 2 or max(values) - min(values) <= max(values) * 1e-9 + 1e-300
        return
    assert sum(bar.count for bar in found.bins) == len(values) == found.values
    assert 1 <= len(found.bins) <= MOST_BINS + 2
    assert all(0 <= found.place_of(value) <= 1 + 1e-9 for value in values)
    assert found.low <= found.median <= found.p95 <= found.high


def test_the_charts_say_in_words_what_they_show():
    run = [
        episode("a", iteration=n, trajectory={"turns": [turn(latency_ms=100 * n, cost_usd=n / 10)]})
        for n in range(1, 11)
    ]
    skipped = episode("b", outcome="skipped", trajectory={"turns": [turn(latency_ms=9e6)]})
    cost, latency = build_charts(loaded(*run, skipped).episodes)
    assert (
        cost["sentence"] == "10 episodes, from $0.10 to $1.00: median $0.50, 95th percentile $1.00"
    )
    assert latency["high"] == "1,050 ms"
    assert sum(int(bar["count"]) for bar in latency["bars"]) == 10
