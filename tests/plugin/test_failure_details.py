"""Instructions, redaction and the details of failures in what is written."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.contract.wording import count_columns
from tests.model_server import ModelServer
from tests.model_server.script import Step, call

# What a failed episode shows in the terminal, and the options that run it again.


SUITE = """
import pytest

@pytest.mark.episode("status", iterations=2)
def test_status(episode):
    with episode.turn("Where is order 7?") as turn:
        turn.tool_call("search_orders", {"id": 7})
        turn.reply("It is lost.")
    assert "sent" in episode.turns[-1].content

@pytest.mark.episode("fine")
def test_fine(episode):
    with episode.turn("Hi") as turn:
        turn.reply("Hello")
    assert episode.turns

@pytest.mark.episode("broken")
async def test_broken(aitest_run):
    def answer(message):
        raise ValueError("no model")
    await aitest_run(answer, "Hello")
"""


def test_failed_episode_shows_its_conversation_and_a_repeated_failure_is_shown_once(
    suite, pytester, workers
):
    suite.write(SUITE)
    result = suite.run(workers, "-k", "not broken", "--junit-xml=junit.xml").result
    lines = result.outlines
    start = next(n for n, line in enumerate(lines) if line.startswith("── status "))
    assert lines[start].startswith(
        "── status · 2 of 2 iterations fail · iteration 1, the shortest ──"
    )
    assert lines[start + 1 : start + 8] == [
        "  user       Where is order 7?",
        "  calls      search_orders(id=7)",
        "✗ assistant  It is lost.",
        '  check      assert "sent" in episode.turns[-1].content',
        "             assert 'sent' in 'It is lost.'",
        "             test_suite.py:8",
        "  again      agent-eval run test_suite.py --scenario status --iterations 1",
    ]
    result.stdout.fnmatch_lines(["the same failure as test_suite.py::test_status[[][12]-of-2]"])
    assert result.stdout.str().count("> *assert") <= 1
    assert (pytester.path / "junit.xml").read_text().count("It is lost.") >= 2


def test_wide_characters_take_two_columns(suite, pytester):
    suite.write("""
import pytest

@pytest.mark.episode("返品")
def test_returns(episode):
    with episode.turn("返品できますか") as turn:
        turn.reply("返品は三十日以内に限ります。" * 20)
    episode.check("期限", False)
""")
    lines = pytester.runpytest_inprocess().outlines
    start = next(n for n, line in enumerate(lines) if line.startswith("── 返品 ──"))
    assert count_columns(lines[start]) == 80
    answer = [line for line in lines[start:] if "限ります" in line]
    assert [count_columns(line) for line in answer] == [79, 79, 79]


OVER_BUDGET = """
import pytest

def order(number):
    mark = pytest.mark.episode(f"status-{number}", iterations=2, budgets={"tool_calls": 1})
    return pytest.param(number, marks=mark)

@pytest.mark.parametrize("order", [order(70), order(80)])
def test_over(episode, order):
    with episode.turn("Where is it?") as turn:
        for call in range(order // 10 - 5):
            turn.tool_call("search_orders", {"id": order})
        turn.reply("Sent.")
    assert episode.turns

@pytest.mark.episode("slow", budgets={"tool_calls": {"limit": 1, "hard": False}})
def test_soft(episode):
    with episode.turn("Where is it?") as turn:
        turn.tool_call("a")
        turn.tool_call("b")
        turn.reply("Sent.")
    assert episode.turns
"""


def test_episodes_over_the_same_budget_are_one_block(suite):
    suite.write(OVER_BUDGET)

    ran = suite.run()

    lines = ran.result.outlines
    starts = [n for n, line in enumerate(lines) if line.startswith("── ")]
    assert len(starts) == 1
    block = lines[starts[0] : starts[0] + 8]
    shown = ran.result.stdout
    shown.fnmatch_lines(["the same failure as test_suite.py::test_over[[]70-1-of-2]"])
    assert block[0].startswith("── 2 scenarios · 4 episodes · over the same budget ──")
    assert block[1:] == [
        "  user       Where is it?",
        "  calls      search_orders(id=70)",
        "             search_orders(id=70)",
        "  assistant  Sent.",
        "  budget     tool_calls: 2, limit 1 (hard)",
        "             test_suite.py:7",
        "  again      agent-eval run test_suite.py --scenario status-70 --iterations 1",
    ]


def test_frames_of_this_package_are_left_out_unless_they_are_asked_for(suite):
    suite.write(SUITE)

    shown = suite.run("-k", "broken").result.stdout.str()

    assert "await aitest_run(answer" in shown
    assert "raise AgentRunError" not in shown
    assert "ci_agent_eval/" not in shown
    shown = suite.run("-k", "broken", "--full-trace").result.stdout.str()
    assert "raise AgentRunError" in shown


def test_scenario_is_selected_by_its_id(suite):
    suite.write(SUITE)

    ran = suite.run("--episode-scenario=status", "--episode-iterations=3")

    assert sorted((e.scenario_id, e.iteration) for e in ran.episodes.values()) == [
        ("status", 1),
        ("status", 2),
        ("status", 3),
    ]


def test_what_cannot_be_selected_is_one_sentence(suite):
    suite.write(SUITE + "def test_bags(episode): assert episode\n")
    for option, said in [
        ("scenario=test_bagz", "*did you mean 'test_suite.py::test_bags'?"),
        ("scenario=statu", "*no collected test has the scenario 'statu'; did you mean 'status'?"),
        ("iterations=0", "*give a whole number, 1 or more (got '0')*"),
    ]:
        result = suite.run_in_process(f"--episode-{option}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([said])


BUDGET_SUITE = """
import pytest

@pytest.mark.episode("loop", budgets={"max_turns": 1})
def test_loop(episode):
    for _ in range(2):
        with episode.turn("Hi") as turn:
            turn.reply("Hello", tokens=3, cost_usd=COST)
    assert episode.turns
"""


def test_failure_of_an_episode_is_its_message_with_its_cost(suite):
    for cost, shown in (("0.0", "$0.00"), ("0.000012", "$0.000024")):
        suite.write(BUDGET_SUITE.replace("COST", cost))
        result = suite.run_in_process()
        result.stdout.fnmatch_lines(
            ["episode 'loop': budget max_turns: 2, limit 1 (hard)", f"1 episode: *; {shown}"]
        )
        result.stdout.no_fnmatch_line("*entries are hidden*")


# The instructions of agents and the descriptions of their tools are in the results.


SUITE_INSTRUCTIONS = """
import anthropic, openai, pytest
from pydantic_ai import Agent as Loop
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from ci_agent_eval.engine import Agent, Provider

BASE, ROOT, TOLD = {base!r}, {root!r}, "Always state the exact amount."
PARAMETERS = {{"type": "object", "properties": {{"account": {{"type": "string"}}}}}}
KEYS = {{"api_key": "sk-test-of-nobody-at-all", "max_retries": 0}}

async def chat(message):
    messages = [{{"role": "system", "content": TOLD}}, {{"role": "user", "content": message}}]
    tool = {{"name": "get_balance", "description": "Returns a balance.", "parameters": PARAMETERS}}
    async with openai.AsyncOpenAI(base_url=BASE, **KEYS) as client:
        answer = await client.chat.completions.create(
            model="gpt-5-mini", messages=messages, tools=[{{"type": "function", "function": tool}}]
        )
    return answer.choices[0].message.content

async def messages(message):
    tool = {{"name": "get_balance", "description": "Returns a balance.", "input_schema": PARAMETERS}}
    async with anthropic.AsyncAnthropic(base_url=ROOT, **KEYS) as client:
        answer = await client.messages.create(
            model="claude-sonnet-5", max_tokens=9, system=TOLD, tools=[tool],
            messages=[{{"role": "user", "content": message}}],
        )
    return answer.content[0].text

async def responses(message):
    tool = {{"name": "get_balance", "description": "Returns a balance.", "parameters": PARAMETERS}}
    async with openai.AsyncOpenAI(base_url=BASE, **KEYS) as client:
        answer = await client.responses.create(
            model="gpt-5-mini", instructions=TOLD, input=message,
            tools=[{{"type": "function", "strict": False, **tool}}],
        )
    return answer.output_text

def get_balance(account: str) -> str:
    "Returns a balance."
    return "$12"

MODEL = OpenAIChatModel("gpt-5-mini", provider=OpenAIProvider(base_url=BASE, api_key="none"))
live = Loop(MODEL, name="live", instructions=TOLD, tools=[get_balance])
declared = Agent(Provider("openai:gpt-5-mini", base_url=BASE), system_prompt=TOLD)

@pytest.mark.parametrize("agent", [chat, messages, responses, live, declared])
async def test_run(aitest_run, agent):
    result = await aitest_run(agent, "How much do I have?")
    assert result.effective_system_prompt == TOLD

@pytest.mark.parametrize("agent", [chat, messages, responses])
async def test_own_code(episode, agent):
    assert await agent("How much do I have?")
"""


def list_texts(episode):
    found = episode["conditions"].get("instructions", [])
    return [(one["kind"], one.get("name"), one["text"]) for one in found]


def test_every_kind_of_agent_shows_what_its_model_is_told(pytester, suite):
    with ModelServer({"*": ["It is $12."]}) as server:
        pytester.makepyfile(SUITE_INSTRUCTIONS.format(base=server.base_url, root=server.root_url))
        result = suite.run_in_process("--episode-report-dir=out", "--episode-concurrency=4")
    result.assert_outcomes(passed=8)
    episodes = json.loads((pytester.path / "out/results.json").read_text())["episodes"]
    for episode in episodes:
        agent, *tools = list_texts(episode)
        assert agent == ("agent", None, "Always state the exact amount."), episode["nodeid"]
        assert len(tools) == ("agent4" not in episode["nodeid"])
        for kind, name, text in tools:
            assert (kind, name) == ("tool", "get_balance")
            assert text.startswith("Returns a balance.\naccount: {")


TEAM = """
import openai, pytest

async def ask(told, message, tools=()):
    tools = [{{"type": "function", "function": {{"name": name, "parameters": {{}}}}}} for name in tools]
    messages = [{{"role": "system", "content": told}}, {{"role": "user", "content": message}}]
    async with openai.AsyncOpenAI(base_url={base!r}, api_key="x", max_retries=0) as client:
        answer = await client.chat.completions.create(
            model="gpt-5-mini", messages=messages, **({{"tools": tools}} if tools else {{}})
        )
    return answer.choices[0].message

async def desk(message):
    said = await ask("Find the clerk. Key: sk-proj-abcdefghijklmnopqrstuvwx0123456789", message, ["ask_teller"])
    return (await ask("Be brief. " * 4_000, said.tool_calls[0].function.arguments)).content

async def test_team(aitest_run):
    assert (await aitest_run(desk, "How much?")).success
"""


def test_nested_agents_have_their_names_and_texts_have_neither_secrets_nor_any_length(
    pytester, suite
):
    script = {
        "How much?": [Step(tool_calls=[call("ask_teller", question="the balance")])],
        "*": ["It is $12."],
    }
    with ModelServer(script) as server:
        pytester.makepyfile(TEAM.format(base=server.base_url))
        suite.run_in_process("--episode-report-dir=out").assert_outcomes(passed=1)
    (episode,) = json.loads((pytester.path / "out/results.json").read_text())["episodes"]
    teller, desk, tool = list_texts(episode)
    assert [teller[:2], desk[:2]] == [("agent", "ask_teller"), ("agent", None)]
    assert tool == ("tool", "ask_teller", "")
    assert "Find the clerk" in desk[2]
    assert "sk-proj" not in desk[2]
    assert len(teller[2]) < 20_100
    assert "more characters, checksum" in teller[2]
