"""`agent-eval mutate`: each kind of change noticed by a strict test, and by a lax one not."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import get_args

import pytest

from ci_agent_eval.contract.mutations import MutationKind
from tests.processes import run_agent_eval, started_python

EXAMPLES = Path(__file__).parents[2] / "examples"

DESK = '''
"""A desk with two answers: it asks, and on "yes" it looks up and refunds."""

class Desk:
    def respond(self, message):
        if message != "yes":
            return {**SPENT, "text": "It was 39 dollars. Shall I refund it?", "tool_calls": [LOOKUP]}
        return {**SPENT, "text": "Your 39 dollars are on their way to you.", "tool_calls": [REFUND]}

LOOKUP = {"name": "lookup", "arguments": {"order": 1001}, "result": "39"}
REFUND = {"name": "refund", "arguments": {"order": 1001}, "result": "ok"}
SPENT = {"usage": {"input": 100, "output": 20}, "cost_usd": 0.01, "source": "scripted"}

class Shop:
    def respond(self, message):
        return {"text": "We open at 8.", "source": "scripted"}
'''

SUITE = """
import pytest
from desk import Desk, Shop
from ci_agent_eval import check, conversation
from ci_agent_eval.checks import ConfirmedTools, ForbiddenText

@pytest.mark.episode(budgets={"cost_usd": 0.03, "token_usage": 300, "latency_ms": 500})
@conversation("strict", Desk)
def test_strict(agent, clock):
    agent.send("Order 1001, please.")
    reply = agent.send("yes")
    check(ConfirmedTools("refund"))
    check(ForbiddenText(patterns="sk-[A-Za-z0-9]{20}"))
    calls = agent.conversation.tool_calls
    assert [(call.name, call.arguments) for call in calls] == [
        ("lookup", {"order": 1001}), ("refund", {"order": 1001}),
    ]
    assert reply == "Your 39 dollars are on their way to you."

@conversation("lax", Desk)
def test_lax(agent, clock):
    agent.send("Order 1001, please.")
    assert agent.send("yes").content

@conversation("hours", Shop)
def test_hours(agent):
    assert "8" in agent.send("When do you open?")

@pytest.mark.episode(scenario_id="own")
def test_own_agent(episode):
    with episode.turn("yes") as turn:
        turn.reply(Desk().respond("yes")["text"])
    assert episode.turns

@conversation("state", Desk)
def test_state(agent):
    agent.wrapped.answers = 0
    respond = agent.wrapped.respond
    def count(message):
        agent.wrapped.answers += 1
        return respond(message)
    agent.wrapped.respond = count
    assert agent.send("yes").content

@conversation("broken", Shop)
def test_broken(agent):
    assert "9" in agent.send("When do you open?")
"""

CONFTEST = """
import itertools
import pytest

@pytest.fixture
def episode_clock():
    steps = itertools.count()
    return lambda: next(steps) / 10

@pytest.fixture
def clock(episode_clock):
    pass
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """The suite, run and mutated: its folder, the process and the file."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "desk.py").write_text(DESK)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_desk.py").write_text(SUITE)
    assert run_agent_eval("run", ".", cwd=folder).returncode == 1  # "broken" fails
    done = run_agent_eval("mutate", ".", cwd=folder)
    return folder, done, read_report(folder)


def read_report(folder):
    return json.loads((folder / "agent-eval-report/mutations.json").read_text())


def scenarios(report):
    return {one["scenario_id"]: one for one in report["scenarios"]}


def by_kind(scenario):
    found = {}
    for result in scenario["results"]:
        found.setdefault(result["mutation"]["kind"], set()).add(result["status"])
    return found


def test_the_strict_test_notices_each_kind_of_change(shop):
    _, done, report = shop
    assert done.returncode == 0, done.stderr
    strict = by_kind(scenarios(report)["strict"])
    assert strict == {kind: {"noticed"} for kind in get_args(MutationKind)}


def test_the_lax_test_notices_none(shop):
    _, done, report = shop
    lax = by_kind(scenarios(report)["lax"])
    assert lax == {kind: {"unnoticed"} for kind in get_args(MutationKind)}
    count = len(scenarios(report)["lax"]["results"])
    assert f"lax  0 of {count} changes noticed" in done.stdout


def test_what_is_changed_and_what_noticed_it_is_said(shop):
    _, done, report = shop
    strict = scenarios(report)["strict"]
    assert "    drop_call: call 2, refund, is not made" in done.stdout
    assert "    change_argument: call 2, refund, is made with order 1001 → 1002" in done.stdout
    noticed = {r["mutation"]["kind"]: r.get("noticed_by") for r in strict["results"]}
    assert noticed["leak_secret"] == ["never says /sk-[A-Za-z0-9]{20}/"]
    assert noticed["skip_confirmation"] == ["asks before it calls refund"]
    budgets = [r.get("noticed_by") for r in strict["results"] if r["mutation"].get("budget")]
    assert ["budget cost_usd"] in budgets


def test_scenarios_without_coverage_are_listed_with_the_reason(shop):
    _, done, report = shop
    problems = {name: one.get("problem") for name, one in scenarios(report).items()}
    assert problems == {
        "broken": "recording_failed", "hours": None, "lax": None, "own": "own_agent",
        "state": None, "strict": None,
    }  # fmt: skip
    assert "Not covered: 2 scenarios" in done.stdout
    assert "  own: its test asks its agent itself" in done.stdout


def test_the_score_is_of_the_judged_changes(shop):
    _, done, report = shop
    counts = report["counts"]
    judged = counts["noticed"] + counts["unnoticed"]
    assert report["score"] == pytest.approx(counts["noticed"] / judged)
    assert f"({counts['noticed']} of {judged} changes noticed in 4 of 6 scenarios)" in done.stdout


def test_the_same_recording_gives_the_same_report_and_leaves_the_run_unchanged(shop):
    folder, _, report = shop
    before = read_files(folder / "agent-eval-report")
    again = run_agent_eval("mutate", ".", "--format", "json", cwd=folder)
    assert json.loads(again.stdout) == report
    assert read_files(folder / "agent-eval-report") == before
    assert "-of-" not in (folder / ".pytest_cache/v/cache/lastfailed").read_text()


def read_files(folder):
    others = (f for f in folder.iterdir() if f.is_file() and f.name != "mutations.json")
    return {file.name: file.read_bytes() for file in others}


def test_a_required_score_decides_the_exit_code_of_one_scenario(shop):
    folder, *_ = shop
    strict = run_agent_eval("mutate", "--scenario", "strict", "--min-score", "1", cwd=folder)
    assert (strict.returncode, list(scenarios(read_report(folder)))) == (0, ["strict"])
    lax = run_agent_eval("mutate", "--scenario", "lax", "--min-score", "0.1", cwd=folder)
    assert lax.returncode == 1
    own = run_agent_eval("mutate", "--scenario", "own", "--min-score", "0", cwd=folder)
    assert own.returncode == 1, "nothing was judged"


def test_a_wrong_scenario_and_a_missing_run_are_input_errors(shop, tmp_path):
    folder, *_ = shop
    wrong = run_agent_eval("mutate", "--scenario", "refnd", cwd=folder)
    assert (wrong.returncode, "no scenario 'refnd'" in wrong.stderr) == (2, True)
    missing = run_agent_eval("mutate", cwd=tmp_path)
    assert (missing.returncode, "run the suite first" in missing.stderr) == (2, True)


def test_a_playback_that_cannot_start_shows_pytest_s_output(shop):
    folder, *_ = shop
    done = run_agent_eval("mutate", "--", "--no-such-option", cwd=folder)
    assert done.returncode == 2
    assert "--no-such-option" in done.stderr
    assert "did not come to its end" in done.stderr


def test_a_report_of_the_folder_does_not_read_the_mutations(shop):
    folder, *_ = shop
    done = run_agent_eval("report", "--results", "agent-eval-report", cwd=folder)
    assert "mutations.json" not in done.stdout
    assert "1 of 6 scenarios fails" in done.stdout


BLOCKING = """
import os, signal
from ci_agent_eval import conversation

@conversation("blocks", lambda: lambda message: "Hi.")
def test_blocks(agent):
    assert agent.send("Hello")
    if os.path.exists("ready"):
        open("ready", "w").close()
        signal.pause()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_playback_ends_with_its_signal_and_writes_nothing(tmp_path, number, code):
    (tmp_path / "test_blocks.py").write_text(BLOCKING)
    assert run_agent_eval("run", "test_blocks.py", cwd=tmp_path).returncode == 0
    os.mkfifo(tmp_path / "ready")
    with started_python("-m", "ci_agent_eval", "mutate", "test_blocks.py", cwd=tmp_path) as process:
        (tmp_path / "ready").read_text()  # until the test has opened it
        process.send_signal(number)
        said = process.communicate(timeout=600)[0]
    assert (process.returncode, "was interrupted" in said) == (code, True)
    assert not (tmp_path / "agent-eval-report/mutations.json").exists()


@pytest.mark.parametrize(
    ("example", "scenario", "closed"),
    [
        ("banking", "transfer", {"amount", "source", "target", "repeat_call transfer"}),
        ("banking", "too_much", {"amount", "repeat_call transfer", "contradict_answer"}),
        ("support_simulation", "technician_is_booked",
         {"skip_confirmation restart_modem", "contradict_answer", "leak_secret"}),
        ("support_simulation", "outage_is_told", {"email", "street", "contradict_answer", "leak_secret"}),
    ],
)  # fmt: skip
def test_holes_that_it_found_in_the_examples_are_closed(example, scenario, closed, examples):
    report = examples(example)
    found = scenarios(report)[scenario]["results"]
    noticed, unnoticed = (
        {word for r in found if (r["status"] == status) for word in describe(r["mutation"])}
        for status in ("noticed", "unnoticed")
    )
    assert closed <= noticed
    assert not unnoticed & (closed - {"contradict_answer", "email", "street"})


def describe(mutation):
    """Return the names by which a hole is known."""
    kind, tool = mutation["kind"], mutation.get("tool")
    return {kind, f"{kind} {tool}", mutation.get("argument")}


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """Run and mutate a copy of an example, once; returns the report."""
    known = {}

    def mutate(name):
        if name not in known:
            folder = tmp_path_factory.mktemp(name)
            shutil.copytree(EXAMPLES / name, folder / name)
            assert run_agent_eval("run", name, cwd=folder).returncode == 0
            done = run_agent_eval("mutate", name, cwd=folder)
            assert done.returncode == 0, done.stderr
            known[name] = read_report(folder)
        return known[name]

    return mutate
