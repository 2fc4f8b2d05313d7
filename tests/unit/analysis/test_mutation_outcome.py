"""Which changes were noticed: played episodes joined with their mutants."""

from __future__ import annotations

import pytest

from ci_agent_eval.analysis.mutations.derive import derive_tests
from ci_agent_eval.analysis.mutations.outcome import build_mutation_report, index_played
from tests.builders import calling, episode, failed_assertion, failing

RECORDED = calling("lookup")
TESTS = derive_tests([RECORDED])
EXACT = {"playback": {"answers": 1}}


def play(number, build=episode, /, **fields):
    total = len(TESTS[0].mutants) + 1
    name = f"{RECORDED.nodeid}[{number}-of-{total}]"
    fields = {"metadata": EXACT, **fields}
    return build("refund", nodeid=name, iteration=number, iterations=total, **fields)


def judge(*changed, tests=TESTS):
    """Judge plays that pass, but for those that are given."""
    plays = {number: play(number) for number in range(1, len(TESTS[0].mutants) + 2)}
    plays |= {one.iteration: one for one in changed}
    return build_mutation_report(tests, index_played(plays.values()), "default")


def test_a_failed_test_noticed_and_says_by_what():
    report = judge(play(2, failing, assertions=[failed_assertion("says sorry")]))
    (scenario,) = report.scenarios
    assert (scenario.results[0].status, scenario.results[0].noticed_by) == (
        "noticed",
        ("says sorry",),
    )
    assert {result.status for result in scenario.results[1:]} == {"unnoticed"}
    assert report.counts.noticed == 1
    assert report.score == pytest.approx(1 / len(scenario.results))


def test_an_error_and_a_hard_budget_are_noticed():
    budget = {"tool_calls": {"limit": 1, "used": 2, "hard": True}}
    report = judge(
        play(2, outcome="error", reason="ValueError: no call"),
        play(3, budgets=budget, trajectory=None),
    )
    found = [(r.status, r.noticed_by) for r in report.scenarios[0].results[:2]]
    assert found == [
        ("noticed", ("ValueError: no call",)),
        ("noticed", ("budget tool_calls",)),
    ]


def test_a_warning_is_told_apart_unless_the_recording_has_it_too():
    soft = {"tool_calls": {"limit": 1, "used": 2, "hard": False}}
    noted = [failed_assertion("is short", severity="warning")]
    report = judge(
        play(1, assertions=noted),
        play(2, assertions=noted),
        play(3, assertions=noted, budgets=soft, trajectory=None),
    )
    first, second, *_ = report.scenarios[0].results
    assert first.status == "unnoticed"
    assert (second.status, second.noticed_by) == ("warned", ("budget tool_calls",))
    assert report.counts.warned == 1
    assert report.score == pytest.approx(1 / len(report.scenarios[0].results))


def test_a_change_left_to_a_judge_does_not_count():
    report = judge(play(2, metadata={"playback": {"answers": 1, "is_judged": True}}))
    assert report.scenarios[0].results[0].status == "unjudged"
    assert report.counts.unjudged == 1
    assert report.score == 0


def test_a_skipped_test_noticed_nothing():
    assert judge(play(2, outcome="skipped")).scenarios[0].results[0].status == "unnoticed"


@pytest.mark.parametrize(
    ("unchanged", "problem"),
    [
        (play(1, metadata={}), "own_agent"),
        (play(1, failing, metadata={"playback": {"own_turns": True}}), "own_agent"),
        (play(1, traffic={"requests": 1, "refused": 1}), "asks_model"),
        (play(1, failing), "playback_failed"),
        (play(1, failing, metadata={}), "playback_failed"),
        (play(1, metadata={"playback": {"answers": 1, "extra": 1}}), "other_answers"),
        (play(1, metadata={"playback": {"answers": 1, "unused": 1}}), "other_answers"),
    ],
)
def test_a_recording_that_does_not_pass_unchanged_covers_nothing(unchanged, problem):
    report = judge(unchanged)
    assert (report.scenarios[0].problem, report.scenarios[0].results) == (problem, ())
    assert report.score is None


def test_a_recording_that_failed_or_was_not_played_covers_nothing():
    failed = derive_tests([failing("bad"), episode("moved", nodeid="old.py::test")])
    report = judge(tests=failed)
    assert [one.problem for one in report.scenarios] == ["not_played", "recording_failed"]


def test_nothing_to_change_is_a_problem():
    silent = derive_tests([episode("silent", trajectory=None, evidence="none")])
    assert judge(tests=silent).scenarios[0].problem == "no_change"
