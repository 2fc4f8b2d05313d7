"""Drops that base and head, run again in turn, confirm or refute."""

from __future__ import annotations

import json
from statistics import fmean

import pytest
from scipy import stats

from ci_agent_eval.analysis.comparison.confirmation import MAX_SAMPLE
from ci_agent_eval.analysis.comparison.model import ComparePolicy
from ci_agent_eval.analysis.comparison.suite_change import SuiteSample, compute_suite_change
from ci_agent_eval.analysis.loaded_results import ConfirmationRuns, build_episode_record
from ci_agent_eval.app.confirmation import plan_repeats
from ci_agent_eval.gate.model import GatePolicy
from ci_agent_eval.render.formats.document import parse_verdict, render_verdict
from ci_agent_eval.render.headline import render_headline
from ci_agent_eval.render.markdown.report import render_comment
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import baseline, episode, failing, report
from tests.tables import each_row

POLICY = ComparePolicy(confirm=True)


def rounds(scenario, passed, judged, **fields):
    """Return a scenario's iterations, of which the first ones passed."""
    return [
        (episode if n <= passed else failing)(scenario, iteration=n, min_pass_rate=0.0, **fields)
        for n in range(1, judged + 1)
    ]


def confirmation(base, head, planned=20):
    sides = [tuple(map(build_episode_record, side)) for side in (base, head)]
    names = {record.scenario_id for record in sides[1]}
    return ConfirmationRuns(*sides, planned=dict.fromkeys(names, planned))


def judge(head, base, again=None, policy=POLICY):
    return report(
        *head,
        baseline=baseline(base),
        compare_policy=policy,
        policy=GatePolicy(min_pass_rate=0.0),
        confirmation=again,
    )


@each_row(
    ("base", "head", "passed", "said"),
    [
        ((20, 20), (9, 20), False, "confirmed: passes on the base today, 20 of 20, and 9 of 20"),
        # Fisher's p is 0.024: between runs on different days it would not be enough.
        ((20, 20), (15, 20), False, "confirmed: passes on the base today, 20 of 20, and 15 of 20"),
        ((11, 20), (9, 20), True, "also fails on the base today: 11 of 20 passed there, and 9 of"),
        ((20, 20), (20, 20), True, "passes again today: 20 of 20 on the base, and 20 of 20 here"),
        ((15, 15), (15, 15), True, "passes again today"),
        ((14, 14), (20, 20), False, "too little was judged: 14 of 14 on the base, and 20 of 20"),
        ((20, 20), (14, 14), False, "too little was judged"),
        ((4, 4), (0, 4), False, "confirmed: passes on the base today, 4 of 4, and 0 of 4 here"),
    ],
)
def test_only_a_judged_difference_that_is_none_refutes(base, head, passed, said):
    again = confirmation(rounds("refund", *base), rounds("refund", *head))
    built = judge(rounds("refund", 0, 5), rounds("refund", 5, 5), again)
    assert built.passed is passed
    (reason,) = built.verdict.warnings if passed else built.verdict.reasons
    assert said in reason.message


def test_a_scenario_that_was_not_run_again_stays_a_regression():
    again = confirmation(rounds("other", 0, 20), rounds("other", 0, 20))
    built = judge(rounds("refund", 0, 5), rounds("refund", 5, 5), again)
    assert [reason.kind for reason in built.verdict.reasons] == ["regression"]
    assert built.comparison.scenarios[0].confirmation is None


def suite(passed, judged, count=10):
    return [one for n in range(count) for one in rounds(f"s{n}", passed + n % 2, judged)]


@each_row(
    ("base", "head", "planned", "kind"),
    [
        (suite(7, 8), suite(4, 8), 8, "suite_drop"),
        (suite(4, 8), suite(4, 8), 8, None),
        (suite(4, 8), suite(4, 8), 20, "suite_drop"),
        (suite(4, 8, 7), suite(4, 8, 7), 8, "suite_drop"),
        (suite(4, 8, 8), suite(4, 8, 8), 8, None),
        (suite(4, 8, 4), suite(4, 8, 4), 8, "suite_drop"),
    ],
)
def test_a_drop_of_the_suite_is_refuted_by_most_of_its_scenarios(base, head, planned, kind):
    built = judge(suite(2, 5), suite(4, 5), confirmation(base, head, planned))
    assert [reason.kind for reason in built.verdict.reasons] == ([kind] if kind else [])
    assert built.verdict.warnings or kind


def test_interleaved_sides_need_no_day():
    samples = [SuiteSample((0.9,), 0.9, after) for after in (0.5, 0.6, 0.7, 0.9, 0.4, 0.8)]
    found = compute_suite_change("pass_rate", samples, gates=True, interleaved=True)
    differences = [s.after - s.usual for s in samples]
    expected = stats.ttest_1samp(differences, 0, alternative="less")
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6)
    both = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert found.interval == pytest.approx((both.low, both.high))
    assert (found.day_variation, found.difference) == (0.0, pytest.approx(fmean(differences)))


def test_the_plan_has_the_regressions_and_for_a_suite_a_sample():
    lone = judge([*rounds("refund", 0, 5), *rounds("greet", 5, 5)], [*rounds("refund", 5, 5)])
    assert [(s.scenario_id, s.iterations) for s in plan_repeats(lone)] == [("refund", 5)]
    whole = judge(suite(2, 5, 60), suite(4, 5, 60))
    planned = plan_repeats(whole)
    assert (len(planned), {s.iterations for s in planned}) == (MAX_SAMPLE, {2})
    assert plan_repeats(whole) == planned
    assert plan_repeats(judge(suite(4, 5), suite(4, 5))) == ()


def test_what_only_warns_is_not_planned():
    head, base = rounds("refund", 0, 5, gate="advisory"), rounds("refund", 5, 5, gate="advisory")
    assert plan_repeats(judge(head, base)) == ()


def test_a_renamed_scenario_is_planned_by_both_names():
    head = rounds("refund", 0, 5, was=("big_refund",))
    again = confirmation(rounds("big_refund", 20, 20), rounds("refund", 0, 20, was=("big_refund",)))
    built = judge(head, rounds("big_refund", 5, 5), again)
    (planned,) = plan_repeats(built)
    assert (planned.scenario_id, planned.was) == ("refund", "big_refund")
    assert "passes on the base today, 20 of 20" in built.verdict.reasons[0].message


@each_row(
    ("again", "headline", "sentence"),
    [
        (suite(4, 8), "the suite passes less often, 90 % → 50 %, as the base does",
         "not confirmed by running the base again: 56.2 % there today and 56.2 % here"),
        (suite(7, 8), "the suite passes less often, 90 % → 50 %",
         "confirmed by running the base again: 93.8 % there today and 56.2 % here"),
    ],
)  # fmt: skip
def test_the_headline_says_what_the_base_shows_also_when_read_back(again, headline, sentence):
    built = judge(suite(2, 5), suite(4, 5), confirmation(again, suite(4, 8), 8))
    text = render_verdict(built)
    assert headline in json.loads(text)["headline"]
    assert sentence in text
    assert render_headline(parse_verdict(text)) == render_headline(built)


def test_a_scenario_that_fails_by_itself_too_says_what_the_base_shows():
    again = confirmation(rounds("refund", 3, 20), rounds("refund", 4, 20))
    built = report(
        *(failing("refund", iteration=n) for n in range(1, 6)),
        baseline=baseline([episode("refund", iteration=n) for n in range(1, 6)]),
        compare_policy=POLICY,
        confirmation=again,
    )
    assert [reason.kind for reason in built.verdict.reasons] == ["scenario"]
    text = render_comment(build_report_view(built))
    assert "<code>refund</code> 5/5 → 0/5, not confirmed today · fails" in text
    assert "also fails on the base today: 3 of 20 passed there, and 4 of 20 here" in text
