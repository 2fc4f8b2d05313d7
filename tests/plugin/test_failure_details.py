"""What a failed episode shows in the terminal, and the options that run it again."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.wording import count_columns

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
