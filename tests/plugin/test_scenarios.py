"""Scenarios from files, and sessions of several tests."""

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

# A file of scenarios becomes episodes; what is wrong with it is an error of collection.


APP = """
import pytest
from ci_agent_eval import scenarios

def desk(message, *, thread_id):
    return {"1001": "Shall I refund the kettle?", "yes": "Done."}.get(message, "Which order?")
"""

TEST = (
    APP
    + """
@scenarios("desk.yaml")
def test_desk(scenario):
    scenario.run(desk)
"""
)
OTHERS = """
class TestDesk:
    @scenarios("desk.yaml")
    @pytest.mark.parametrize("tier", ["gold", "basic"])
    async def test_tier(self, scenario, tier):
        assert (await scenario.run(desk)).tags == ()

def test_no_episode():
    from pathlib import Path
    from ci_agent_eval.authoring.scenarios.load import load_scenarios

    (scenario, _) = load_scenarios(Path("desk.yaml"))
    with pytest.raises(Exception, match="scenario 'refund': it runs in an episode only"):
        scenario.run(lambda message: "hi")
"""

DESK = """
defaults:
  persona: a customer
scenarios:
  - id: refund
    goal: {text: the money back, reply_matches: "^done"}
    script: [hello, "1001", "yes"]
    budgets: {max_turns: 3}
    checks:
      required_text: [kettle]
      forbidden_tools: [delete_account]
    metadata: {team: desk}
  - id: chat
    fixed_responses: [hello]
    max_turns: 2
    gate: advisory
    min_pass_rate: 0.5
"""


@pytest.fixture
def write(suite):
    """Write tests and the files of scenarios beside them."""

    def write(tests=TEST, **files):
        suite.write(tests)
        for name, text in files.items():
            stem, _, suffix = name.rpartition("_")
            (suite.pytester.path / f"{stem}.{suffix}").write_text(text)

    return write


def test_each_scenario_is_an_episode_of_its_own(suite, write):
    write(TEST + OTHERS, desk_yaml=DESK)
    ran = suite.run("-W", "error")
    ran.result.assert_outcomes(passed=7)
    assert {"test_tier[chat-gold]", "test_tier[chat-basic]"} < set(ran.episodes)
    refund, chat = ran.episodes["test_desk[refund]"], ran.episodes["test_desk[chat]"]
    assert (refund.scenario_id, chat.scenario_id) == ("refund", "chat")
    assert refund.budgets.max_turns.used == refund.budgets.max_turns.limit == 3
    assert refund.metadata["team"] == "desk"
    assert refund.metadata["scenario"] == "desk.yaml:5"
    assert refund.metadata["simulations"][0]["stop_reason"] == "goal_reached"
    assert (chat.gate, chat.min_pass_rate) == ("advisory", 0.5)
    assert chat.trajectory_summary.steps_count == 2
    names = [(a.name, a.passed, a.file, a.line) for a in refund.assertions]
    assert names == [
        ("reaches the user's goal", True, "desk.yaml", 5),
        ("never calls delete_account", True, "desk.yaml", 5),
        ("says 'kettle'", True, "desk.yaml", 5),
    ]


def test_what_does_not_hold_fails_the_test_at_the_scenario_s_line(suite, write):
    write(
        desk_yaml="""
- id: refund
  goal: {tool_called: issue_refund}
  script: [hello, {"order": "1001"}, {"which": "yes"}]
  checks: {required_tools: [lookup_order], forbidden_text: [kettle]}
"""
    )
    ran = suite.run()
    ran.result.assert_outcomes(failed=1)
    (episode,) = ran.results.episodes
    assert episode.outcome == "failed"
    failed = {a.name: a.reason for a in episode.failed_assertions}
    assert failed["reaches the user's goal"] == (
        "the conversation ended (off_script) without tool_called 'issue_refund'"
    )
    assert failed["stays on the script"] == "entry 3 of the script answers 'which' only"
    assert set(failed) == {
        "reaches the user's goal",
        "stays on the script",
        "calls lookup_order",
        "never says 'kettle'",
    }
    ran.result.stdout.fnmatch_lines(["*desk.yaml:2: calls lookup_order: never called*"])


def test_several_files_beside_and_above_are_repeated_as_they_ask(suite, write):
    write(
        APP
        + """
@scenarios("data/one.csv", "two.json")
def test_desk(scenario):
    scenario.run(desk)
""",
        two_json='[{"id": "b", "fixed_responses": ["hi"], "iterations": 3}]',
    )
    (suite.pytester.path / "data").mkdir()
    (suite.pytester.path / "data/one.csv").write_text("id,script\na,hello|1001\n")
    ran = suite.run()
    assert sorted((e.scenario_id, e.iteration) for e in ran.results.episodes) == [
        ("a", 1),
        ("b", 1),
        ("b", 2),
        ("b", 3),
    ]
    assert ran.episodes["test_desk[a]"].metadata["scenario"] == "data/one.csv:2"


def test_a_broken_file_is_an_error_of_collection(suite, write):
    cases = {
        "- id: a\n  fixed_responses: [hi]\n  persna: x\n- id: b": [
            "0.yaml:3: unknown key 'persna'; did you mean 'persona'?",
            "0.yaml:4: its user has nothing to say; give fixed_responses, script or model",
        ],
        "- id: [": ["1.yaml:1: is not YAML: *"],
        "": ["2.yaml:1: is empty; write a list of scenarios*"],
    }
    for number, text in enumerate(cases):
        (suite.pytester.path / f"{number}.yaml").write_text(text)
        tests = TEST.replace("desk.yaml", f"{number}.yaml")
        suite.pytester.makepyfile(**{f"test_{number}": tests})
    ran = suite.run()
    ran.result.assert_outcomes(errors=len(cases))
    for said in cases.values():
        ran.result.stdout.fnmatch_lines(said)
    ran.result.stdout.no_fnmatch_line("*Traceback*")
    errors = {error.nodeid: error.message for error in ran.session.collection_errors}
    for number, _ in enumerate(cases):
        assert errors[f"test_{number}.py"].startswith(f"{number}.yaml:")


def test_a_decorator_that_cannot_be_followed_is_an_error_of_collection(suite):
    for name in ("a.json", "b.json"):
        (suite.pytester.path / name).write_text('[{"id": "a", "fixed_responses": ["hi"]}]')
    suite.pytester.makepyfile(
        test_0=TEST,
        test_1=APP + '@scenarios("a.json")\ndef test_desk(): pass',
        test_2=APP + '@scenarios("a.json", "b.json")\ndef test_desk(scenario): pass',
    )
    result = suite.run().result
    result.assert_outcomes(errors=3)
    result.stdout.fnmatch_lines(
        [
            "desk.yaml: cannot be read (No such file or directory); write its path relative*",
            "*test_desk: @scenarios: the test takes no argument `scenario`; give it one",
            "b.json:1: id 'a' is already used in a.json:1; give it another one",
        ]
    )


def test_a_test_that_never_runs_its_scenario_does_not_pass_its_checks(suite, write):
    write(
        APP + '@scenarios("desk.yaml")\ndef test_desk(scenario): pass',
        desk_yaml=DESK.replace("max_turns: 3", "token_usage: 3"),
    )
    ran = suite.run()
    # The other scenario has nothing to check.
    ran.result.assert_outcomes(passed=1, failed=1)
    ran.result.stdout.fnmatch_lines(["*the test never called `scenario.run(app)`*"])


# `@pytest.mark.session`: the runs of several tests are one conversation.


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
