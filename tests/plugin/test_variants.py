"""`@pytest.mark.variants`: a test runs once with each value, and each run is an episode."""

from __future__ import annotations

import pytest

from tests.model_server import ModelServer

TESTS = """
import pytest

pytestmark = pytest.mark.episode(evidence="none")

@pytest.mark.variants(concise="Be brief.", detailed="Explain.")
@pytest.mark.parametrize("account", ["checking", "savings"])
def test_balance(episode, variant, account):
    with episode.turn(f"{variant} What's in {account}?") as turn:
        turn.reply("$5")
    episode.check("brief", variant == "Be brief.")

@pytest.mark.variants(**{"gpt-5 mini": 1, "gpt-5": 2})
@pytest.mark.episode(scenario_id="named", budgets={"max_turns": 1})
def test_named(episode, variant):
    for _ in range(variant):
        with episode.turn("hi") as turn:
            turn.reply("hi")

@pytest.mark.variants(a=1, b=2)
def test_without_fixture(variant):
    assert variant < 2
"""


def keys(ran):
    return sorted((e.scenario_id, e.agent, e.iteration) for e in ran.results.episodes)


def outcomes(ran):
    return {(e.scenario_id.rpartition("::")[2], e.agent): e.outcome for e in ran.results.episodes}


def test_each_variant_is_an_episode_of_the_scenario_with_its_own_verdict(suite):
    suite.write(TESTS)
    ran = suite.run()
    ran.result.assert_outcomes(passed=4, failed=4)
    assert outcomes(ran) == {
        ("test_balance[checking]", "concise"): "passed",
        ("test_balance[checking]", "detailed"): "failed",
        ("test_balance[savings]", "concise"): "passed",
        ("test_balance[savings]", "detailed"): "failed",
        ("named", "gpt-5 mini"): "passed",
        # Over its own budget, which another variant does not use.
        ("named", "gpt-5"): "passed",
        ("test_without_fixture", "a"): "passed",
        ("test_without_fixture", "b"): "failed",
    }
    over = {e.agent: len(e.violations) for e in ran.results.episodes if e.scenario_id == "named"}
    assert over == {"gpt-5 mini": 0, "gpt-5": 1}


def test_each_variant_has_all_iterations(suite):
    suite.write(TESTS)
    ran = suite.run("--aitest-iterations=2", "-k", "savings")
    scenario = "test_suite.py::test_balance[savings]"
    assert keys(ran) == [
        (scenario, agent, number) for agent in ("concise", "detailed") for number in (1, 2)
    ]
    assert "test_balance[savings-detailed-2-of-2]" in ran.episodes


def test_the_variants_of_a_scenario_run_in_one_shard(suite):
    suite.write(TESTS)
    for shard in ("1/3", "2/3", "3/3"):
        scenarios = [e.scenario_id for e in suite.run(f"--shard={shard}").results.episodes]
        assert scenarios
        assert all(scenarios.count(name) == 2 for name in scenarios)


def test_variants_stop_their_adaptive_iterations_each_for_itself(suite):
    suite.write("""
        import pytest

        @pytest.mark.variants(good=True, bad=False)
        @pytest.mark.episode(scenario_id="x", iterations="auto:2-6", min_pass_rate=1.0, evidence="none")
        def test_x(episode, variant):
            episode.check("is good", variant)
    """)
    ran = suite.run("-p", "no:randomly")
    counts = {
        agent: sum(e.agent == agent for e in ran.results.episodes) for agent in ("good", "bad")
    }
    assert counts == {"good": 6, "bad": 2}


ENGINE = """
import pytest
from dataclasses import replace
from ci_agent_eval.engine import Agent, Provider

CONCISE = Agent(Provider("openai:gpt-5-mini", base_url={url!r}), system_prompt="Be brief.")
DETAILED = replace(CONCISE, system_prompt="Explain.")

{marker}
@pytest.mark.variants(concise=CONCISE, detailed=DETAILED)
async def test_balance(aitest_run, variant{argument}):
    result = await aitest_run(variant, "What's my balance?")
    assert result.success
"""


CASE = """
@pytest.mark.parametrize("case", [pytest.param(1, marks=pytest.mark.episode(scenario_id="a"))])
"""


@pytest.mark.parametrize(("marker", "argument"), [("", ""), (CASE.strip(), ", case")])
def test_two_prompts_of_one_model_have_names_and_cassettes_of_their_own(suite, marker, argument):
    with ModelServer(["$5", "You have $5."]) as server:
        suite.write(ENGINE.format(url=server.base_url, marker=marker, argument=argument))
        recorded = suite.run("-p", "no:randomly", "--cassette=record")
    recorded.result.assert_outcomes(passed=2)
    assert [e.agent for e in recorded.results.episodes] == ["concise", "detailed"]
    assert len(list((suite.pytester.path / "cassettes").iterdir())) == 2
    replayed = suite.run("--cassette=replay")
    replayed.result.assert_outcomes(passed=2)
    assert keys(replayed) == keys(recorded)


@pytest.mark.parametrize(
    ("marker", "argument", "problem"),
    [
        ("variants(a=1)", "variant", "give two values or more by name"),
        ("variants(1, 2)", "variant", "give two values or more by name"),
        ("variants(a=1, b=2)", "episode", "the test takes no argument `variant`; give it one"),
        ("variants(**{'ä': 1, 'b': 2})", "variant", "a name must be printable ASCII text"),
        ("variants(**{' ': 1, 'b': 2})", "variant", "a name must be printable ASCII text"),
        (
            "variants(a=1, b=2)\n@pytest.mark.parametrize('variant', [1])",
            "variant",
            "`variant` has a parameter already",
        ),
        (
            "variants(a=1, b=pytest.param(2, marks=pytest.mark.episode(agent='x')))",
            "variant",
            "leave `agent` out of @pytest.mark.episode",
        ),
        ("variants(**{r'a\\b': 1, 'b': 2})", "variant", "*without a backslash (got 'a*b')"),
        (
            "variants(a=1, b=2)\n@pytest.mark.variants(c=1, d=2)",
            "variant",
            "give all variants in one marker",
        ),
        (
            "variants(a=1, b=2)\n@pytest.mark.episode(agent='x')",
            "variant",
            "leave `agent` out of @pytest.mark.episode",
        ),
    ],
)
def test_a_marker_that_cannot_be_used_is_a_collection_error(suite, marker, argument, problem):
    suite.write(f"import pytest\n@pytest.mark.{marker}\ndef test_x({argument}): pass")
    result = suite.run_in_process()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*test_suite.py::test_x: @pytest.mark.variants: {problem}*"])


def test_a_value_from_pytest_param_keeps_its_marks(suite):
    suite.write("""
        import pytest

        @pytest.mark.variants(a=1, b=pytest.param(2, marks=pytest.mark.skip(reason="no key")))
        @pytest.mark.episode(scenario_id="x", evidence="none")
        def test_x(variant):
            assert variant == 1
    """)
    assert outcomes(suite.run()) == {("x", "a"): "passed", ("x", "b"): "skipped"}


def test_variants_of_a_unittest_method_are_a_collection_error(suite):
    suite.write("""
        import pytest, unittest

        class TestDesk(unittest.TestCase):
            @pytest.mark.variants(a=1, b=2)
            @pytest.mark.episode(scenario_id="desk", evidence="none")
            def test_x(self):
                pass
    """)
    result = suite.run_in_process()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*the marker `variants` of this test is ignored*"])


def test_variants_beside_a_project_s_own_marker_episode_are_a_collection_error(suite):
    suite.pytester.makeini("[pytest]\nmarkers = episode: our own")
    suite.write("""
        import pytest

        @pytest.mark.variants(a=1, b=2)
        def test_x(episode, variant):
            pass
    """)
    result = suite.run_in_process()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*setting `markers` names one as the project's own*"])


def test_a_test_without_variant_and_episode_keeps_an_unregistered_marker(suite):
    suite.write("""
        import pytest

        @pytest.mark.variants("debug", size=3)
        def test_x(request):
            assert request.node.get_closest_marker("variants").args == ("debug",)
    """)
    suite.run_in_process().assert_outcomes(passed=1)


def test_a_project_keeps_its_own_marker_of_this_name(suite):
    suite.pytester.makeini("[pytest]\nmarkers = variants: our own")
    suite = suite.without_evidence()
    suite.write("""
        import pytest

        @pytest.mark.variants("a")
        @pytest.mark.parametrize("variant", ["x", "y"])
        def test_x(episode, variant):
            assert variant
    """)
    ran = suite.run()
    ran.result.assert_outcomes(passed=2)
    assert {e.scenario_id for e in ran.results.episodes} == {
        "test_suite.py::test_x[x]",
        "test_suite.py::test_x[y]",
    }
