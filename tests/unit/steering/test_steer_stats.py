"""The figures of `agent-eval steer stats`: counts, and nothing but measured times."""

from __future__ import annotations

from ci_agent_eval.steering.steer_stats import (
    RunTimes,
    render_stats_text,
    summarize_calls,
)
from ci_agent_eval.steering.store import RecordedCall


def calls(text):
    """Build calls from `session kind seconds`, one per line; seconds may be missing."""
    for number, line in enumerate(text.strip().splitlines()):
        session, kind, *seconds = line.split()
        yield RecordedCall(session, kind, 1.8e9 + number, float(seconds[0]) if seconds else None)


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


def test_only_measured_runs_have_times():
    stats = summarize("a held\na targeted 2\na targeted\na targeted 4\na insisted 60.5")

    assert stats.targeted_runs == RunTimes(3, 2, 3.0, 6.0)
    assert stats.full_runs == RunTimes(1, 1, 60.5, 60.5)
    assert render_stats_text(stats) == (
        "held back:     1 full run in 1 session since 2027-01-15\n"
        "redirected:    0 (targeted runs followed, and no full run)\n"
        "insisted:      1 (a full run was sent again, and ran)\n"
        "neither:       0\n"
        "full runs:     1, 1 of them measured: median 60.5 s, total 60.5 s\n"
        "targeted runs: 3, 2 of them measured: median 3.0 s, total 6.0 s\n"
    )


def test_without_durations_the_text_says_so():
    text = render_stats_text(summarize("a held\na targeted"))

    assert text.endswith("full runs:     none\ntargeted runs: 1, not measured\n")
