"""An episode and a test of the same name: Python keeps the last, and the plugin refuses both."""

from __future__ import annotations

import pytest

HEAD = """
import pytest
from ci_agent_eval import conversation, llm_episode

class Agent:
    def respond(self, message): return "Hello"

"""

CONVERSATION = """
@conversation("{0}", Agent)
def {1}(agent):
    assert agent.send("Hi").text
"""

PLAIN = "\ndef {1}(): assert 1\n"

MARKED = "\n@pytest.mark.episode('{0}')\ndef {1}(): assert 1\n"

FIXTURE = """
async def {1}(episode):
    with episode.turn("{0}") as turn: turn.reply("Hello")
"""

RETURNING = """
@llm_episode()
def {1}():
    return {{"assertions": [{{"name": "{0}", "passed": True}}]}}
"""


def pair(first, second, name="test_greets"):
    return first.format("one", name) + second.format("two", name)


def refused(ran, file="test_suite.py", name="test_greets"):
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    ran.result.stdout.fnmatch_lines(
        [
            f"{file}:*: {name} replaces the test of the same name at line *; give one of them another *"
        ]
    )
    return ran.session.collection_errors


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (CONVERSATION, CONVERSATION),
        (CONVERSATION, PLAIN),
        (PLAIN, CONVERSATION),
        (MARKED, MARKED),
        (PLAIN, MARKED),
        (FIXTURE, FIXTURE),
        (PLAIN, FIXTURE),
        (RETURNING, RETURNING),
        (RETURNING, PLAIN),
    ],
)
def test_one_of_the_same_name_is_refused_with_place_and_remedy(suite, first, second):
    suite.write(HEAD + pair(first, second))
    (error,) = refused(suite.run())
    assert error.message.startswith("test_suite.py:1")


def test_a_conversation_may_have_any_name_but_no_other_s(suite):
    suite.write(HEAD + pair(CONVERSATION, CONVERSATION, "_"))
    refused(suite.run(), name="_")


def test_in_a_class_too(suite):
    methods = "    def test_greets(self, episode): assert 1\n" * 2
    suite.write(f"class TestDesk:\n  class TestInner:\n{methods}")
    refused(suite.run())


def test_in_an_evaluation_any_two_tests(suite):
    suite.pytester.makepyfile(chat_eval=pair(PLAIN, PLAIN))
    refused(suite.run("chat_eval.py"), file="chat_eval.py")


def test_what_replaces_nothing_is_collected(suite):
    suite.write(
        HEAD
        + pair(CONVERSATION, "")
        + """
if pytest:
    def test_either(episode):
        with episode.turn("Hi") as turn: turn.reply("Hello")
        assert 1
else:
    def test_either(episode): pass

class TestDesk:
    def test_greets(self, episode):
        with episode.turn("Hi") as turn: turn.reply("Hello")
        assert 1

def helper(): return 1
def helper(): return 2

def test_plain(): assert 0
def test_plain(): assert 1
"""
    )
    suite.run().result.assert_outcomes(passed=4)


IN_CLASS = """
class TestA:
    @conversation("first", Agent)
    def test_first(self, agent): assert 0
"""

OF_FIXTURE = "\nclass TestA:\n    def test_first(self, episode): assert 0\n"

PLAIN_CLASS = "\nclass TestA:\n    def test_other(self): assert 1\n"

LOOP = """
for n in ("p", "q"):
    @conversation(n, Agent)
    def test_loop(agent):
        assert agent.send("Hi").text
"""


@pytest.mark.parametrize("head", [HEAD, "import pytest\n"])
@pytest.mark.parametrize("second", [PLAIN_CLASS, OF_FIXTURE.replace("first", "second")])
def test_a_class_of_the_same_name_is_refused(suite, head, second):
    suite.write(head + OF_FIXTURE + second)
    refused(suite.run(), name="TestA")


def test_a_conversation_of_a_replaced_class_is_refused(suite):
    suite.write(HEAD + IN_CLASS + PLAIN_CLASS)
    refused(suite.run(), name="TestA")


def test_a_class_that_replaces_no_episode_is_collected(suite):
    base = OF_FIXTURE.replace("assert 0", "pass").replace("TestA:", "TestA(TestA):")
    suite.without_evidence().write("import pytest\n" + PLAIN_CLASS + base)
    suite.run().result.assert_outcomes(passed=2)


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


def test_a_conversation_of_a_loop_is_refused_if_a_later_one_replaces_it(suite):
    suite.write(HEAD + LOOP)
    ran = suite.run()
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    ran.result.stdout.fnmatch_lines(
        ["test_suite.py:*: the conversation 'p' is replaced by another 'test_loop'; give *"]
    )


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


def test_a_project_without_episodes_is_left_alone(suite):
    suite.write("def test_a(): assert 0\ndef test_a(): assert 1\n")
    suite.run().result.assert_outcomes(passed=1)
