"""Ends of an episode: stop reasons of its runs, finish reasons of replies, errors after checks."""

from __future__ import annotations

from ci_agent_eval.contract.trajectory import Turn
from ci_agent_eval.recording import EpisodeRecorder, build_initial_episode
from tests.tables import each_row
from tests.unit.recording.rig import a_recorder


@each_row("mode", ["strict", "evaluation"])
def test_an_error_after_a_failed_check_is_told_with_it(mode):
    recorder = EpisodeRecorder(build_initial_episode("greeting", mode=mode), clock=lambda: 0.0)
    recorder.check("polite", False)
    ended = recorder.finish("error", "ConnectionError: refused")
    assert (ended.outcome, ended.reason) == (
        "failed",
        "failed: polite; then ConnectionError: refused",
    )
    assert [assertion.passed for assertion in ended.assertions] == [False]


def agent_turns(number: int) -> tuple[Turn, ...]:
    return tuple(Turn(role="assistant", content=f"{n}") for n in range(number))


def test_a_run_that_needed_one_more_turn_is_over_its_budget():
    episode = a_recorder(budgets={"max_turns": 3})
    episode.record_run(agent_turns(3), stop_reason="max_turns", error="not done", needs_turn=True)
    ended = episode.finish()
    assert [(v.budget, v.observed) for v in ended.violations] == [("max_turns", 4)]
    assert ended.reason == "failed: agent finished (max_turns: not done)"
    assert ended.trajectory_summary.steps_count == 3


def test_every_run_of_an_episode_has_to_finish():
    episode = a_recorder()
    episode.record_run(agent_turns(1), stop_reason="refusal", error="no")
    episode.record_run(agent_turns(1), stop_reason="completed")
    ended = episode.finish()
    assert (ended.outcome, ended.stop_reason) == ("failed", "completed")


def test_what_one_run_is_allowed_another_is_not():
    episode = a_recorder()
    episode.record_run(agent_turns(1), stop_reason="refusal", allowed_stops={"refusal"})
    assert episode.snapshot().outcome == "passed"
    assert episode.snapshot().allowed_stops == ("refusal",)
    episode.record_run(agent_turns(1), stop_reason="refusal")
    assert episode.finish().outcome == "failed"


def test_a_timeout_before_any_answer_fails_nothing_by_itself():
    episode = a_recorder(evidence="none")
    episode.record_run((Turn(role="user", content="hi"),), stop_reason="timeout")
    assert episode.finish().outcome == "passed"


@each_row(
    ("finish_reason", "reason"),
    [("stop", None), ("max_tokens", "truncated"), ("content_filter", "refusal")],
)
def test_the_finish_reason_of_a_reply_counts(finish_reason, reason):
    episode = a_recorder()
    with episode.turn("Hello") as turn:
        turn.reply("Hi", finish_reason=finish_reason)
    ended = episode.finish()
    assert ended.stop_reason == reason
    assert ended.outcome == ("failed" if reason else "passed")
