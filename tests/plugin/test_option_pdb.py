"""pytest's `--pdb`: the conversation, then a prompt where the episode failed; on a real terminal."""

from __future__ import annotations

import pytest

from tests.processes import run_agent_eval, started_on_terminal

SUITE = """
import pytest
from ci_agent_eval import conversation

@pytest.mark.episode("late_check")
def test_late_check(episode):
    with episode.turn("Where is order 7?") as turn:
        turn.tool_call("search_orders", {"id": 7})
        turn.reply("It is \\x1b[2Jlost.")
    episode.check("says sent", "sent" in episode.turns[-1].content)
    state = "after the check"

def answer(message):
    raise ValueError("no model")

@pytest.mark.episode("agent_raises")
async def test_agent_raises(episode, aitest_run):
    await aitest_run(answer, "Hello")

class Desk:
    async def respond(self, message):
        return "Lost."

@conversation("driven", Desk)
async def test_driven(agent):
    await agent.send("Where is order 7?")
    assert agent.conversation.last.text == "Sent."

def test_plain():
    number = 7
    assert number == 8
"""
PYTEST = ("-m", "pytest", "--pdb", "-p", "no:cacheprovider", "-p", "no:randomly", "--color=no")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_suite.py").write_text(SUITE)
    return tmp_path


def debug(program, *commands):
    """Return the output before the next prompt, and each command's answer; and continue."""
    before = program.read_until("(Pdb) ")
    answers = []
    for command in commands:
        program.send(f"{command}\n")
        answers.append(program.read_until("(Pdb) ").partition("\n")[2].strip())
    program.send("continue\n")
    return before, answers


def test_it_stops_where_each_episode_failed(folder):
    with started_on_terminal(*PYTEST, "test_suite.py", cwd=folder) as program:
        late_check = debug(program, "p state", "p episode.tool_calls[0].name")
        raising = debug(program, "p episode.scenario_id")
        driven = debug(program, "p agent.conversation.last.text")
        plain = debug(program, "p number")
        program.read_rest()
    assert program.process.returncode == 1
    expect_a_failed_check_at_its_line_after_the_test_has_returned(*late_check)
    before, answers = raising
    assert "  user       Hello\n" in before
    # In the test, and not in our code.
    assert 'test_agent_raises()\n-> await aitest_run(answer, "Hello")' in before
    assert answers == ["'agent_raises'"]
    before, answers = driven
    assert "  assistant  Lost." in before
    assert "test_driven()\n-> assert agent" in before
    assert answers == ["'Lost.'"]
    before, answers = plain
    assert "conversation >" not in before
    assert answers == ["7"]


def expect_a_failed_check_at_its_line_after_the_test_has_returned(before, answers):
    conversation = before.partition("conversation >")[2].partition(">>>")[2].splitlines()[1:4]
    assert conversation == [
        "  user       Where is order 7?",
        "  calls      search_orders(id=7)",
        "  assistant  It is \N{REPLACEMENT CHARACTER}[2Jlost.",
    ]
    assert "test_suite.py(10)test_late_check()\n-> episode.check(" in before
    assert answers == ["'after the check'", "'search_orders'"]


def test_agent_eval_run_refuses_a_debugger_without_a_terminal(folder):
    done = run_agent_eval("run", "test_suite.py", "--", "--pdb", cwd=folder)
    assert done.returncode == 2
    assert "pytest --pdb" in done.stderr
