"""The figures of `agent-eval steer stats`: counts."""

from __future__ import annotations

from ci_agent_eval.steering.steer_stats import render_stats_text, summarize_calls
from ci_agent_eval.steering.store import RecordedCall


def calls(text):
    """Build calls from `session kind`, one per line."""
    for number, line in enumerate(text.strip().splitlines()):
        yield RecordedCall(*line.split(), 1.8e9 + number)


def summarize(text):
    return summarize_calls(list(calls(text)))


def test_each_held_call_counts_by_what_followed_in_its_session():
    stats = summarize("""
        a held
        b held
        a targeted
        b insisted
        c held
        b targeted
        a targeted
    """)

    assert (stats.held, stats.sessions) == (3, 3)
    assert (stats.redirected, stats.insisted, stats.neither) == (1, 1, 1)


def test_a_full_run_after_a_targeted_run_was_insisted_on():
    stats = summarize("a held\na targeted\na insisted")

    assert (stats.redirected, stats.insisted, stats.neither) == (0, 1, 0)


def test_two_held_calls_of_a_session_count_apart():
    stats = summarize("a held\na insisted\na held\na targeted")

    assert (stats.redirected, stats.insisted, stats.neither) == (1, 1, 0)


def test_the_text_has_all_counts():
    stats = summarize("a held\na targeted\na targeted\na insisted")

    assert render_stats_text(stats) == (
        "held back:     1 full run in 1 session since 2027-01-15\n"
        "redirected:    0 (targeted runs followed, and no full run)\n"
        "insisted:      1 (a full run was sent again, and ran)\n"
        "neither:       0\n"
        "full runs:     1\n"
        "targeted runs: 2\n"
    )
