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


@pytest.mark.parametrize("decorator", ["", "    @given(flag=st.booleans())\n"])
def test_conversations_of_a_loop_with_names_of_their_own_are_collected(suite, decorator):
    imports = "from hypothesis import given, strategies as st\n" if decorator else ""
    given = LOOP.replace("    @conv", f"{decorator}    @conv")
    given = given.replace("(agent)", "(agent, flag)") if decorator else given
    suite.write(
        HEAD + imports + given + "    globals()[f'test_{n}'] = test_loop\ntest_loop = None\n"
    )
    ran = suite.run()
    assert {e.scenario_id for e in ran.results.episodes} == {"p", "q"}


@pytest.mark.parametrize(
    "neighbour",
    [
        "from pydantic import BaseModel",
        """class Proxy:
    def __getattr__(self, name):
        raise RuntimeError("outside of a request")
    __class__ = __dict__ = property(lambda self: self.missing)

request = Proxy()""",
    ],
    ids=["pydantic", "proxy"],
)
def test_objects_beside_conversations_may_refuse_attributes(suite, neighbour):
    suite.without_evidence().write(f"""{HEAD}
{neighbour}

@conversation("a", Agent)
def test_a(agent):
    agent.send("Hi")
""")
    suite.run().result.assert_outcomes(passed=1)
