"""The agreement of a judge with human labels."""

from __future__ import annotations

import pytest

from ci_agent_eval.analysis.judge_agreement import LabelPair, measure_agreement
from tests.tables import each_row


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


YY, YN, NY, NN = (LabelPair(one, other) for one in (True, False) for other in (True, False))


@each_row(
    ("pairs", "kappa"),
    [
        # J. L. Fleiss, J. Cohen and B. S. Everitt's formula with the 2 x 2 table 20, 5, 10, 15
        ([YY] * 20 + [YN] * 5 + [NY] * 10 + [NN] * 15, 0.4),
        ([YY] * 3 + [NN] * 3, 1),
        ([YY] * 16 + [NY] * 4, 0),  # a judge that passes everything
        ([YN, NY] * 4, -1),
        ([YY] * 9, None),
    ],
)
def test_kappa(pairs, kappa):
    assert measure_agreement(pairs).kappa == (None if kappa is None else pytest.approx(kappa))


def test_few_labels_prove_little_and_none_nothing():
    found = measure_agreement([YY] * 3 + [NN] * 3)
    assert found.high == 1
    assert found.low < 0.7
    with pytest.raises(ValueError, match="at least one label"):
        measure_agreement([])
