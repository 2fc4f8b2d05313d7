"""Experiments side by side, and as they are shown."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.opik.experiments.compare import compare_results, find_experiment
from ci_agent_eval.opik.experiments.experiment_text import (
    encode_comparison,
    encode_experiment,
    encode_result,
    format_json,
    render_comparison,
    render_experiment,
    render_experiments,
)
from ci_agent_eval.opik.experiments.records import (
    Experiment,
    ExperimentResult,
    ScoreRow,
    build_content,
)


def experiment(uid="0190aaaa-0000", **overrides):
    fields = {
        "name": f"Test-Suite-{uid}",
        "dataset": "tests",
        "started": "2026-01-01T00:00:00.000+00:00",
        "outcomes": {"passed": 2, "failed": 1},
        **overrides,
    }
    return Experiment(uid=uid, **fields)


def result(nodeid, outcome="passed", **scores):
    rows = tuple(ScoreRow(name, value) for name, value in scores.items())
    reason = None if outcome == "passed" else "it did not"
    return ExperimentResult(nodeid, outcome, reason, rows, build_content(nodeid, given={}))


BASE = [
    result("t::gone"),
    result("t::same", tone=0.5),
    result("t::tone", tone=0.5),
    result("t::worse", tone=1.0),
    result("t::better", "error"),
    result("t::skips"),
    result("t::still", "failed"),
]
OTHER = [
    result("t::new"),
    result("t::same", tone=0.5),
    result("t::tone", tone=0.25),
    result("t::worse", "failed", tone=0.0),
    result("t::better"),
    result("t::skips", "skipped"),
    result("t::still", "error"),
]


@pytest.fixture
def comparison():
    return compare_results(experiment("base"), experiment("other"), BASE, OTHER)


def test_worse_and_better_are_told_from_the_rest(comparison):
    assert [c.nodeid for c in comparison.worse] == ["t::skips", "t::worse"]
    assert [c.nodeid for c in comparison.better] == ["t::better"]
    assert [c.nodeid for c in comparison.changes] == sorted(
        f"t::{name}" for name in ("gone", "new", "tone", "worse", "better", "skips", "still")
    )
    assert comparison.unchanged == 1
    assert comparison.means == {"tone": (pytest.approx(2 / 3), 0.25)}


def test_the_order_of_results_changes_nothing(comparison):
    again = compare_results(experiment("base"), experiment("other"), BASE[::-1], OTHER[::-1])
    assert render_comparison(again) == render_comparison(comparison)


def test_a_comparison_as_text(comparison):
    assert render_comparison(comparison) == (
        "base   Test-Suite-base: 2 passed, 1 failed\n"
        "other  Test-Suite-other: 2 passed, 1 failed\n"
        "\n"
        "WORSE  t::skips: passed -> skipped\n"
        "WORSE  t::worse: passed -> failed, tone 1 -> 0\n"
        "BETTER t::better: error -> passed\n"
        "OTHER  t::gone: passed -> not there\n"
        "OTHER  t::new: not there -> passed\n"
        "OTHER  t::still: failed -> error\n"
        "OTHER  t::tone: tone 0.5 -> 0.25\n"
        "1 unchanged\n"
        "mean tone: 0.667 -> 0.25\n"
    )


def test_a_comparison_as_json(comparison):
    document = json.loads(format_json(encode_comparison(comparison)))
    assert document["worse"] == ["t::skips", "t::worse"]
    assert document["changes"][-1] == {
        "nodeid": "t::worse",
        "before": "passed",
        "after": "failed",
        "reason": "it did not",
        "scores": {"tone": [1.0, 0.0]},
    }


def test_a_list_as_text():
    listed = render_experiments(
        [experiment(commit="abcdef0123456789", sink="opik"), experiment("b")]
    )
    assert listed.splitlines() == [
        "EXPERIMENT                DATA SET  RESULTS             COMMIT        SERVER          ID",
        (
            "Test-Suite-0190aaaa-0000  tests     2 passed, 1 failed  abcdef012345  opik: not sent  "
            "0190aaaa-0000"
        ),
        "Test-Suite-b              tests     2 passed, 1 failed  -             -               b",
    ]
    assert render_experiments([]) == "no experiments yet\n"


def test_an_experiment_as_text():
    text = render_experiment(
        experiment("b", settings={"suite": "default", "n": 3}, sink="opik", sent="2026"),
        [result("t::a", Passed=1.0), result("t::b", "failed", Passed=0.0)],
    )
    assert text.splitlines() == [
        "experiment  Test-Suite-b",
        "id          b",
        "data set    tests",
        "started     2026-01-01T00:00:00.000+00:00",
        "ended       not: the run did not come to its end",
        "commit      -",
        "server      opik: sent",
        "results     2 passed, 1 failed",
        "setting     n = 3",
        "setting     suite = default",
        "",
        "PASSED  t::a  [Passed 1]",
        "FAILED  t::b  [Passed 0]",
        "        it did not",
    ]


def test_hostile_names_do_not_steer_the_terminal():
    evil = "\x1b[2J\nPASSED"
    shown = render_experiment(
        experiment(name=evil, settings={evil: evil}),
        [ExperimentResult(evil, "failed", evil, (ScoreRow(evil, 1.0),))],
    )
    listed = render_experiments([experiment(name=evil, dataset=evil, commit=evil)])
    assert "\x1b" not in shown + listed
    assert len(listed.splitlines()) == 2


def test_everything_of_a_result_is_in_the_json():
    document = {
        **encode_experiment(experiment()),
        "results": [encode_result(result("t::a", tone=1))],
    }
    found = json.loads(format_json(document))
    assert found["results"][0]["item"] == {"input": {"test_name": "t::a"}}
    assert found["results"][0]["scores"] == {"tone": 1}
    assert found["outcomes"] == {"passed": 2, "failed": 1}


def test_an_experiment_is_found_by_name_id_and_the_id_s_beginning():
    first, second = experiment("0190aaaa-0002"), experiment("0190aaaa-0001")
    found = [first, second]
    assert find_experiment(found, "latest") is find_experiment(found, "latest~0") is first
    assert find_experiment(found, "latest~1") is second
    assert find_experiment(found, second.name) is second
    assert find_experiment(found, "0190aaaa-0001") is second
    assert find_experiment(found, "0190aaaa-0002") is first
    with pytest.raises(InputError, match="2 are called so; give its id: 0190aaaa-0002, 0190"):
        find_experiment(found, "0190aaaa")
    for named in ("0190", "nope", "", "latest~2", "latest~", "latest~-1"):
        with pytest.raises(InputError, match="there is none"):
            find_experiment(found, named)
    with pytest.raises(InputError, match="'latest': there is none"):
        find_experiment([], "latest")
