"""A kind of budget that is added to the table, and to nothing else, is judged and shown everywhere."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.contract.budget_kinds import BUDGET_KINDS, SUITE_BUDGET_KINDS
from ci_agent_eval.contract.budgets import Budgets, SuiteBudgets
from ci_agent_eval.engine.limits import RunLimits
from tests.processes import run_agent_eval

NEW_ROWS = """
from ci_agent_eval.contract import budget_kinds as table

table.BUDGET_KINDS += (
    table.BudgetKind(
        name="reply_size",
        label="size of replies",
        description="characters of all replies",
        measure=lambda trajectory: sum(len(turn.content) for turn in trajectory.agent_turns),
        measure_summary=lambda summary: 10.0 * summary.steps_count,
    ),
    table.BudgetKind(
        name="reply_ms",
        label="time for replies",
        description="a statistic of made-up times",
        samples=lambda trajectory: [len(turn.content) for turn in trajectory.agent_turns],
        format="milliseconds",
    ),
)
table.SUITE_BUDGET_KINDS += (
    table.SuiteBudgetKind(
        name="total_turns",
        label="total turns",
        description="turns of all episodes",
        total="turns",
    ),
)
"""
SUITE = """
import pytest

@pytest.mark.episode(scenario_id="tells", budgets={"reply_size": 9, "reply_ms": {"max": None, "limit": 3000}})
def test_tells(episode):
    with episode.turn("tell me") as turn:
        turn.reply("x" * 1234)
    assert episode.snapshot()

@pytest.mark.episode(scenario_id="says", gate="advisory")
def test_says(episode):
    episode.budget("reply_ms", 2, statistic="mean", hard=False)
    with episode.turn("say it") as turn:
        turn.reply("y" * 7)
    assert episode.snapshot()

@pytest.mark.episode(scenario_id="short", budgets={"reply_size": 99})
def test_short(episode):
    with episode.turn("short") as turn:
        turn.reply("ok")
    assert episode.snapshot()
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("new-kind")
    (folder / "table").mkdir()
    # Every process of the run has it, as if it were in the package.
    (folder / "table/sitecustomize.py").write_text(NEW_ROWS)
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "agent-eval.toml").write_text("[budgets]\ntotal_turns = 2\n")
    return folder


@pytest.fixture(scope="module")
def ran(project):
    return agent_eval(project, "run", "--formats", "ctrf", "test_suite.py")


def agent_eval(project, *arguments):
    return run_agent_eval(*arguments, cwd=project, PYTHONPATH=str(project / "table"))


def read(project, name):
    return json.loads((project / "agent-eval-report" / name).read_text())


def test_it_fails_the_gate_in_the_terminal(ran):
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "tells size of replies 1,234 (limit 9)" in ran.stdout
    assert "time for replies, mean 7 ms (soft limit 2 ms)" in ran.stdout
    assert "whole suite, total turns 3 (limit 2)" in ran.stdout
    assert "1 of 2 scenarios over budget, over the suite's budget" in ran.stdout


def test_it_is_in_the_verdict(project, ran):
    verdict = read(project, "verdict.json")
    reasons = {(r["kind"], r["scenario_id"], r["message"]) for r in verdict["verdict"]["reasons"]}
    assert reasons == {
        ("budget", "tells", "reply_size: 1234 over limit 9"),
        ("suite_budget", None, "total_turns: 3 over limit 2"),
    }
    assert [(w["kind"], w["message"]) for w in verdict["verdict"]["warnings"]] == [
        ("budget", "reply_ms mean: 7 over limit 2")
    ]


def test_every_row_is_a_field_and_every_field_a_row():
    assert [*Budgets.model_fields] == [*(kind.name for kind in BUDGET_KINDS), "custom"]
    assert [*SuiteBudgets.model_fields] == [kind.name for kind in SUITE_BUDGET_KINDS]


@pytest.mark.parametrize("kind", BUDGET_KINDS, ids=lambda kind: kind.name)
def test_a_run_is_stopped_at_what_has_a_stop_reason(kind):
    limits = RunLimits.from_budgets(Budgets.model_validate({kind.name: 3}))
    assert (limits != RunLimits()) is (kind.stop_reason is not None)
