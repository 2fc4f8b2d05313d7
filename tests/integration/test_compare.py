"""Runs held against a baseline, end to end: two real runs of a small suite, real processes."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.processes import run_agent_eval

SUITE = """
import pytest

PASSES = {passes!r}


@pytest.mark.parametrize("number", range(20))
@pytest.mark.episode(scenario_id="refund", min_pass_rate=0.5)
def test_refund(episode, number):
    with episode.turn("I want my money back") as turn:
        turn.tool_call("lookup_order", {{"order_id": number}})
        if number < PASSES:
            turn.tool_call("ask_manager", {{}})
        turn.reply("On its way", latency_ms=100)
    episode.check("asks a manager", number < PASSES)


@pytest.mark.episode(scenario_id={name!r}, was="greeting")
def test_greeting(episode):
    with episode.turn("hello") as turn:
        turn.reply("Hi", latency_ms=100)
    assert episode.turns
"""


def suite(folder, passes, name="greeting"):
    (folder / "test_desk.py").write_text(SUITE.format(passes=passes, name=name))


def verdict(folder, name="agent-eval-report"):
    return json.loads((folder / name / "verdict.json").read_text())


def run_once(folder, passes, *arguments, **names):
    """Run the suite in a new folder; return the process and the report's folder."""
    suite(folder, passes, **names)
    done = run_agent_eval("run", "test_desk.py", *arguments, cwd=folder)
    return done, folder / "agent-eval-report"


@pytest.fixture(scope="module")
def passing_run(tmp_path_factory):
    done, report = run_once(tmp_path_factory.mktemp("base"), 20)
    assert done.returncode == 0, done.stdout + done.stderr
    return report


@pytest.fixture(scope="module")
def regressed_run(tmp_path_factory):
    """A run that passes 12 of 20 times, with a scenario renamed."""
    return run_once(tmp_path_factory.mktemp("regressed"), 12, name="welcome")


@pytest.fixture(scope="module")
def desk_run(tmp_path_factory):
    """A run of the suite named desk."""
    done, report = run_once(tmp_path_factory.mktemp("desk"), 20, "--suite", "desk")
    assert done.returncode == 0, done.stderr
    return report


@pytest.fixture
def base(passing_run, tmp_path):
    """A run of the base, in the folder `base`, and its suite."""
    suite(tmp_path, 20)
    return shutil.copytree(passing_run, tmp_path / "base")


def test_a_regression_is_found_on_a_laptop(agent_eval, base, regressed_run):
    plain, head = regressed_run
    # 12 of 20 are more than its rate asks for; only the baseline tells.
    assert "Agent evals passed: 2 of 2 scenarios" in plain.stdout
    done = agent_eval("compare", "base", head, "--format", "json")
    assert done.returncode == 1, done.stderr
    compared = {s["scenario_id"]: s for s in json.loads(done.stdout)["comparison"]["scenarios"]}
    assert compared["refund"]["call"] == "regression"
    assert compared["refund"]["divergence"]["before"] == ["lookup_order", "ask_manager"]
    assert compared["welcome"]["renamed_from"] == "greeting"
    assert not any(s["change"] == "vanished" for s in compared.values())


@pytest.mark.parametrize("format_", ["text", "markdown"])
def test_the_formats_of_compare(agent_eval, base, format_):
    done = agent_eval("compare", "base", "base", "--format", format_)
    assert done.returncode == 0, done.stderr
    assert "Agent evals passed: 2 of 2 scenarios" in done.stdout
    assert "compared with 1 run of" in done.stdout.replace("\n", " ")


def test_run_reads_the_baseline_of_the_settings(agent_eval, base, tmp_path):
    (tmp_path / "agent-eval.toml").write_text('[compare]\nbaseline = "base"\n')
    suite(tmp_path, 8)
    assert agent_eval("run", "test_desk.py").returncode == 1
    assert "regression" in {r["kind"] for r in verdict(tmp_path)["verdict"]["reasons"]}
    page = (tmp_path / "agent-eval-report/report.html").read_text()
    comment = (tmp_path / "agent-eval-report/comment.md").read_text()
    assert "Against the baseline" in page
    assert "\n- lookup_order → ask_manager" in comment
    assert "\n+ lookup_order\n" in comment


def test_a_baseline_of_another_suite_is_refused(agent_eval, base, desk_run, tmp_path):
    shutil.copytree(desk_run, tmp_path / "desk")
    made = agent_eval("report", "--results", "base", "--suite", "shop", "--report-dir", "shop")
    assert made.returncode == 0, made.stderr
    assert json.loads((tmp_path / "shop/results.json").read_text())["suite"] == "shop"
    sentence = "its results are of suite 'desk', this is suite 'shop'"
    shop = ("report", "--results", "shop", "--suite", "shop")
    done = agent_eval(*shop, "--baseline", "desk")
    assert (done.returncode, sentence in " ".join(done.stdout.split())) == (1, True)
    by_hand = agent_eval("compare", "desk", "shop")
    assert (by_hand.returncode, sentence in by_hand.stderr) == (2, True)
    for same in (("compare", "shop", "shop"), ("compare", "base", "shop")):
        assert agent_eval(*same).returncode == 0


def test_no_baseline_is_said_and_passes_and_a_broken_one_fails_closed(agent_eval, base, tmp_path):
    done = agent_eval("report", "--results", "base", "--baseline", "nowhere")
    assert done.returncode == 0, done.stderr
    assert "Not compared: no file or folder is at nowhere" in done.stdout
    (tmp_path / "broken.json").write_text('{"schema_version": "1", "episodes": [')
    done = agent_eval("report", "--results", "base", "--baseline", "broken.json")
    assert done.returncode == 1
    assert "the baseline cannot be read" in done.stdout


def test_a_whole_run_is_saved_as_the_baseline_in_one_step(tmp_path):
    done, _ = run_once(tmp_path, 20, "--save-baseline")
    assert done.returncode == 0, done.stderr
    assert (
        "Baseline: evals/results.json. Commit it, and compare with --baseline git:" in done.stdout
    )
    done, report = run_once(tmp_path, 0, "--baseline", "evals/results.json")
    assert done.returncode == 1
    assert "compared with 1 run of `evals/results.json`" in (report / "comment.md").read_text()
    saved = (tmp_path / "evals/results.json").read_bytes()

    done, _ = run_once(tmp_path, 20, "--save-baseline", "--", "-k", "greeting")
    assert "No baseline is saved: only a part of the suite was judged." in done.stdout
    assert (tmp_path / "evals/results.json").read_bytes() == saved
