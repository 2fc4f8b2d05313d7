"""A conversation that a later definition replaces: Python keeps the last, the plugin refuses it."""

from __future__ import annotations

import pytest

HEAD = """
from ci_agent_eval import conversation

class Agent:
    def respond(self, message): return "Hello"

"""

LOOP = """
for n in ("p", "q"):
    @conversation(n, Agent)
    def test_loop(agent):
        assert agent.send("Hi").text
"""

TWICE = """
@conversation("p", Agent)
def test_loop(agent): agent.send("Hi")

def test_loop(): pass
"""


def test_a_replaced_conversation_is_refused(suite):
    suite.pytester.makepyfile(test_loop=HEAD + LOOP, test_twice=HEAD + TWICE)
    ran = suite.run()
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    said = "the conversation 'p' is replaced by another 'test_loop'; give *"
    ran.result.stdout.fnmatch_lines([f"test_{name}.py:*: {said}" for name in ("loop", "twice")])


NEIGHBOURS = """
from hypothesis import given, strategies as st
from pydantic import BaseModel

class Proxy:
    def __getattr__(self, name):
        raise RuntimeError("outside of a request")
    __class__ = __dict__ = property(lambda self: self.missing)

request = Proxy()
"""


def test_conversations_of_a_loop_with_names_of_their_own_are_collected(suite):
    """Beside objects that refuse attributes."""
    named = LOOP + "    globals()[f'test_{n}'] = test_loop\ntest_loop = None\n"
    given = named.replace("    @conv", "    @given(flag=st.booleans())\n    @conv")
    given = given.replace("(agent)", "(agent, flag)").replace('("p", "q")', '("r", "s")')
    suite.write(HEAD + NEIGHBOURS + named + given)
    ran = suite.run()
    assert {e.scenario_id for e in ran.results.episodes} == {"p", "q", "r", "s"}
