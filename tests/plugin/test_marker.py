"""The marker `episode`: what it says, and what happens when it says nonsense."""

from __future__ import annotations

import pytest

from tests.plugin.test_option_aitest_iterations import FORMS as ITERATIONS

MARKED = """
import pytest

@pytest.mark.episode(
    scenario_id="refund", budgets={"max_turns": 5, "latency_ms": {"p95": None, "limit": 9}},
    gate="advisory", min_pass_rate=0.5, agent="desk", model="m-1", metadata={"tier": 1},
)
def test_all(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi", latency_ms=3)

@pytest.mark.episode("by position", was="old")
def test_position(): pass

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.episode)])
def test_bare(n): pass

@pytest.mark.episode("listed", was=["old"])
def test_listed(): pass

@pytest.mark.episode(budgets={"tool_calls": 3}, evidence="none")
def test_unmeasured(): pass

@pytest.mark.episode(agent="desk", budgets={"custom": {"emails": {"limit": 1, "used": 1}}})
class TestDesk:
    pytestmark = pytest.mark.episode(budgets={"max_turns": 9}, gate="advisory")

    @pytest.mark.parametrize("tier", ["gold", "basic"])
    def test_tiers(self, episode, tier): pass

    @pytest.mark.episode(gate="required", budgets={"max_turns": 5})
    def test_nearest(self, episode):
        with episode.turn("Hello"): pass

class Desk: pass

@pytest.mark.episode("shared")
@pytest.mark.parametrize("tier", ["gold"])
@pytest.mark.parametrize("case", [{"ask": "a"}, Desk(), pytest.param([1], id="named")])
def test_shared(case, tier): pass

@pytest.mark.parametrize("case", [{"ask": "a"}])
def test_own(episode, case): pass

@pytest.mark.episode("cases", iterations=2, min_passes=4, evidence="none")
@pytest.mark.parametrize("case", [1, 2])
def test_case(case): pass

@pytest.mark.episode("group", iterations=2, min_passes=4, evidence="none")
class TestGroup:
    def test_two(self): pass
    def test_three(self): pass
"""


def test_it_describes_the_episode(suite):
    suite.write(MARKED)
    ran = suite.run("--strict-markers")
    episodes = ran.episodes
    assert len(episodes) == 20
    episode = episodes["test_all"]
    assert (episode.scenario_id, episode.nodeid) == ("refund", "test_suite.py::test_all")
    assert (episode.gate, episode.min_pass_rate) == ("advisory", 0.5)
    assert (episode.agent, episode.model, episode.metadata) == ("desk", "m-1", {"tier": 1})
    assert {name: budget.used for name, budget in episode.budgets.iter_named()} == {
        "max_turns": 1,
        "latency_ms": 3,
    }
    position = episodes["test_position"]
    assert (position.scenario_id, position.was) == ("by position", ("old",))
    assert episodes["test_listed"].was == ("old",)
    assert (episodes["test_bare[2]"].duration_ms, "test_bare[1]" in episodes) == (100, False)
    tiers = episodes["test_tiers[gold]"]
    assert tiers.scenario_id == "test_suite.py::TestDesk::test_tiers[gold]"
    # Markers of the class and the test are read together.
    nearest = episodes["test_nearest"]
    assert (nearest.agent, tiers.gate, nearest.gate) == ("desk", "advisory", "required")
    assert {n: b.limit for n, b in nearest.budgets.iter_named()} == {"max_turns": 5, "emails": 1}
    # A hard budget that nothing measured is not kept.
    ran.result.stdout.fnmatch_lines(
        [
            "episode 'test_suite.py::test_unmeasured': budget tool_calls: not measured, limit 3 (hard)"
        ]
    )
    # Cases of one scenario are known by their ids or values.
    shared = {
        e.case for name, e in episodes.items() if name.startswith(("test_shared", "test_own"))
    }
    assert shared == {"[case={'ask': 'a'}-gold]", "[case1-gold]", "[named-gold]", None}
    # Iterations of several tests may reach what those of one cannot.
    counts = [e.outcome for e in ran.results.episodes if e.scenario_id in {"cases", "group"}]
    assert counts == ["passed"] * 8


NONSENSE = [
    ("scenaro_id='x'", "unknown key 'scenaro_id'; did you mean 'scenario_id'?"),
    ("budgets={'tool_cals': 4}", "unknown key 'tool_cals'; did you mean 'tool_calls'?"),
    ("budgets={'tool_calls': -1}", "budgets.tool_calls.limit: *greater than or equal to 0*"),
    ("budgets={'tool_calls': float('nan')}", "budgets.tool_calls.limit: *finite number*"),
    ("budgets=7", "budgets: *"),
    ("gate='blocking'", "gate: *'required' or 'advisory'*"),
    ("min_pass_rate=2", "min_pass_rate: *"),
    ("min_pass_rate='0'", "min_pass_rate: *number*"),
    ("min_pass_rate=False", "min_pass_rate: *not true or false*"),
    ("min_pass_rate=True", "min_pass_rate: *not true or false*"),
    ("min_passes=True", "min_passes: *integer*"),
    ("iterations=3, min_passes=9", "min_passes 9 of 3 iterations can never be reached"),
    ("'a', iterations=1, min_passes=2", "min_passes 2 of 1 iterations can never be reached"),
    ("scenario_id=''", "scenario_id: *"),
    ("'a', 'b'", "give everything after `scenario_id` by name"),
    ("'a', scenario_id='b'", "`scenario_id` is given twice: without a name, and by it; *"),
    ("5", "scenario_id: the argument without a name must be a text (got 5)"),
    ("['a']", "scenario_id: the argument without a name must be a text (got ['a'])"),
    ("None", "scenario_id: the argument without a name must be a text (got None)"),
    ("' '", "scenario_id: the argument without a name must be a text (got ' ')"),
    ("'refund', was=[7]", "episode: was.0: *string (got 7)"),
    *(
        (f"iterations={given}", f"iterations: must be {ITERATIONS} (got {given})")
        for given in ("0", "True", "'3'", "2.0")
    ),
    ("evidence=False", "evidence: Input should be 'required' or 'none'*"),
    *((f"alone={given}", "alone: *") for given in ("'no'", "1", "[]")),
    ("iterations='auto', min_passes=2", "min_passes needs a fixed number of iterations; give *"),
    ("gates='required'", "unknown key 'gates'; did you mean 'gate'?"),
]


def test_nonsense_is_a_collection_error_that_names_test_and_key(suite):
    files = {
        f"test_{number}": f"import pytest\n\n@pytest.mark.episode({given})\ndef test_one(): pass\n"
        for number, (given, _) in enumerate(NONSENSE)
    }
    suite.pytester.makepyfile(**files)
    ran = suite.run()
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    errors = {error.nodeid: error.message for error in ran.session.collection_errors}
    for number, (_, sentence) in enumerate(NONSENSE):
        start = f"test_{number}.py::test_one: @pytest.mark.episode: "
        assert errors[f"test_{number}.py"].startswith(start)
        ran.result.stdout.fnmatch_lines([f"*{start}*{sentence.replace('[', '[[]')}*"])


def test_nonsense_that_comes_after_collection_is_an_error_of_the_test(suite):
    suite.write(
        "def test_one(episode): pass",
        conftest="""
            import pytest

            def pytest_collection_modifyitems(items):
                items[0].add_marker(pytest.mark.episode(gates="required"))
        """,
    )
    ran = suite.run()
    ran.result.assert_outcomes(errors=1)
    episode = ran.episodes["test_one"]
    assert episode.outcome == "error"
    assert "unknown key 'gates'" in (episode.reason or "")


def test_a_project_with_a_marker_of_this_name_keeps_it(suite, pytester):
    pytester.makeini("[pytest]\nmarkers =\n    episode(number): which episode of the series\n")
    suite.write("""
        import pytest

        @pytest.mark.episode(3, title="The One")
        def test_series(): pass
    """)
    ran = suite.run("--strict-markers")
    ran.result.assert_outcomes(passed=1)
    assert ran.results.episodes == ()


def test_an_episode_with_the_project_s_own_marker_is_told_that_it_is_ignored(suite, pytester):
    pytester.makeini("[pytest]\nmarkers =\n    episode: one of our episodes\n")
    suite.write("""
        import pytest

        @pytest.mark.episode("greeting", gate="advisory")
        def test_one(episode):
            with episode.turn("Hello") as turn: turn.reply("Hi")
            assert turn
    """)
    ran = suite.run()
    ran.result.stdout.fnmatch_lines(
        ["note: the marker `episode` of test_suite.py::test_one is ignored, for *; take it out *"]
    )
    (episode,) = ran.results.episodes
    assert (episode.scenario_id, episode.gate) == ("test_suite.py::test_one", "required")
