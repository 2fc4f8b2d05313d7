"""Judging stored transcripts again: the function and the command."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.app.judging.job import JudgeJob, judge_results
from ci_agent_eval.contract.results import Session, Shard
from ci_agent_eval.errors import InputError, build_install_command
from ci_agent_eval.render.terminal.report import render_judges
from tests.builders import failing, talk, turn
from tests.judged_results import HEAD, said, store
from tests.model_server import ModelServer
from tests.processes import run_agent_eval
from tests.scripted_judges import grade

# `agent-eval judge`: stored transcripts are judged again, by changed checks, without an agent.


NO_VERDICT = "1 transcript without a verdict, and 0 episodes that ended in an error"
KIND = 'CHECKS = [Rubric("It is exact.", JUDGE, name="exact")]'


@pytest.fixture
def judged(tmp_path):
    """Judge episodes by a file; returns the report, and the judged episodes by scenario."""

    def run(source, *episodes, **options):
        store(tmp_path / "stored", *episodes)
        # Another file for each run: Python takes the cached bytecode of one that is as long as
        # before and changed within the same second.
        checks = tmp_path / f"judges_{len(list(tmp_path.glob('judges_*.py')))}.py"
        checks.write_text(HEAD + source)
        given = {"results": ("stored",), "output": tmp_path / "judged", **options}
        given.setdefault("cassettes", tmp_path / "cassettes")
        given.setdefault("environ", {})
        report = judge_results(JudgeJob(root=tmp_path, checks=checks, **given))
        results = json.loads((tmp_path / "judged/results.json").read_text())
        return report, {one["scenario_id"]: one for one in results["episodes"]}

    return run


def text_of(report):
    return render_judges(report.checks, report.reasons, report.errors, report.transcripts)


def test_a_changed_threshold_changes_the_outcome_without_an_agent(judged):
    old = {"name": "exact", "passed": False, "score": 0.4, "reason": "vague"}
    failed = said("a", "Soon.", outcome="failed", reason="failed: exact", assertions=[old])
    strict = 'CHECKS = [Rubric("It is exact.", JUDGE, name="exact", threshold=0.5)]'
    _, found = judged(strict, failed)
    assert (found["a"]["outcome"], found["a"]["assertions"][0]["passed"]) == ("failed", False)
    report, found = judged(strict.replace("0.5", "0.3"), failed)
    assert found["a"]["outcome"] == "passed"
    assert "reason" not in found["a"]
    assert found["a"]["trajectory"]["turns"][1]["content"] == "Soon."
    assert report.reasons == ()


def test_a_changed_budget_is_measured_from_the_stored_turns(judged):
    _, found = judged('BUDGETS = {"a": {"max_turns": 0}}', said("a", "x"), said("b", "x"))
    assert found["a"]["budgets"]["max_turns"] == {"limit": 0, "used": 1}
    assert "budgets" not in found["b"]


def test_other_stored_assertions_stay(judged):
    failed = failing("a", trajectory=talk("When?", turn("Monday.")).trajectory)
    _, found = judged(KIND, failed)
    assert [a["name"] for a in found["a"]["assertions"]] == ["says sorry", "exact"]
    assert found["a"]["outcome"] == "failed"


def test_an_episode_that_failed_otherwise_stays_failed(judged):
    _, found = judged(KIND, said("a", "Monday.", outcome="failed", reason="Timeout"))
    assert (found["a"]["outcome"], found["a"]["reason"]) == ("failed", "Timeout")


def test_a_panel_s_votes_are_recorded_and_summed_up(judged):
    panel = """
CHECKS = [
    Rubric("It is exact.", [JUDGE, build_judge(lambda _: grade())], votes_needed=1, name="exact"),
    RequiredText("o"),
]
"""
    report, found = judged(panel, said("a", "Monday."), said("b", "Soon."))
    exact, text = report.checks
    assert (exact.name, exact.is_judged, exact.transcripts, exact.scenarios) == (
        "exact",
        True,
        2,
        2,
    )
    assert (exact.passed, exact.score) == (2, pytest.approx((0.9 + 0.7) / 2))
    assert (text.is_judged, text.passed) == (False, 2)
    stored = found["b"]["assertions"][-2]
    assert (stored["name"], stored["passed"], stored["score"]) == ("exact", True, 0.7)
    assert [vote["passed"] for vote in stored["votes"]] == [False, True]
    assert found["a"]["judge"]["calls"] == 2
    assert "exact (2 transcripts of 2 scenarios)\n  passed  2 of 2; score 0.80" in text_of(report)


def test_a_judge_without_a_verdict_is_an_error_and_no_score(judged):
    source = """
def moody(sections):
    return {"reason": "?"} if "b" in sections["Output"] else grade()

CHECKS = [Rubric("It is exact.", build_judge(moody), name="exact")]
"""
    report, found = judged(source, said("a", "a"), said("b", "b"))
    (check,) = report.checks
    assert (check.transcripts, check.score) == (1, 1)
    assert found["b"]["outcome"] == "error"
    assert found["b"]["reason"].startswith("JudgeError: the judge gave no verdict")
    assert "assertions" not in found["b"]
    assert report.reasons == (NO_VERDICT,)
    assert "1 transcript without a verdict" in text_of(report)


def test_a_secret_in_a_judge_s_error_is_neither_printed_nor_written(judged, tmp_path):
    secret = "zq81-of-nobody-0123456789"
    source = f"""
def leaking(sections):
    raise RuntimeError("no access with {secret}")

CHECKS = [Rubric("It is exact.", build_judge(leaking))]
"""
    report, _ = judged(source, said("a", "Monday."), environ={"JUDGE_API_KEY": secret})
    written = [file.read_text() for file in (tmp_path / "judged").glob("*.*")]
    assert "no access with" in text_of(report)
    assert all(secret not in text for text in [text_of(report), *written])


def test_recorded_judges_need_no_model(judged):
    source = """
from ci_agent_eval.engine import Provider

JUDGE = Provider("openai:gpt-5-mini", base_url="THE-URL")
CHECKS = [Rubric("It is exact.", JUDGE, repeats=2, votes_needed=1, name="exact")]
"""
    verdicts = [grade(True, 0.9), grade(False, 0.2)]
    steps = [{"tool_calls": [{"name": "final_result", "arguments": one}]} for one in verdicts]
    with ModelServer(steps) as server:
        source = source.replace("THE-URL", server.base_url)
        live, found = judged(source, said("a", "Monday."), cassette_mode="record")
        assert len(server.requests) == 2
    again, replayed = judged(source, said("a", "Monday."), cassette_mode="replay")
    assert live.errors == ()
    assert again.checks == live.checks
    assert replayed["a"]["assertions"] == found["a"]["assertions"]


def test_the_output_does_not_depend_on_the_order_of_answers(judged, tmp_path):
    suite = [said(f"s{n}", f"{'Monday' if n % 3 else 'Soon'} {n}") for n in range(9)]
    written = []
    for concurrency in (1, 9):
        judged(KIND, *suite, concurrency=concurrency)
        files = sorted((tmp_path / "judged").glob("*.*"))
        written.append([file.read_bytes() for file in files if file.suffix in (".json", ".csv")])
    assert len(written[0]) == 2
    assert written[0] == written[1]


def test_judges_of_pydantic_evals_judge_stored_episodes_too(judged):
    source = """
from pydantic_evals.evaluators import LLMJudge
CHECKS = [LLMJudge("It is exact.", model=build_judge(lambda _: grade(False)))]
"""
    _, found = judged(source, said("a", "Monday."))
    assert found["a"]["outcome"] == "failed"


LABELS = "scenario_id,iteration,assertion,label,transcript\n"
SUITE = [said(f"s{n}", f"{'Monday' if n < 6 else 'Soon'} {n}") for n in range(9)]


def labelled(judged, tmp_path, lines):
    (tmp_path / "labels.csv").write_text(LABELS + "".join(f"{line}\n" for line in lines))
    return judged(KIND, *SUITE, labels=tmp_path / "labels.csv")[0]


def test_labels_are_compared_with_the_verdicts(judged, tmp_path):
    lines = [f"s{n},,,{'pass' if n < 5 else 'fail'}," for n in range(9)]
    report = labelled(judged, tmp_path, lines)
    found = report.checks[0].agreement
    assert (found.agreed, found.labels) == (8, 9)
    assert (found.judged_pass, found.pass_labels) == (5, 5)
    assert (found.judged_fail, found.fail_labels) == (3, 4)
    assert report.reasons == ()


def test_the_template_is_labelled_without_seeing_verdicts(judged, tmp_path):
    judged(KIND, *SUITE)
    header, *rows = (tmp_path / "judged/label-template.csv").read_text().splitlines()
    assert header + "\n" == LABELS
    assert rows[0].startswith("s0,1,exact,,")
    lines = [row.replace("exact,,", "exact,pass,") for row in rows[:4]] + rows[4:]
    report = labelled(judged, tmp_path, lines)
    assert report.checks[0].agreement.labels == 4


def test_labels_in_the_template_are_not_overwritten(judged, tmp_path):
    judged(KIND, *SUITE)
    template = tmp_path / "judged/label-template.csv"
    template.write_text(template.read_text().replace("exact,,", "exact,pass,"))
    with pytest.raises(InputError, match="has labels, which would be overwritten"):
        judged(KIND, *SUITE)


def test_a_label_of_an_assertion_that_was_not_made_is_refused(judged, tmp_path):
    (tmp_path / "labels.csv").write_text(LABELS + "s1,,exact,pass,\n")
    source = 'CHECKS = {"s0": Rubric("It is exact.", JUDGE, name="exact")}'
    with pytest.raises(InputError, match="'exact' does not apply to its scenario"):
        judged(source, *SUITE, labels=tmp_path / "labels.csv")


def test_results_without_a_transcript_prove_nothing(judged):
    with pytest.raises(InputError, match="no stored episode passed or failed"):
        judged(KIND, said("a", "x", outcome="error", reason="down"))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("s0,,,pass,0123456789ab", r"labels\.csv:2: is about another transcript of 's0'"),
        ("gone,,,pass,", "matches no judged transcript of scenario 'gone'"),
        ("s0,7,,pass,", "matches no judged transcript"),
        ("s0,,other,pass,", "needs the name of a judged assertion, one of: 'exact'"),
        ("s0,,,maybe,", "label 'maybe' is neither pass nor fail"),
        ("s0,x,,pass,", "iteration 'x' is not a whole number"),
        (",,,pass,", "names no scenario_id"),
        ("s0,,,,", "has no label"),
        ("s0,pass", "another number of cells"),
        ("s0,,,pass,\ns0,1,exact,fail,", r"labels\.csv:3: labels a transcript that is labelled"),
    ],
)
def test_a_label_that_fits_nothing_is_refused(judged, tmp_path, line, problem):
    with pytest.raises(InputError, match=problem):
        labelled(judged, tmp_path, [line])


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("", "has neither CHECKS nor BUDGETS"),
        ("CHECKS = ['kind']", "'kind' is not a check"),
        ('CHECKS = {"x*": Rubric("a", JUDGE)}', r"'x\*' matches no scenario of the results"),
        ('CHECKS = {"x*": []}', r"'x\*' matches no scenario of the results"),
        ('BUDGETS = {"x*": {"max_turns": 1}}', r"'x\*' matches no scenario of the results"),
        ('CHECKS = {"*": []}', r"CHECKS\['\*'\] is empty; add a check"),
        ('BUDGETS = {"*": {"max_turns": -1}}', r"BUDGETS\['\*'\]"),
        ("1 / 0", "cannot be run: ZeroDivisionError"),
        ('CHECKS = [Rubric("", JUDGE)]', r"judges_0\.py: Rubric\.rubric: must be a text"),
        ('CHECKS = [Rubric("a", 3)]', "scenario 'a': judge: the model must be a name"),
    ],
)
def test_a_file_of_checks_that_means_nothing_is_refused(judged, source, problem):
    with pytest.raises(InputError, match=problem):
        judged(source, said("a", "Monday."))


def test_incomplete_results_fail(judged, tmp_path):
    stored = store(tmp_path / "cut", said("a", "Monday.")) / "results.json"
    stored.write_text(stored.read_text().removesuffix("]}\n"))
    report, _ = judged(KIND, said("b", "x"), results=("cut",))
    assert "it is cut off before its list of episodes ends" in text_of(report)
    assert report.reasons


# The command `agent-eval judge`: its results for the report, its exit code, refused inputs.


SUITE_JUDGE_COMMAND = (said("a", "Monday."), said("b", "Soon."))
EXACT = 'CHECKS = [Rubric("It is exact.", JUDGE, name="exact")]'


@pytest.fixture
def judge(tmp_path):
    """Run the command on stored episodes, judged by a file; returns the ended process."""

    def run(source, *options, episodes=SUITE_JUDGE_COMMAND):
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
    done = judge(EXACT, "--labels", "labels.csv", episodes=(SUITE_JUDGE_COMMAND[0], broken))
    assert done.returncode == 1
    assert "Failed:\n  0 transcripts without a verdict, and 1 episode that ended" in done.stdout
    assert "no kappa, as all labels are the same" in done.stdout


def test_without_its_packages_it_names_the_extra(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['pydantic_ai'] = None\n")
    store(tmp_path / "agent-eval-report", *SUITE_JUDGE_COMMAND)
    done = run_agent_eval("judge", "judges.py", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == (
        "agent-eval: agent-eval judge needs the package pydantic_ai, which is not installed; run: "
        f"{build_install_command('evals')}\n"
    )


def test_a_shard_without_the_others_fails(judge, tmp_path):
    folder = tmp_path / "agent-eval-report"
    store(folder, *SUITE_JUDGE_COMMAND)
    session = Session(
        suite="default", state="finished", exit_status=0, shard=Shard(index=1, count=2)
    )
    (folder / "session.json").write_text(session.model_dump_json())
    done = judge('CHECKS = [RequiredText("o")]')
    assert done.returncode == 1
    assert "the results are not whole: shard 2 of 2" in done.stdout
