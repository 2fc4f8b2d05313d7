"""A file of scenarios becomes episodes; what is wrong with it is an error of collection."""

from __future__ import annotations

import pytest

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
