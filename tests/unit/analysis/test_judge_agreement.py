"""The agreement of a judge with human labels."""

from __future__ import annotations

import pytest

from ci_agent_eval.analysis.judge_agreement import LabelPair, measure_agreement


def test_the_figures_of_a_table():
    pairs = [
        *[LabelPair(True, True)] * 40,
        *[LabelPair(True, False)] * 15,
        *[LabelPair(False, True)] * 5,
        *[LabelPair(False, False)] * 40,
    ]
    found = measure_agreement(pairs)
    assert (found.agreed, found.labels) == (80, 100)
    assert (found.judged_pass, found.pass_labels) == (40, 55)
    assert (found.judged_fail, found.fail_labels) == (40, 45)
    assert found.low == pytest.approx(0.7111, abs=1e-4)
    assert found.high == pytest.approx(0.8666, abs=1e-4)
    chance = 0.55 * 0.45 + 0.45 * 0.55
    assert found.kappa == pytest.approx((0.8 - chance) / (1 - chance))


def test_kappa_of_a_published_table():
    """J. L. Fleiss, J. Cohen and B. S. Everitt's formula with the 2 x 2 table 20, 5, 10, 15."""
    pairs = [
        *[LabelPair(True, True)] * 20,
        *[LabelPair(True, False)] * 5,
        *[LabelPair(False, True)] * 10,
        *[LabelPair(False, False)] * 15,
    ]
    assert measure_agreement(pairs).kappa == pytest.approx(0.4)


def test_few_labels_that_all_agree_prove_little():
    found = measure_agreement([LabelPair(True, True)] * 3 + [LabelPair(False, False)] * 3)
    assert (found.kappa, found.high) == (1, 1)
    assert found.low < 0.7


def test_a_judge_that_passes_everything_agrees_by_chance():
    found = measure_agreement([LabelPair(True, True)] * 16 + [LabelPair(False, True)] * 4)
    assert found.kappa == pytest.approx(0)


def test_a_judge_that_is_always_wrong_is_below_chance():
    found = measure_agreement([LabelPair(True, False), LabelPair(False, True)] * 4)
    assert found.kappa == pytest.approx(-1)


def test_labels_of_one_kind_have_no_kappa():
    assert measure_agreement([LabelPair(True, True)] * 9).kappa is None
    with pytest.raises(ValueError, match="at least one label"):
        measure_agreement([])


def test_one_clause_of_the_labels_decides_the_agreement():
    """As in openai-cookbook #2940: the same verdicts agree with one reading of the labels only."""
    verdicts = [True] * 50 + [False] * 40
    strict = [True] * 25 + [False] * 65
    pairs = [LabelPair(*pair) for pair in zip(strict, verdicts, strict=True)]
    assert measure_agreement(pairs).agreed == 65
    assert measure_agreement([LabelPair(v, v) for v in verdicts]).agreed == 90
