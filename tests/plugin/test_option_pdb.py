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
PYTEST = ("-m", "pytest", "--pdb", "-p", "no:cacheprovider", "--color=no", "test_suite.py")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_suite.py").write_text(SUITE)
    return tmp_path


def debug(folder, name, *commands):
    """Stop in a test; return the output before the prompt, and each command's answer."""
    with started_on_terminal(*PYTEST, "-k", name, cwd=folder) as program:
        before = program.read_until("(Pdb) ")
        answers = []
        for command in commands:
            program.send(f"{command}\n")
            answers.append(program.read_until("(Pdb) ").partition("\n")[2].strip())
        program.send("continue\n")
        program.read_rest()
    assert program.process.returncode == 1
    return before, answers


def test_a_failed_check_stops_at_its_line_after_the_test_has_returned(folder):
    before, answers = debug(folder, "late_check", "p state", "p episode.tool_calls[0].name")
    conversation = before.partition("conversation >")[2].partition(">>>")[2].splitlines()[1:4]
    assert conversation == [
        "  user       Where is order 7?",
        "  calls      search_orders(id=7)",
        "  assistant  It is \N{REPLACEMENT CHARACTER}[2Jlost.",
    ]
    assert "test_suite.py(10)test_late_check()\n-> episode.check(" in before
    assert answers == ["'after the check'", "'search_orders'"]


def test_an_agent_that_raises_stops_in_the_test_and_not_in_our_code(folder):
    before, answers = debug(folder, "agent_raises", "p episode.scenario_id")
    assert "  user       Hello\n" in before
    assert 'test_agent_raises()\n-> await aitest_run(answer, "Hello")' in before
    assert answers == ["'agent_raises'"]


def test_a_conversation_stops_with_its_agent_at_hand(folder):
    before, answers = debug(folder, "driven", "p agent.conversation.last.text")
    assert "  assistant  Lost." in before
    assert "test_driven()\n-> assert agent" in before
    assert answers == ["'Lost.'"]


def test_a_test_without_an_episode_is_debugged_as_before(folder):
    before, answers = debug(folder, "plain", "p number")
    assert "conversation >" not in before
    assert answers == ["7"]


def test_agent_eval_run_refuses_a_debugger_without_a_terminal(folder):
    done = run_agent_eval("run", "test_suite.py", "--", "--pdb", cwd=folder)
    assert done.returncode == 2
    assert "pytest --pdb" in done.stderr
