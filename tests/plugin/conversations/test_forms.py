"""Which functions may be tests of a conversation."""

from __future__ import annotations

from tests.plugin.conversations.rig import AGENTS


def test_what_is_no_conversation_is_said_at_collection(write):
    cases = [
        ("@conversation\ndef test_x(agent): pass", "needs a name and a factory"),
        ('@conversation("x")\ndef test_x(agent): pass', "pass a factory: a function or class"),
        ('@conversation("x", Echo())\ndef test_x(agent): pass', "give a factory"),
        ('@conversation("x", 42)\ndef test_x(agent): pass', "not a int"),
        ('@conversation("x", lambda log, /: 1)\ndef test_x(agent): pass', "let them have names"),
        ('@conversation("x", Echo)\ndef test_x(agent): yield', "contains `yield`"),
        ('@conversation("x", Echo)\nasync def test_x(agent): yield', "contains `yield`"),
        ('@conversation("x", Echo)\ndef test_x(agent, /): pass', "takes no parameter `agent`"),
        (
            'class TestX:\n  @conversation("x", Echo)\n  @staticmethod\n  def test_x(agent): pass',
            "put it below @staticmethod",
        ),
    ]
    ran = write(*[decorated for decorated, _ in cases]).run()
    ran.result.assert_outcomes(errors=len(cases))
    ran.result.stdout.fnmatch_lines([f"E*InputError*{said}*" for _, said in cases])


def test_forms_of_a_test_function(write):
    ran = write("""
from unittest import mock
from ci_agent_eval.errors import InputError

class TestForms:
    @staticmethod
    @conversation("static", Echo)
    def test_static(agent):
        assert agent.send("a") == "you said a"

    @conversation("keyword", Echo)
    def test_keyword(self, *, agent, tmp_path, unset=None):
        assert agent.send("a") and tmp_path.exists() and unset is None

    @conversation("patched", Echo)
    @mock.patch("os.getcwd")
    def test_patched(self, getcwd, agent):
        assert isinstance(getcwd, mock.Mock)
        assert agent.send("a")

def test_nobody_else_calls_it():
    with pytest.raises(InputError, match="let pytest run it"):
        TestForms.test_static()
""").run("-W", "error")
    ran.result.assert_outcomes(passed=4)


def test_a_property_may_stand_above_or_below(suite):
    suite.write(
        AGENTS
        + """
from hypothesis import given, settings, strategies as st

few = settings(max_examples=5, deadline=None, database=None)
made = []

class Counted(Echo):
    def __init__(self):
        made.append(self)

@few
@given(text=st.text(), number=st.integers())
@conversation("above", Counted)
def test_above(agent, text, number):
    assert agent.send(text) == f"you said {text}" and isinstance(number, int)
    assert len(agent.conversation.messages) == 2

@conversation("below", Echo)
@few
@given(text=st.just("x"))
def test_below(agent, text):
    assert agent.send(text) == "you said x"

def test_each_example_has_an_agent_of_its_own():
    assert len(made) == 5
"""
    )
    ran = suite.run()
    ran.result.assert_outcomes(passed=3)
    assert [e.scenario_id for e in ran.results.episodes] == ["above", "below"]
