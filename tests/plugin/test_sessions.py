"""`@pytest.mark.session`: the runs of several tests are one conversation."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.trajectory import Trajectory
from ci_agent_eval.engine.result import AgentResult
from ci_agent_eval.pytest_plugin.collection.shared_conversations import (
    ConversationMember,
    SharedConversation,
)
from tests.model_server import ModelServer
from tests.model_server.script import Step

HEAD = """
import pytest
from ci_agent_eval.engine import Agent, Provider

plain = Agent(Provider("openai:gpt-5-mini", base_url={url!r}))
"""
SUITE = """

def users(result):
    return [part.content for message in result.messages for part in message.parts
            if part.part_kind == "user-prompt"]

@pytest.mark.session("chat")
class TestChat:
    async def test_first(self, aitest_run):
        result = await aitest_run(plain, "first")
        assert users(result) == ["first"]
        assert [turn.content for turn in result.turns] == ["first", "one"]

    def test_without_an_agent(self, episode):
        with episode.turn("hi") as turn:
            turn.reply("hi")

    async def test_second(self, aitest_run):
        result = await aitest_run(plain, "second")
        assert users(result) == ["first", "second"]
        result = await aitest_run(plain, "third")
        assert users(result) == ["first", "second", "third"]
        own = await aitest_run(plain, "alone", messages=[])
        assert users(own) == ["alone"]

async def test_other(aitest_run):
    assert users(await aitest_run(plain, "first")) == ["first"]
"""


@pytest.fixture
def sessions(pytester, suite):
    """Run a suite against a model that counts its answers; returns the outcomes and episodes."""

    def run(source, *arguments, script=("one", "two", "three", "four")):
        with ModelServer(list(script)) as server:
            pytester.makepyfile(test_chat=HEAD.format(url=server.base_url) + source)
            ran = suite.without_evidence().run(*arguments)
        return ran.result, ran.results.episodes

    return run


def test_each_iteration_has_a_conversation(sessions):
    result, _ = sessions(SUITE, "--aitest-iterations=2")
    result.assert_outcomes(passed=8)


def test_concurrent_episodes_wait_for_a_session(sessions):
    result, _ = sessions(SUITE, "--episode-concurrency=4")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*its session continues in the order of its tests*"])


def test_a_test_without_those_before_it_is_an_error(sessions):
    result, (episode,) = sessions(SUITE, "-k", "test_second")
    result.assert_outcomes(failed=1, deselected=3)
    assert episode.outcome == "error"
    assert (
        "session 'chat': test_chat.py::TestChat::test_first comes before this test and did not run"
    ) in episode.reason


PARAMETERS = """
pytestmark = [pytest.mark.session("flow"), pytest.mark.parametrize("name", ["a", "b"])]

async def test_browse(aitest_run, name):
    await aitest_run(plain, f"browse {name}")

async def test_select(aitest_run, name):
    result = await aitest_run(plain, "select")
    assert f"browse {name}" in str(result.messages)
    assert str(result.messages).count("browse") == 1
"""


def test_each_case_of_a_parametrized_module_has_a_conversation(sessions):
    result, _ = sessions(PARAMETERS)
    result.assert_outcomes(passed=4)


STOPPED = """
pytestmark = pytest.mark.session("down")

async def test_first(aitest_run):
    await aitest_run(plain, "first")

async def test_second(aitest_run):
    await aitest_run(plain, "second")
"""


def test_a_conversation_does_not_continue_after_a_run_that_did_not_finish(sessions):
    result, episodes = sessions(STOPPED, script=[Step(status=500)])
    result.assert_outcomes(failed=2)
    assert [episode.outcome for episode in episodes] == ["error", "error"]
    assert "the run in test_chat.py::test_first ended with model_error" in episodes[1].reason


def test_a_retry_begins_where_its_test_began():
    conversation = SharedConversation("chat", ["first", "second"])
    first, second = (ConversationMember(conversation, test) for test in conversation.tests)
    for member, messages in ((first, ["1"]), (second, ["1", "2"])):
        conversation.begin_test(member.test)
        member.add_result(AgentResult(Trajectory(), "completed", messages=messages))
    assert second.get_messages() == ["1", "2"]
    conversation.begin_test("second")
    assert second.get_messages() == ["1"]


def test_a_session_needs_a_name(pytester):
    pytester.makepyfile(
        """
import pytest

@pytest.mark.session
async def test_it(aitest_run): pass

@pytest.mark.session
def test_of_a_project_with_this_marker(): pass
"""
    )
    result = pytester.runpytest_inprocess()
    result.stderr.fnmatch_lines(["ERROR: *::test_it: @pytest.mark.session needs the name*"])


def test_the_tests_of_a_session_stay_in_one_shard(pytester, suite):
    suite.without_evidence()
    pytester.makepyfile(
        "import pytest\npytestmark = pytest.mark.session('one')\n"
        + "".join(f"async def test_{n}(aitest_run): await aitest_run(str, 'x')\n" for n in range(6))
    )
    counts = [
        suite.run_in_process(f"--shard={shard}").parseoutcomes().get("passed", 0)
        for shard in ("1/2", "2/2")
    ]
    assert sorted(counts) == [0, 6]
