"""Runs that end early: stopped, interrupted, killed or unfinished."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.contract.results import Results
from tests.integration.refund_desk import verdict
from tests.model_server import ModelServer
from tests.model_server.script import Step, call
from tests.processes import run_agent_eval, run_python, started_python, wait_for

# From a suite's end to its report: what a run that ended in its own way is said to be.


@pytest.fixture
def report_of(tmp_path):
    """Run a suite of one file and return the exit status, what was printed, and the verdict."""

    def run(tests: str, *pytest_args: str) -> tuple[int, str, dict[str, Any]]:
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        (tmp_path / "test_suite.py").write_text(tests)
        done = run_agent_eval("run", "test_suite.py", "--", *pytest_args, cwd=tmp_path)
        written = (tmp_path / "agent-eval-report/verdict.json").read_text()
        return done.returncode, done.stdout, json.loads(written)

    return run


def kinds(verdict: dict[str, Any]) -> list[str]:
    return [finding["kind"] for finding in verdict["summary"]["findings"]]


def test_an_interruption_is_said_once_and_is_no_disagreement(report_of):
    status, out, verdict = report_of(
        f"""
import os

def test_one(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    assert episode.turns

def test_two(episode): os.kill(os.getpid(), {int(signal.SIGINT)})

def test_three(episode): pass
"""
    )
    assert (status, kinds(verdict)) == (1, ["interrupted"]), out
    assert "1 of 3 selected episodes finished" in verdict["summary"]["findings"][0]["message"]
    shown = " ".join(out.split())
    assert shown.count("interrupted: KeyboardInterrupt") == 1
    assert "1 test ran" not in out


def test_a_stop_at_the_first_failure_is_named_as_such(report_of):
    tests = "import pytest\npytestmark = pytest.mark.episode(evidence='none')\n"
    tests += "def test_0(episode): assert 0\n"
    tests += "".join(f"def test_{n}(episode): pass\n" for n in range(1, 20))
    status, out, verdict = report_of(tests, "-x", "-n2")
    assert (status, kinds(verdict)) == (1, ["interrupted"]), out
    message = verdict["summary"]["findings"][0]["message"]
    assert message.startswith("pytest stopped early at a limit of its own, as with -x")
    assert "run the suite again" not in message


ENDS_ITS_RUNNER = """
import os, pytest, signal

@pytest.mark.episode(evidence="none")
def test_one(episode): pass

class Plugin:
    def pytest_unconfigure(self):
        os.kill(os.getppid(), signal.SIGKILL)

import pytest

@pytest.fixture(autouse=True, scope="session")
def registered(pytestconfig):
    pytestconfig.pluginmanager.register(Plugin())
"""
DIES_AT_ITS_END = ENDS_ITS_RUNNER.replace("os.getppid()", "os.getpid()")


def test_a_runner_that_saw_no_end_of_its_suite_proves_nothing(tmp_path):
    """A job is cancelled, or runs out of memory, once the tests have passed."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_suite.py").write_text(ENDS_ITS_RUNNER)
    killed = run_agent_eval("run", "test_suite.py", cwd=tmp_path)
    assert killed.returncode == -signal.SIGKILL
    done = run_agent_eval("report", "--results", "agent-eval-report", cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    assert "how pytest's process ended is not known" in " ".join(done.stdout.split())


def test_a_suite_that_is_killed_at_its_end_fails_wherever_it_is_read(report_of, tmp_path):
    status, out, verdict = report_of(DIES_AT_ITS_END)
    assert (status, kinds(verdict)) == (1, ["disagreement"]), out
    done = run_agent_eval("report", "--results", "agent-eval-report", cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    said = "pytest ended with status 137, but its session says 0"
    assert said in " ".join(out.split())
    assert said in " ".join(done.stdout.split())


def test_subtests_leave_a_passing_suite_green(report_of):
    status, out, verdict = report_of(
        """
def test_episode(episode, subtests):
    for number in range(3):
        with subtests.test(number=number):
            assert number < 3
    with episode.turn("Hello") as turn:
        turn.reply("Hi")

def test_plain(subtests):
    with subtests.test(): pass
    with subtests.test(): pass
""",
        "-n2",
    )
    assert (status, kinds(verdict)) == (0, []), out


# Runs that are killed, interrupted, doubled or stopped early: the report says so and fails.


SLOW_SUITE = """
import os, signal, pytest

@pytest.mark.episode(scenario_id="first")
def test_first(episode):
    with episode.turn("hello") as turn:
        turn.reply("hello", source="scripted")
    assert episode.turns

@pytest.mark.episode(scenario_id="second")
def test_second(episode):
    os.kill({target}, signal.SIGKILL)
    signal.pause()

@pytest.mark.episode(scenario_id="third")
def test_third(episode):
    pass
"""


def ended_by(number: signal.Signals, code: int, suite: str, *, folder: Path) -> None:
    """Run a suite until it says that it is ready, and end it."""
    with started_python("-m", "ci_agent_eval", "run", suite, "--", "-s", cwd=folder) as process:
        wait_for(process, "READY")
        process.send_signal(number)
        rest = process.communicate(timeout=600)[0]
    assert process.returncode == code, rest


def test_a_signal_leaves_a_report_of_what_finished_and_its_exit_code(tmp_path):
    suite = SLOW_SUITE.replace("os.kill({target}, signal.SIGKILL)", "print('READY', flush=True)")
    (tmp_path / "test_slow.py").write_text(suite)
    ended_by(signal.SIGINT, 130, "test_slow.py", folder=tmp_path)
    document = verdict(tmp_path)
    assert document["conclusion"] == "failure"
    assert document["counts"]["episodes"]["passed"] == 1


def test_a_signal_before_the_first_test_is_an_interruption(tmp_path):
    (tmp_path / "conftest.py").write_text(
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "print('READY', flush=True)\n"
        "signal.pause()\n"
    )
    (tmp_path / "test_it.py").write_text("def test_it(episode): pass\n")
    ended_by(signal.SIGTERM, 143, ".", folder=tmp_path)
    (finding,) = verdict(tmp_path)["summary"]["findings"]
    assert (finding["kind"], finding["message"]) == (
        "interrupted",
        "SIGTERM ended it before it had begun",
    )


WAITS = """
def test_waits(episode):
    with episode.turn("Hi") as turn:
        answer = open("gate").read()
        turn.reply(answer)
    assert answer == "go"
"""


def test_two_runs_do_not_write_into_one_folder(agent_eval, tmp_path):
    (tmp_path / "test_waits.py").write_text(WAITS)
    os.mkfifo(tmp_path / "gate")
    arguments = ("-m", "ci_agent_eval", "run", "test_waits.py", "--", "-s")
    with started_python(*arguments, cwd=tmp_path) as first:
        # Opening the pipe waits for the test that reads it.
        with (tmp_path / "gate").open("w") as gate:
            for wrong in (
                agent_eval("run", "test_waits.py"),
                agent_eval("report", "--junit", "x.xml"),
            ):
                assert wrong.returncode == 2, wrong.stdout
                assert "another run is writing its results there" in wrong.stderr
                assert wrong.stderr.count("\n") == 1
            pytest_alone = run_python(
                *("-m", "pytest", "test_waits.py", "--episode-report-dir=agent-eval-report"),
                cwd=tmp_path,
            )
            assert pytest_alone.returncode == pytest.ExitCode.USAGE_ERROR
            gate.write("go")
        output, _ = first.communicate()
    assert first.returncode == 0, output
    assert verdict(tmp_path)["counts"]["episodes"]["passed"] == 1


def test_a_run_that_is_killed_leaves_no_verdict_of_the_run_before(
    agent_eval, passed_desk, tmp_path
):
    passed_desk.copy_to(tmp_path)
    (tmp_path / "test_slow.py").write_text(SLOW_SUITE.format(target="os.getppid()"))
    assert agent_eval("run", "test_slow.py").returncode == -signal.SIGKILL
    assert not (tmp_path / "agent-eval-report/verdict.json").exists()
    assert agent_eval("report", "--results", "agent-eval-report").returncode == 1


def test_results_of_an_interrupted_run_are_no_pass_wherever_they_are_carried(agent_eval, tmp_path):
    (tmp_path / "test_stop.py").write_text(
        "import pytest\n"
        "def test_first(episode):\n"
        "    with episode.turn('hello') as turn:\n"
        "        turn.reply('hello', source='scripted')\n"
        "    assert episode.turns\n"
        "def test_second(episode):\n"
        "    pytest.exit('enough', returncode=0)\n"
    )
    assert agent_eval("run", "test_stop.py").returncode == 1
    (tmp_path / "alone").mkdir()
    shutil.copy(tmp_path / "agent-eval-report/results.json", tmp_path / "alone")
    for source, target in [("alone", "b"), ("agent-eval-report", "c"), ("b", "d"), ("c", "e")]:
        done = agent_eval("report", "--results", source, "--report-dir", target)
        assert done.returncode == 1, (source, done.stdout)


# Runs that end without an answer, from a model's API to the verdict.


BANK = Path(__file__).parents[1] / "servers/bank.py"

LOOK = Step(tool_calls=[call("get_balance", account="checking")])
SCRIPT = {
    "cut off": [LOOK, LOOK, LOOK, "never asked for"],
    "refused": [Step(refusal="I will not.")],
    "truncated": [Step(text="Your balance is $1,5", finish_reason="length")],
    "too long": [Step(status=400, code="context_length_exceeded")],
    "empty": [Step(text=""), Step(text="")],
    "fine": ["Your balance is $1,500."],
}

HEAD = """
import sys
import pytest
from ci_agent_eval.engine import Agent, MCPServer, Provider

agent = Agent(
    provider=Provider("openai:gpt-5-mini", base_url={url!r}),
    mcp_servers=[MCPServer(command=[sys.executable, {bank!r}])],
)
"""
CUT_OFF = """
@pytest.mark.episode(scenario_id={scenario!r}, budgets={{"max_turns": {budget}}}{on_marker})
async def test_cut_off(aitest_run):
    result = await aitest_run(agent, "cut off", max_turns=3{on_run})
    assert result.tool_was_called("get_balance")
"""
ANSWERS = """
@pytest.mark.parametrize("prompt", ["refused", "truncated", "too long", "empty", "fine"])
@pytest.mark.episode(gate="required"{on_marker})
async def test_answers(aitest_run, prompt):
    result = await aitest_run(agent, prompt{on_run})
    assert result.turns[0].content == prompt
"""
SUITE = HEAD + CUT_OFF + ANSWERS

REASONS = {
    "cut off": "max_turns: it was not done after 3 turns",
    "test_answers[refused]": "refusal: the model refused: I will not.",
    "test_answers[truncated]": "truncated: its answer was cut at the token limit",
    "test_answers[too long]": "context_window: the request no longer fits the model: ",
    "test_answers[empty]": (
        "empty_answer: its answer is empty: no text, no typed output, no attachment and no tool call"
    ),
}


def gate(folder, **suites):
    """Run these suites under the gate; return the process, the verdict, the comment, the episodes.

    A suite is a template and its parts.
    """
    with ModelServer(SCRIPT) as server:
        for name, (template, parts) in suites.items():
            given = {"scenario": "cut off", "budget": 3, "on_marker": "", "on_run": "", **parts}
            text = template.format(bank=str(BANK), url=server.base_url, **given)
            (folder / f"{name}.py").write_text(text)
        done = run_agent_eval("run", ".", "--max-error-rate=1", cwd=folder)
    report = folder / "agent-eval-report"
    verdict = json.loads((report / "verdict.json").read_text())
    comment = (report / "comment.md").read_text()
    episodes = json.loads((report / "results.json").read_text())["episodes"]
    by_scenario = {e["scenario_id"].removeprefix("test_suite.py::"): e for e in episodes}
    return done, verdict, comment, by_scenario


ALLOWED = ', allowed_stops={"max_turns", "refusal", "truncated", "context_window", "empty_answer"}'
OVER = "cut off where that is allowed"


@pytest.fixture(scope="module")
def nothing_allowed(tmp_path_factory):
    allowed = {"scenario": OVER, "on_marker": ALLOWED}
    suites = {"test_suite": (SUITE, {}), "test_allowed": (HEAD + CUT_OFF, allowed)}
    return gate(tmp_path_factory.mktemp("suite"), **suites)


def test_each_of_the_five_is_red_for_its_own_reason(nothing_allowed):
    done, verdict, comment, episodes = nothing_allowed
    assert done.returncode == 1, done.stderr
    assert {name for name, e in episodes.items() if e["outcome"] == "failed"} == set(REASONS)
    assert episodes["test_answers[fine]"]["outcome"] == "passed"
    shown = {
        scenario["scenario_id"].removeprefix("test_suite.py::"): json.dumps(scenario)
        for scenario in verdict["summary"]["scenarios"]
    }
    for name, reason in REASONS.items():
        (assertion,) = (a for a in episodes[name]["assertions"] if not a["passed"])
        assert assertion["name"] == "agent finished"
        assert assertion["reason"].startswith(reason)
        assert reason in " ".join(done.stdout.split())
        assert reason in shown[name]
        assert reason in comment
    reasons = verdict["verdict"]["reasons"]
    assert {reason["kind"] for reason in reasons} == {"scenario", "budget"}
    # A hard budget of turns is violated where the end is allowed, too.
    assert [reason["kind"] for reason in reasons if reason["scenario_id"] == OVER] == ["budget"]
    assert "over budget: turns 4 (limit 3)" in " ".join(done.stdout.split())


def test_ends_that_the_test_allows_are_green_and_so_is_an_answer(tmp_path):
    on_run = {"scenario": "cut off on run", "on_run": ALLOWED, "budget": 4}
    done, verdict, _, episodes = gate(
        tmp_path,
        test_suite=(SUITE, {"on_marker": ALLOWED, "budget": 4}),
        test_on_run=(SUITE, on_run),
    )
    assert done.returncode == 0, done.stdout
    assert verdict["conclusion"] == "success"
    assert len(episodes) == 12
    assert {episode["outcome"] for episode in episodes.values()} == {"passed"}
    for cut_off in ("cut off", "cut off on run"):
        assert episodes[cut_off]["budgets"]["max_turns"]["used"] == 4
    for refused in ("test_answers[refused]", "test_on_run.py::test_answers[refused]"):
        assert episodes[refused]["stop_reason"] == "refusal"
        assert "refusal" in episodes[refused]["allowed_stops"]


# A killed run with `--cassette=auto`: the next run sends no answered request again.


HEAD_KILLED_RUN = """
import os, signal
from pathlib import Path

import openai
import pytest

OPTIONS = {{"base_url": {base!r}, "api_key": "sk-test-of-nobody-at-all", "max_retries": 0}}

def kill_once():
    if not Path("killed").exists():
        Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
"""
SUITES = {
    "traffic": """
async def ask(message):
    async with openai.AsyncOpenAI(**OPTIONS) as client:
        asked = [{{"role": "user", "content": message}}]
        answer = await client.chat.completions.create(model="gpt-5-mini", messages=asked)
        return answer.choices[0].message.content

def build_agent():
    return ask
""",
    "pydantic_ai": """
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

def build_agent():
    client = openai.AsyncOpenAI(**OPTIONS)
    return Agent(OpenAIChatModel("gpt-5-mini", provider=OpenAIProvider(openai_client=client)))
""",
}
TESTS = """
@pytest.mark.episode("first", iterations=2)
async def test_first(aitest_run, request):
    result = await aitest_run(build_agent(), f"Hello from {{request.node.name}}")
    assert "fine" in result.final_response

@pytest.mark.episode("second")
async def test_second(aitest_run):
    agent = build_agent()
    await aitest_run(agent, "Is my order late?")
    kill_once()
    result = await aitest_run(agent, "Thank you.")
    assert "fine" in result.final_response

@pytest.mark.episode("third")
async def test_third(aitest_run):
    result = await aitest_run(build_agent(), "Goodbye.")
    assert "fine" in result.final_response
"""


@pytest.mark.parametrize("kind", SUITES)
def test_no_answered_request_is_sent_again(tmp_path: Path, kind: str) -> None:
    with ModelServer({"*": ["It is fine."]}) as server:
        suite = (HEAD_KILLED_RUN + SUITES[kind] + TESTS).format(base=server.base_url)
        (tmp_path / "test_desk.py").write_text(suite)
        killed = run_agent_eval("run", ".", "--", "--cassette=auto", cwd=tmp_path)
        assert (killed.returncode, len(server.requests)) == (1, 3), killed.stdout

        done = run_agent_eval("run", ".", "--", "--cassette=auto", cwd=tmp_path)
        sent = Counter(json.dumps(asked.body, sort_keys=True) for asked in server.requests)

    assert done.returncode == 0, done.stdout + done.stderr
    assert set(sent.values()) == {1}
    assert len(sent) == 5
    results = Results.model_validate_json(
        (tmp_path / "agent-eval-report/results.json").read_bytes()
    )
    assert [one.outcome for one in results.episodes] == ["passed"] * 4
