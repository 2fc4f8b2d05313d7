"""The gate on judged scores: its false alarms include the judge's noise, and it fails closed."""

from __future__ import annotations

import math
import random

from ci_agent_eval.analysis.judges.agreement import calibrate_judge
from ci_agent_eval.analysis.judges.judged_checks import (
    RepeatedAssertion,
    TranscriptKey,
    summarize_checks,
)
from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.gate.judge_gate import (
    DoubtfulResults,
    JudgePolicy,
    LowJudgedScore,
    MissingVerdicts,
    NothingJudged,
    UnprovenJudge,
    UnprovenScore,
    decide_judge_gate,
)
from tests.tables import each_row
from tests.unit.analysis.judges.synthetic import judge_suite, label_suite

COMPLETE = MissingVerdicts(0, 0)


def repeated(scores, scenario="a", iteration=1, name="kind", passes_from=0.5):
    results = tuple(Assertion(name=name, passed=s >= passes_from, score=s) for s in scores)
    return RepeatedAssertion(TranscriptKey(scenario, iteration), name, results, is_judged=True)


def decide(found, policy, calibrations=None, missing=COMPLETE, problems=()):
    names = {one.name for one in found}
    checks = summarize_checks(found, calibrations or {}, policy.compute_level(len(names)))
    return decide_judge_gate(checks, policy, missing, problems)


def judged_suite(rng, mean, *, judge_sd, name="kind", **shape):
    suite = judge_suite(rng, mean=mean, judge_sd=judge_sd, **shape)
    return [
        repeated(one.scores, one.scenario, number, name=name) for number, one in enumerate(suite)
    ]


@each_row(
    "shape",
    [
        {"scenarios": 10, "iterations": 3, "repeats": 1},
        {"scenarios": 10, "iterations": 2, "repeats": 3},
        {"scenarios": 20, "iterations": 1, "repeats": 2},
    ],
)
@each_row("judge_sd", [0.02, 0.15])
def test_an_unchanged_suite_is_red_at_most_at_the_accepted_rate(shape, judge_sd):
    """The true score of both checks is the required one, which is the worst case."""
    rng, runs, red = random.Random(21), 150, 0
    policy = JudgePolicy(min_score=0.5)
    for _ in range(runs):
        found = [
            one
            for name in ("kind", "brief")
            for one in judged_suite(rng, 0.5, agent_sd=0.05, judge_sd=judge_sd, name=name, **shape)
        ]
        red += not decide(found, policy).passed
    assert red / runs <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / runs)


def test_a_drop_beyond_the_noise_is_found():
    rng, runs, red = random.Random(22), 100, 0
    for _ in range(runs):
        found = judged_suite(rng, 0.4, agent_sd=0.05, judge_sd=0.1, scenarios=10, iterations=3)
        red += not decide(found, JudgePolicy(min_score=0.5)).passed
    assert red / runs > 0.95


def test_a_lenient_judge_does_not_hide_a_low_pass_rate():
    """The judge passes 78 % of transcripts, people 60 %; the labels correct it."""
    rng = random.Random(23)
    judge = {"sensitivity": 0.97, "specificity": 0.5}
    labels = calibrate_judge(label_suite(rng, count=400, rate=0.5, **judge))
    verdicts = label_suite(rng, count=400, rate=0.6, **judge)
    found = [repeated([float(v.verdict)], str(n)) for n, v in enumerate(verdicts)]
    policy = JudgePolicy(min_pass_rate=0.75)
    assert decide(found, policy).reasons == ()
    (reason,) = decide(found, policy, {"kind": labels}).reasons
    assert isinstance(reason, LowJudgedScore)


def test_a_strict_judge_is_no_false_alarm_with_labels():
    """The judge passes 72 % of what people pass: red at the plain rate, not at the corrected one."""
    runs, plain, corrected = 100, 0, 0
    rng, policy = random.Random(24), JudgePolicy(min_pass_rate=0.85)
    for _ in range(runs):
        judge = {"sensitivity": 0.8, "specificity": 0.95}
        labels = calibrate_judge(label_suite(rng, count=60, rate=0.6, **judge))
        verdicts = label_suite(rng, count=120, rate=0.85, **judge)
        found = [repeated([float(v.verdict)], str(n)) for n, v in enumerate(verdicts)]
        plain += not decide(found, policy).passed
        corrected += not decide(found, policy, {"kind": labels}).passed
    assert plain / runs > 0.8
    assert corrected / runs <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / runs)


def test_a_score_that_the_limits_enclose_is_inconclusive():
    found = [repeated([0.7, 0.9], str(n)) for n in range(4)]
    gate = decide(found, JudgePolicy(min_score=0.75))
    assert gate.passed
    (warning,) = gate.warnings
    assert isinstance(warning, UnprovenScore)


ALIKE = calibrate_judge(
    label_suite(random.Random(1), count=9, rate=1, sensitivity=1, specificity=1)
)
GOOD = calibrate_judge(
    label_suite(random.Random(1), count=80, rate=0.5, sensitivity=0.97, specificity=0.97)
)


@each_row(
    ("calibration", "low", "missing"),
    [(None, None, "all"), (ALIKE, None, "fail"), (GOOD, GOOD.kappa.low, None)],
)
def test_a_judge_has_to_prove_its_agreement(calibration, low, missing):
    found = [repeated([1.0, 1.0])]
    calibrations = {} if calibration is None else {"kind": calibration}
    gate = decide(found, JudgePolicy(min_kappa=0.95), calibrations)
    assert gate.reasons == (UnprovenJudge("kind", "kappa", 0.95, low, missing),)


def test_a_proven_judge_passes():
    policy = JudgePolicy(min_agreement=0.8, min_kappa=0.6)
    assert decide([repeated([1.0])], policy, {"kind": GOOD}).passed


@each_row("missing", [MissingVerdicts(1, 0), MissingVerdicts(0, 1)])
def test_a_missing_verdict_fails_also_without_requirements(missing):
    assert decide([repeated([1.0])], JudgePolicy(), missing=missing).reasons == (missing,)


def test_incomplete_results_fail():
    gate = decide([repeated([1.0])], JudgePolicy(), problems=["results.json: it is cut off"])
    assert gate.reasons == (DoubtfulResults(("results.json: it is cut off",)),)


def test_checks_without_a_model_are_not_the_judge_s():
    plain = RepeatedAssertion(
        TranscriptKey("a", 1), "tools", (Assertion(name="tools", passed=False),), is_judged=False
    )
    policy = JudgePolicy(min_score=0.9, min_kappa=0.5)
    assert decide([plain] * 30, policy).reasons == (NothingJudged(),)
    assert decide([plain, repeated([1.0] * 2, "b")], JudgePolicy()).passed
