"""The command `agent-eval judge`: its results for the report, its exit code, refused inputs."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.results import Session, Shard
from ci_agent_eval.errors import build_install_command
from tests.judged_results import HEAD, said, store
from tests.processes import run_agent_eval

SUITE = (said("a", "Monday."), said("b", "Soon."))
EXACT = 'CHECKS = [Rubric("It is exact.", JUDGE, name="exact")]'


@pytest.fixture
def judge(tmp_path):
    """Run the command on stored episodes, judged by a file; returns the ended process."""

    def run(source, *options, episodes=SUITE):
        store(tmp_path / "agent-eval-report", *episodes)
        (tmp_path / "judges.py").write_text(HEAD + source)
        return run_agent_eval("judge", "judges.py", *options, cwd=tmp_path)

    return run


@pytest.fixture
def report(tmp_path):
    """Run `agent-eval report` on the judged results; returns the ended process."""

    def run():
        options = ("--results", "agent-eval-judged", "--report-dir", "judged-report")
        return run_agent_eval("report", *options, cwd=tmp_path)

    return run


def test_the_report_gates_judged_results_by_checks_and_budgets(judge, report):
    done = judge('CHECKS = [RequiredText("NEVER"), RequiredText("o", name="has o")]')
    assert done.returncode == 0
    assert "has o (2 transcripts of 2 scenarios, without a model)\n  passed  2 of 2" in done.stdout
    assert report().returncode == 1
    judge('CHECKS = [RequiredText("o")]\nBUDGETS = {"a": {"max_turns": 0}}')
    assert report().returncode == 1
    judge('CHECKS = [RequiredText("o")]')
    assert report().returncode == 0


def test_labels_test_the_judge(judge, tmp_path):
    (tmp_path / "labels.csv").write_text("scenario_id,label\na,pass\nb,fail\n")
    tested = judge(EXACT, "--labels", "labels.csv")
    assert tested.returncode == 0
    assert "agreement 100.0 % of 2 (95 %: 34.2 % to 100.0 %); kappa 1.00" in tested.stdout


def test_a_missing_verdict_fails(judge, tmp_path):
    (tmp_path / "labels.csv").write_text("scenario_id,label\na,pass\n")
    broken = said("b", "Monday.", outcome="error", reason="rate limit")
    done = judge(EXACT, "--labels", "labels.csv", episodes=(SUITE[0], broken))
    assert done.returncode == 1
    assert "Failed:\n  0 transcripts without a verdict, and 1 episode that ended" in done.stdout
    assert "no kappa, as all labels are the same" in done.stdout


def test_without_its_packages_it_names_the_extra(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['pydantic_ai'] = None\n")
    store(tmp_path / "agent-eval-report", *SUITE)
    done = run_agent_eval("judge", "judges.py", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == (
        "agent-eval: agent-eval judge needs the package pydantic_ai, which is not installed; run: "
        f"{build_install_command('evals')}\n"
    )


def test_a_shard_without_the_others_fails(judge, tmp_path):
    folder = tmp_path / "agent-eval-report"
    store(folder, *SUITE)
    session = Session(
        suite="default", state="finished", exit_status=0, shard=Shard(index=1, count=2)
    )
    (folder / "session.json").write_text(session.model_dump_json())
    done = judge('CHECKS = [RequiredText("o")]')
    assert done.returncode == 1
    assert "the results are not whole: shard 2 of 2" in done.stdout
