"""Adaptive iterations through `agent-eval run`: the gate, the report and the baseline."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.render.formats.document import parse_verdict, render_verdict
from tests.builders import episode, failing, write_run

SUITE = """
import pytest

def answer(episode, passes):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    episode.check("polite", passes)

@pytest.mark.episode(scenario_id="good", {marker})
def test_good(episode):
    answer(episode, passes=True)

@pytest.mark.episode(scenario_id="bad", {marker})
def test_bad(episode):
    answer(episode, passes=episode.iteration % 3 == 0)
"""


@pytest.fixture
def ran(agent_eval, tmp_path):
    """Run a suite by `agent-eval run`; return the exit code, the verdict, and the report."""

    def run(suite, *arguments, settings=""):
        (tmp_path / "test_suite.py").write_text(suite)
        (tmp_path / "agent-eval.toml").write_text(settings)
        done = agent_eval("run", "test_suite.py", *arguments)
        written = (tmp_path / "agent-eval-report/verdict.json").read_text()
        verdict = json.loads(written)
        assert render_verdict(parse_verdict(written)) == written
        report = (tmp_path / "agent-eval-report/summary.md").read_text()
        return done.returncode, verdict, report, done.stdout

    return run


def scenarios(verdict):
    return {
        s["scenario_id"]: (s["adaptive"]["stop"], s["tally"]["passed"], s["tally"]["failed"])
        for s in verdict["summary"]["scenarios"]
    }


def statuses(verdict):
    return {j["scenario_id"]: j["status"] for j in verdict["verdict"]["judgements"]}


def test_the_required_rate_decides_without_a_baseline(ran):
    suite = SUITE.replace("{marker}", 'iterations="auto", min_pass_rate=0.9')
    code, verdict, report, text = ran(suite)
    assert code == 1
    assert scenarios(verdict) == {
        "bad": ("below_required", 1, 3),
        "good": ("reaches_required", 13, 0),
    }
    assert statuses(verdict) == {"bad": "failing", "good": "passing"}
    assert "decided: below the required 90.0 % after 4 iterations" in report
    assert "decided: reaches the required 90.0 % after 13 iterations" in report
    for said in (report, text):
        assert "adaptive: 17 of at most 120 iterations" in " ".join(said.split())
    # Rates are those of the iterations that always run.
    assert "90.0 % of its iterations must pass" in report
    assert "passes 1/4, 33.3 % (6.1–79.2) in the first 3, " in report
    assert "| pass rate (6 episodes) | 66.7 %" in report
    page = json.dumps(verdict["summary"]["pass_interval"])
    assert page == "[0.299993, 0.903229]"


def write_base(folder, runs, failed):
    """Write runs of the base with 20 iterations of each scenario; `failed` fail in each run."""
    for run in range(runs):
        found = [
            (failing if i <= failed else episode)(name, iteration=i, iterations=20, duration_ms=run)
            for name in ("bad", "good")
            for i in range(1, 21)
        ]
        write_run(folder / f"run-{run}", *found)


def test_a_regression_against_the_baseline_decides(ran, tmp_path):
    write_base(tmp_path / "base", 5, 1)
    suite = SUITE.replace("{marker}", 'iterations="auto", min_pass_rate=0.0')
    code, verdict, report, _ = ran(suite, "--baseline", "base", "--min-pass-rate", "0")
    assert code == 1
    found = scenarios(verdict)
    assert found["bad"][0] == "regression"
    assert sum(found["bad"][1:]) < 20
    assert found["good"] == ("no_regression", 3, 0)
    assert [(r["kind"], r["scenario_id"]) for r in verdict["verdict"]["reasons"]] == [
        ("regression", "bad")
    ]
    assert "decided: lower than the baseline after" in report
    assert "decided: not lower than the baseline after" in report


def test_a_used_up_budget_leaves_scenarios_undecided(ran):
    suite = SUITE.replace("{marker}", 'iterations="auto", min_pass_rate=0.9')
    suite = suite.replace('turn.reply("Hi")', 'turn.reply("Hi", cost_usd=1.0)')
    suite = suite.replace("% 3 == 0", "!= 2")
    code, verdict, report, _ = ran(suite, "--total-cost-usd", "9.5")
    assert code == 1
    found = scenarios(verdict)
    assert {cause for cause, _, _ in found.values()} == {"budget"}
    assert statuses(verdict) == {"bad": "failing", "good": "incomplete"}
    assert {"finding", "suite_budget"} <= {r["kind"] for r in verdict["verdict"]["reasons"]}
    assert "undecided after 5 iterations: the suite's budget is used up" in report


def test_an_undecided_scenario_without_its_session_does_not_pass(agent_eval, tmp_path):
    found = [episode("desk", iteration=i, iterations=60, minimum_iterations=3) for i in range(1, 5)]
    document = {"schema_version": "1", "episodes": [e.model_dump(mode="json") for e in found]}
    (tmp_path / "results.json").write_text(json.dumps(document))
    done = agent_eval("report", "--results", "results.json", "--format", "json")
    assert done.returncode == 1
    verdict = json.loads(done.stdout)
    assert statuses(verdict) == {"desk": "incomplete"}
    (reason,) = verdict["verdict"]["reasons"]
    assert reason["message"].startswith("its 4 adaptive iterations ended before they decided")
