"""Budgets of the suite: --total-cost-usd, --total-tokens, --total-wall-time-s."""

from __future__ import annotations

import pytest

from tests.model_server.script import Step, call
from tests.plugin.budget_suite import COST_USD, LATE, asking, stopped
from tests.plugin.test_aitest_run import BANK
from tests.tables import each_row

# The run stops when its episodes, their judges and simulated users have cost too much.


NEEDS_EVIDENCE = False

EPISODES = """
@pytest.mark.parametrize("number", range(12))
async def test_asks(aitest_run, number):
    await aitest_run(agent, f"first {number}")
    await aitest_run(agent, f"second {number}")
"""


def test_no_episode_starts_once_it_is_exceeded_and_the_running_one_ends(suite, pytester):
    """By the ini setting; the option wins over it, and its limit itself is within it."""
    pytester.makeini("[pytest]\ntotal_cost_usd = 0.00035\n")
    with asking(suite, EPISODES) as server:
        within = suite.run(f"--total-cost-usd={24 * COST_USD}")
        within.result.assert_outcomes(passed=12)
        assert (within.result.ret, within.session.stopped) == (0, None)
        before = len(server.requests)
        ran = suite.run()
        asked = len(server.requests) - before
    episodes = ran.results.episodes
    stopped(ran, "total_cost_usd exceeded: $0.000")
    left = 12 - len(episodes)
    assert left > 0
    ran.result.stdout.fnmatch_lines([f"STOPPED *; {left} of 12 selected episodes did not run"])
    # What was begun is recorded, and nothing was asked of which there is no record.
    cut = [e for e in episodes if e.outcome != "passed"]
    assert {e.outcome for e in cut} <= {"error"}
    assert any(e.trajectory and e.trajectory.agent_turns for e in cut)
    assert {e.stop_reason for e in cut if e.trajectory} <= {"completed", "cancelled"}
    spent = sum(e.trajectory.cost_usd or 0.0 for e in episodes if e.trajectory)
    assert 0.00035 < spent < 0.00035 + COST_USD + 1e-9
    assert asked <= 6


SHARED = """
import asyncio, os
import pytest
from pathlib import Path

worker, begun = os.environ["PYTEST_XDIST_WORKER"], []

def spend(episode, cost_usd):
    with episode.turn("Hello") as turn:
        turn.reply("Hi", cost_usd=cost_usd)

@pytest.mark.parametrize("number", range(8))
async def test_spends(episode, number):
    begun.append(number)
    if worker == "gw0":
        spend(episode, 0.6)
        if len(begun) == 2:
            await asyncio.Event().wait()
    else:
        journal = Path("report/episodes/gw0.jsonl")
        while not journal.exists() or journal.read_bytes().count(b'"event":"started"') < 2:
            await asyncio.sleep(0.01)
        {act}
"""
"""The second episode of one worker waits for ever; the first one of the other acts then."""


def test_what_the_others_have_spent_counts_in_each_worker(suite):
    suite.write(SHARED.replace("{act}", "spend(episode, 1.0)"))
    ran = suite.run("--total-cost-usd=1.5", "-n2")
    assert ran.session.suite_stop.budget == "total_cost_usd"
    endings = sorted((e.outcome, e.reason) for e in ran.results.episodes)
    said = "stopped: suite budget total_cost_usd exceeded:"
    assert endings == [
        ("error", f"{said} $1.60 of $1.50"),
        ("error", f"{said} $2.20 of $1.50"),
        ("passed", None),
    ]


def test_a_journal_that_cannot_be_read_stops_all_workers(suite):
    ruin = 'Path("report/episodes/gw2.jsonl").write_text("no record\\n")'
    suite.write(SHARED.replace("{act}", ruin))
    ran = suite.run("--total-cost-usd=100", "-n2")
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    said = "gw2.jsonl has a line that is not a record of an episode; run the suite again"
    assert said in ran.session.stopped
    assert ran.session.suite_stop is None
    assert not ran.results.complete
    assert sorted(e.outcome for e in ran.results.episodes) == ["error", "passed", "passed"]
    ran.result.stdout.fnmatch_lines(
        ["STOPPED the budgets of the suite cannot be checked: *; 5 of 8 selected episodes *"]
    )


def test_workers_without_journals_are_refused(suite):
    suite.write("def test_one(episode): pass")
    for option in ("--total-cost-usd=1", "--total-tokens=1"):
        result = suite.run_in_process("-n2", option)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        said = "*add up what they spend from their journals; give --episode-*"
        result.stderr.fnmatch_lines([said])
    assert suite.run_in_process("-n1", "--total-wall-time-s=900").ret == 0


def test_the_required_scenarios_that_it_left_out_are_named(suite):
    suite.write(
        """
        import pytest

        def spend(episode):
            with episode.turn("Hello") as turn:
                turn.reply("Hi", cost_usd=0.25)

        @pytest.mark.episode("first")
        def test_first(episode): spend(episode)

        @pytest.mark.episode("second", iterations=3)
        def test_second(episode): spend(episode)

        @pytest.mark.episode("advisory", gate="advisory")
        def test_advisory(episode): spend(episode)

        @pytest.mark.episode("last")
        def test_last(episode): spend(episode)
        """
    )
    assert suite.run("--total-cost-usd=0.3").session.unafforded == ("last", "second")
    assert suite.run("--total-cost-usd=9").session.unafforded == ()


def test_an_episode_that_asks_again_and_again_is_ended_in_the_midst_of_its_run(suite):
    tests = """
import sys
from ci_agent_eval.engine import MCPServer

clerk = Agent(
    provider=agent.provider,
    mcp_servers=[MCPServer(command=[sys.executable, {bank!r}])],
)

async def test_runs_away(aitest_run):
    await aitest_run(clerk, "balance?")

async def test_is_next(aitest_run):
    await aitest_run(clerk, "balance?")
"""
    forever = [Step(tool_calls=[call("get_balance", account="checking")])] * 20
    with asking(suite, tests.replace("{bank!r}", repr(str(BANK))), forever) as server:
        ran = suite.run(f"--total-cost-usd={3.5 * COST_USD}")
    stopped(ran, "total_cost_usd exceeded: ")
    (episode,) = ran.results.episodes
    assert (episode.outcome, episode.stop_reason) == ("error", "cancelled")
    assert len(episode.trajectory.agent_turns) == 4
    assert len(server.requests) <= 5


def test_judges_and_turns_recorded_by_hand_count(suite):
    tests = """
from ci_agent_eval.contract.episode import SideUsage

@pytest.mark.parametrize("number", range(3))
def test_by_hand(episode, number):
    with episode.turn("hi") as turn:
        turn.reply("hello", cost_usd=0.25)
    episode.record_judge(SideUsage(calls=1, cost_usd=0.25))
    episode.record_simulated_user(SideUsage(calls=1, cost_usd=0.25))
"""
    with asking(suite, tests):
        ran = suite.run("--total-cost-usd=1")
    # The second episode goes over it; a plain test has no task that could be ended.
    stopped(ran, "total_cost_usd exceeded: $1.25 of $1.00")
    assert [e.outcome for e in ran.results.episodes] == ["passed", "passed"]


def test_an_agent_that_was_skipped_in_the_end_does_not_count_as_in_the_report(suite):
    tests = """
@pytest.mark.parametrize("number", range(5))
def test_skips(episode, number):
    with episode.turn("hi") as turn:
        turn.reply("hello", cost_usd=0.9)
    pytest.skip("no account")
"""
    with asking(suite, tests):
        ran = suite.run("--total-cost-usd=1")
    ran.result.assert_outcomes(skipped=5)


RERUNS = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for _ in range(4):
        item._initrequest()
        runtestprotocol(item, nextitem=nextitem)
    return True
"""
"""As pytest-rerunfailures runs a test again, which is not here."""


def test_every_attempt_counts_and_none_begins_after_the_stop(suite):
    tests = """
def test_again(episode):
    with episode.turn("hi") as turn:
        turn.reply("hello", cost_usd=0.4)
    assert False
"""
    suite.write(tests, conftest=RERUNS)
    ran = suite.run("--total-cost-usd=1")
    assert ran.session.stopped == "suite budget total_cost_usd exceeded: $1.20 of $1.00"
    endings = [(e.attempt, e.outcome, e.trajectory is None) for e in ran.results.episodes]
    assert endings == [
        (1, "failed", False),
        (2, "failed", False),
        (3, "failed", False),
        (4, "error", True),
    ]
    ran.result.stdout.fnmatch_lines(["1 episode: 1 errored; 3 reruns; $1.20*"])


def test_what_is_marked_to_fail_is_an_error_all_the_same(suite):
    tests = """
@pytest.mark.xfail
async def test_fails(aitest_run):
    await aitest_run(agent, "one")
    await aitest_run(agent, "two")
"""
    with asking(suite, tests):
        ran = suite.run("--total-cost-usd=0.00001")
    (episode,) = ran.results.episodes
    assert episode.outcome == "error"
    assert episode.reason.startswith("stopped: suite budget")


@each_row(
    ("setting", "given", "said"),
    [
        *(
            ("total_cost_usd", given, "a number, 0 or more")
            for given in ("-1", "nan", "inf", "much")
        ),
        *(
            ("total_tokens", given, "a whole number, 0 or more")
            for given in ("-1", "1.5", "a", "²")
        ),
    ],
)
def test_what_is_no_amount_is_a_usage_error(suite, pytester, setting, given, said):
    pytester.makepyfile("def test_one(): pass")
    option = f"--{setting.replace('_', '-')}"
    result = suite.run_in_process(f"{option}={given}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{option}: give {said}*"])
    if given in {"nan", "²"}:
        result = suite.run_in_process("-o", f"{setting}={given}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*ini setting {setting}: give {said}*"])


# The run stops when its models have used too many tokens.


EPISODES_TOTAL_TOKENS = """
@pytest.mark.parametrize("number", range(10))
async def test_asks(aitest_run, number):
    await aitest_run(agent, f"question {number}")
    await asyncio.sleep(0.01)
"""


def test_answers_from_a_cassette_count_as_they_do_in_the_report(suite):
    tests = EPISODES_TOTAL_TOKENS
    with asking(suite, tests):
        assert suite.run("--cassette=record").result.ret == 0
    ran = suite.run("--cassette=replay", "--total-tokens=500")
    stopped(ran, "total_tokens exceeded: 600 of 500")


def test_episodes_side_by_side_are_ended_together_each_with_what_it_has(suite):
    tests = EPISODES_TOTAL_TOKENS.replace("sleep(0.01)", "Event().wait()")
    with asking(suite, tests):
        ran = suite.run("--total-tokens=300", "--episode-concurrency=3")
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    episodes = ran.results.episodes
    assert len(episodes) == 3
    assert {e.outcome for e in episodes} == {"error"}
    assert all("suite budget total_tokens exceeded" in e.reason for e in episodes)
    left = 10 - len(episodes)
    ran.result.stdout.fnmatch_lines([f"STOPPED *; {left} of 10 selected episodes did not run"])


PLAIN = """
from openai import OpenAI

client = OpenAI(base_url=agent.provider.base_url, api_key="k")


def ask(prompt):
    messages = [{"role": "user", "content": prompt}]
    return client.chat.completions.create(model="m", messages=messages).choices[0].message.content


async def ask_again(prompt):
    for number in range(20):
        await asyncio.to_thread(ask, f"{prompt} {number}")
    return "done"
"""

PLAIN_EPISODES = """
@pytest.mark.parametrize("number", range(10))
def test_asks(episode, number):
    ask(f"question {number}")
"""

RUNAWAY = """
async def test_asks(aitest_run):
    await aitest_run(ask_again, "question")
"""


@pytest.mark.parametrize(("tests", "most"), [(PLAIN_EPISODES, 600), (RUNAWAY, 2400)])
def test_model_calls_of_plain_code_stop_the_run_too(suite, tests, most):
    with asking(suite, PLAIN + tests, script=["answer"]) as server:
        ran = suite.run("--total-tokens=500")
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    assert "total_tokens exceeded" in (ran.session.stopped or "")
    assert 5 <= len(server.requests) < 20
    used = sum((e.trajectory and e.trajectory.total_tokens) or 0 for e in ran.results.episodes)
    assert 500 < used <= most


PROGRAM = """
import json, os, urllib.request
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "tea"}]}).encode()
headers = {"content-type": "application/json", "authorization": "Bearer k"}
for number in range(500):
    urllib.request.urlopen(urllib.request.Request(url, body, headers)).close()
"""

NESTED = """
import sys
from ci_agent_eval.engine import CLIServer

program = Path(__file__).with_name("program.py")
tool = CLIServer(
    "expert", f"{sys.executable} {program}", env={"OPENAI_BASE_URL": agent.provider.base_url}
)
main = Agent(provider=agent.provider, cli_servers=[tool], max_turns=1000)

async def test_asks(aitest_run):
    await aitest_run(main, "question")
"""


def test_model_calls_in_the_tool_of_a_declared_agent_stop_the_run_too(suite):
    asks = {"tool_calls": [call("expert_execute", args="")]}
    with asking(suite, NESTED, script={"question": [asks, "Done"], "tea": ["green"]}) as server:
        suite.pytester.path.joinpath("program.py").write_text(PROGRAM)
        ran = suite.run("--total-tokens=500")
    stopped(ran, "total_tokens exceeded: ")
    assert 5 <= len(server.requests) < 500


# The run stops when it has taken too long, also in the midst of an episode.


EPISODES_TOTAL_WALL_TIME_S = """
@pytest.fixture(scope="module")
def module():
    yield
    Path("module").touch()

@pytest.fixture
def own():
    yield
    Path("own").touch()

@pytest.mark.parametrize("number", range(2))
async def test_waits(aitest_run, number, module, own):
    await aitest_run(agent, f"question {number}")
    Path("late").touch()
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        Path("test").touch()
"""


def test_what_runs_is_ended_and_torn_down_when_the_time_is_over(suite):
    with asking(suite, EPISODES_TOTAL_WALL_TIME_S, conftest=LATE):
        assert suite.run("--collect-only", "--total-wall-time-s=0").result.ret == 0
        ran = suite.run("--total-wall-time-s=1000")
    stopped(ran, "total_wall_time_s exceeded: 9")
    (episode,) = ran.results.episodes
    assert (episode.outcome, len(episode.trajectory.agent_turns)) == ("error", 1)
    assert all((suite.pytester.path / name).exists() for name in ("module", "own", "test"))


def test_a_model_that_does_not_answer_is_not_waited_for(suite):
    tests = """
async def test_waits(aitest_run):
    asyncio.get_running_loop().call_later(0.2, Path("late").touch)
    await aitest_run(agent, "hello?", timeout_s=None)
"""
    with asking(suite, tests, [Step(hang=True)], LATE):
        ran = suite.run("--total-wall-time-s=1000")
    stopped(ran, "total_wall_time_s exceeded: 9")
    (episode,) = ran.results.episodes
    assert (episode.outcome, episode.stop_reason) == ("error", "cancelled")
    assert [turn.role for turn in episode.trajectory.turns] == ["user"]


def test_plain_code_ends_by_itself_and_nothing_starts_after_it(suite):
    tests = """
def test_works(episode):
    Path("late").touch()

def test_is_next(episode):
    pass
"""
    with asking(suite, tests, conftest=LATE):
        ran = suite.run("--total-wall-time-s=1000")
    stopped(ran, "total_wall_time_s exceeded: ")
    assert [e.outcome for e in ran.results.episodes] == ["passed"]
    ran.result.stdout.fnmatch_lines(["STOPPED *; 1 of 2 selected episodes did not run"])
