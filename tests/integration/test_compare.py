"""Comparison with a baseline: scenarios, suites, latency, cost and instructions."""

from __future__ import annotations

import json
import random
import re
import shutil

import pytest

from tests.builders import episode, turn
from tests.model_server import ModelServer
from tests.processes import run_agent_eval

# Runs held against a baseline, end to end: two real runs of a small suite, real processes.


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


# Changes of latency and cost, over the suite and in single scenarios, through the CLI.


def run_suite(seed, *, slower=1.0, dear=(), turns=3):
    """Return 40 scenarios of 1 to `turns` turns; those in `dear` cost five times as much."""
    draw = random.Random(seed)
    usual = [random.Random(f"scenario {n}").lognormvariate(6, 0.5) for n in range(40)]
    return [
        episode(
            f"s{number:03}",
            iteration=iteration,
            trajectory={
                "turns": [
                    turn(
                        latency_ms=slower * latency * draw.lognormvariate(0, 0.8),
                        cost_usd=(0.05 if number in dear else 0.01) * draw.lognormvariate(0, 0.3),
                    )
                    for _ in range(draw.randint(1, turns))
                ]
            },
        )
        for number, latency in enumerate(usual)
        for iteration in range(1, 6)
    ]


def list_reasons(verdict, part="reasons"):
    return [
        (reason["kind"], reason["scenario_id"], reason["message"])
        for reason in verdict["verdict"][part]
    ]


def test_half_as_slow_again_is_red_with_eight_runs_of_the_base(compared):
    code, verdict, _ = compared(
        run_suite("head", slower=1.5),
        *(run_suite(n) for n in range(8)),
        options=("--max-latency-increase", "0.1"),
    )
    ((kind, scenario, message),) = list_reasons(verdict)
    assert (code, kind, scenario) == (1, "increase", None)
    assert re.fullmatch(r"p95 turn latency rose by \d+ % \(10 % allowed\)", message)


def test_an_unchanged_suite_stays_quiet_under_every_limit(compared):
    limits = ("cost", "latency", "typical-latency", "scenario-cost", "scenario-latency")
    options = [part for name in limits for part in (f"--max-{name}-increase", "0")]
    code, verdict, _ = compared(run_suite(0), *(run_suite(n) for n in (1, 2)), options=options)
    assert (code, list_reasons(verdict)) == (0, [])


def test_a_scenario_that_costs_five_times_as_much_is_named(compared):
    """Of 40 scenarios: a folded +10 % of the suite."""
    head = run_suite("head", dear=[7])
    code, verdict, text = compared(head, run_suite(1))
    assert code == 0
    ((kind, scenario, message),) = list_reasons(verdict, "warnings")
    assert (kind, scenario) == ("scenario_increase", "s007")
    assert re.match(r"cost ×[3-7]\.\d", message)
    assert re.search(r"- `s007`: cost ×[3-7]\.\d", text)
    assert re.search(r"\*\*Worse:\*\* .*`s007` \(?×[3-7]\.\d", text)


# A changed prompt is one cause in the comment: against a baseline, and in replay.


SUITE_CHANGED_INSTRUCTIONS = """
import openai, pytest

TOLD = {told!r}

async def teller(message):
    async with openai.AsyncOpenAI(base_url={url!r}, api_key="none", max_retries=0) as client:
        answer = await client.chat.completions.create(
            model="gpt-5-mini",
            messages=[{{"role": "system", "content": TOLD}}, {{"role": "user", "content": message}}],
        )
    return answer.choices[0].message.content

@pytest.mark.parametrize("account", [f"account {{n}}" for n in range(1, 13)])
async def test_balance(aitest_run, account):
    result = await aitest_run(teller, f"How much is in {{account}}?")
    assert "$12" in result.final_response, f"no amount of {{account}}"
"""
EXACT, FRIENDLY = "Be a teller. State the exact amount.", "Be a teller. Be friendly."


def run(folder, told, answer, *arguments):
    with ModelServer({"*": [answer]}) as server:
        (folder / "test_bank.py").write_text(
            SUITE_CHANGED_INSTRUCTIONS.format(told=told, url=server.base_url)
        )
        done = run_agent_eval("run", "test_bank.py", *arguments, cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    return done, (folder / "agent-eval-report/comment.md").read_text(), len(server.requests)


def list_cards(comment):
    return [
        line
        for line in comment.splitlines()
        if "<summary>❌" in line or line.startswith(("❌ ", "⚠️ "))
    ]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder with cassettes, and with the report of the run that recorded them in `base`."""
    folder = tmp_path_factory.mktemp("bank")
    done, _, asked = run(folder, EXACT, "It is $12.", "--", "--cassette=record")
    assert (done.returncode, asked) == (0, 12), done.stdout + done.stderr
    shutil.move(folder / "agent-eval-report", folder / "base")
    return folder


def test_failures_after_a_changed_prompt_are_one_card_with_its_diff(recorded):
    _, comment, asked = run(recorded, FRIENDLY, "Plenty!", "--baseline", "base")
    assert asked == 12
    (card,) = list_cards(comment)
    assert "instructions of <code>teller</code> changed · <b>12 scenarios</b> · 12 failing" in card
    assert "- State the exact amount.\n+ Be friendly." in comment
    assert ", all for one reason" in comment


@pytest.mark.parametrize("arguments", [(), ("--baseline", "base")])
def test_recordings_of_another_prompt_are_one_card_without_a_path(recorded, arguments):
    _, comment, asked = run(recorded, FRIENDLY, "Plenty!", *arguments, "--", "--cassette=replay")
    assert asked == 0
    (card,) = list_cards(comment)
    assert "instructions of <code>teller</code> changed · <b>12 scenarios</b>" in card
    assert "- State the exact amount.\n+ Be friendly." in comment
    assert str(recorded) not in comment + (recorded / "agent-eval-report/results.json").read_text()


def test_an_unchanged_prompt_is_no_card(recorded):
    done, comment, _ = run(recorded, EXACT, "It is $12.", "--baseline", "base")
    assert done.returncode == 0, done.stdout
    assert not list_cards(comment)
    assert "instructions" not in comment


def test_a_changed_prompt_without_a_failure_informs(recorded):
    done, comment, _ = run(recorded, FRIENDLY, "It is $12.", "--baseline", "base")
    assert done.returncode == 0, done.stdout
    assert not list_cards(comment)
    assert "<details><summary>🔵 instructions of <code>teller</code> changed" in comment
    assert "instructions of `teller` changed in 12 scenarios" in comment
