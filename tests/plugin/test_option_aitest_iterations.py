"""`--aitest-iterations`: episodes run N times, everything else once."""

from __future__ import annotations

import pytest

NEEDS_EVIDENCE = False

SUITE = """
import pytest

def test_plain(): pass

def test_one(episode): pass

@pytest.mark.episode(scenario_id="desk", agent="a")
@pytest.mark.parametrize("tier", ["gold", "basic"])
def test_tiers(tier): pass
"""


def ids(ran):
    return [
        (e.scenario_id, e.nodeid.rpartition("::")[2], e.iteration) for e in ran.results.episodes
    ]


def test_only_episodes_are_repeated_and_each_is_an_item(suite):
    suite.write(SUITE)
    ran = suite.run("-n2", "--aitest-iterations=2", "-W", "error")
    ran.result.assert_outcomes(passed=7)
    assert ran.session.selected == 6
    assert ids(ran) == [
        ("desk", "test_tiers[basic-1-of-2]", 1),
        ("desk", "test_tiers[basic-2-of-2]", 2),
        ("desk", "test_tiers[gold-1-of-2]", 1),
        ("desk", "test_tiers[gold-2-of-2]", 2),
        ("test_suite.py::test_one", "test_one[1-of-2]", 1),
        ("test_suite.py::test_one", "test_one[2-of-2]", 2),
    ]
    assert ran.properties["test_one[2-of-2]"]["agent_eval.nodeid"].endswith("test_one[2-of-2]")


def test_the_ini_setting_is_read_the_option_wins_and_once_is_as_ever(suite, pytester):
    pytester.makeini("[pytest]\naitest_iterations = 3\n")
    suite.write(SUITE)
    assert len(suite.run().results.episodes) == 9
    names = sorted(suite.run("--aitest-iterations=1").episodes)
    assert names == ["test_one", "test_tiers[basic]", "test_tiers[gold]"]


PARAMETERS = """
import pytest

def pytest_generate_tests(metafunc):
    if "by_hook" in metafunc.fixturenames:
        metafunc.parametrize("by_hook", ["gold", "basic"])

@pytest.mark.parametrize("tier", ["gold", "1-of-2"])
def test_tiers(episode, tier): pass

def test_hook(episode, by_hook): pass

@pytest.mark.parametrize("iteration", [7])
@pytest.mark.parametrize("_aitest_iteration", [7])
@pytest.mark.parametrize("number", [7])
def test_names(episode, iteration, _aitest_iteration, number):
    assert iteration == _aitest_iteration == number == 7

@pytest.fixture
def desk(request):
    return request.param.upper()

@pytest.fixture(params=["gold", "basic"])
def tier_of_fixture(request):
    return request.param

@pytest.fixture(params=["m", "n"], scope="module")
def of_module(request):
    return request.param

class TestDesk:
    @pytest.mark.parametrize("desk", ["x", "y"], indirect=True)
    async def test_all(self, episode, desk, tier_of_fixture, of_module):
        episode.check(f"{desk} {tier_of_fixture} {of_module} {episode.iteration}", True)
"""


def test_parameters_of_the_user_stay_in_scenario_and_name(suite):
    suite.write(PARAMETERS)
    ran = suite.run("--aitest-iterations=2", "-W", "error")
    ran.result.assert_outcomes(passed=26)
    assert {e.scenario_id.partition("::")[2] for e in ran.results.episodes} > {
        *("test_tiers[gold]", "test_tiers[1-of-2]", "test_hook[gold]", "test_hook[basic]"),
        "test_names[7-7-7]",
    }
    assert {"test_hook[basic-1-of-2]", "test_hook[gold-2-of-2]"} < set(ran.episodes)
    assert {e.assertions[0].name for e in ran.results.episodes if e.assertions} == {
        f"{desk} {tier} {of} {n}"
        for desk in "XY" for tier in ("gold", "basic") for of in "mn" for n in (1, 2)
    }  # fmt: skip


@pytest.mark.skipif(pytest.version_tuple < (9, 2), reason="a setting of numbers and strings")
def test_settings_are_numbers_in_native_toml(suite, pytester):
    numbers = (
        "aitest_iterations = 3\nepisode_concurrency = 2\ntotal_cost_usd = 0.5\ntotal_tokens = 9\n"
    )
    pytester.path.joinpath("pytest.toml").write_text(f"[pytest]\n{numbers}")
    suite.write("def test_one(episode): pass")
    assert len(suite.run().results.episodes) == 3


def test_the_marker_wins_and_the_nearest_one_of_them(suite):
    suite.write("""
        import pytest

        @pytest.mark.episode(iterations=1)
        def test_once(): pass

        @pytest.mark.episode(iterations=3)
        class TestDesk:
            @pytest.mark.episode(iterations=2)
            def test_twice(self, episode): pass
            def test_thrice(self): pass
            @pytest.mark.episode(agent="a")
            def test_thrice_too(self): pass

        @pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.episode(iterations=2))])
        def test_hard(n): pass

        @pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.episode)])
        def test_other(n): pass
    """)
    ran = suite.run("--aitest-iterations=4")
    counts = {}
    for name in ran.episodes:
        counts.setdefault(name.partition("[")[0], []).append(name)
    assert {name: len(found) for name, found in counts.items()} == {
        "test_once": 1, "test_twice": 2, "test_thrice": 3, "test_thrice_too": 3,
        "test_hard": 2, "test_other": 4,
    }  # fmt: skip
    ran.result.assert_outcomes(passed=17)


def test_an_iteration_can_be_selected_and_run_again(suite):
    suite.write("""
        def test_one(episode):
            episode.check("not the second", episode.iteration != 2)
    """)
    assert sorted(suite.run("--aitest-iterations=3", "-k", "3-of-3").episodes) == [
        "test_one[3-of-3]"
    ]
    suite.run("--aitest-iterations=3")
    ran = suite.run("--aitest-iterations=3", "--lf")
    assert sorted(ran.episodes) == ["test_one[2-of-3]"]
    assert ran.results.episodes[0].scenario_id == "test_suite.py::test_one"


FORMS = 'a whole number, 1 or more, "auto" (3 to 60 as needed), or a range such as "auto:5-40"'


def test_what_is_no_number_is_a_usage_error(suite, pytester):
    suite.write(SUITE)
    for given in ("0", "1.5", "²", "auto:5", "auto:0-9"):
        ran = suite.run(f"--aitest-iterations={given}")
        assert ran.result.ret == pytest.ExitCode.USAGE_ERROR, given
        said = f"must be {FORMS} (got '{given}')"
        assert f"argument --aitest-iterations: {said}" in ran.result.stderr.str()
    pytester.makeini("[pytest]\naitest_iterations = auto:0-9\n")
    ran = suite.run()
    assert ran.result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ini setting aitest_iterations: {said}" in ran.result.stderr.str()


def test_the_summary_counts_what_repeats(suite):
    suite.write("""
        import pytest

        @pytest.mark.episode(scenario_id="desk", agent="a", budgets={"max_turns": 0})
        def test_one(episode):
            episode.check("polite", episode.iteration != 2)
            with episode.turn("Hello") as turn:
                turn.reply("Hi")
    """)
    ran = suite.run("--aitest-iterations=3")
    ran.result.stdout.fnmatch_lines([
        "FAILED desk (agent a): polite (test_suite.py:5) [[]1 of 3 iterations[]]",
        "BUDGET desk (agent a): max_turns: 1, limit 0 (hard) [[]3 of 3 iterations[]]",
        "3 episodes: 1 failed, 2 over a hard budget; 3 budget violations",
    ])  # fmt: skip


NOTED = """
import unittest
import pytest

class TestOld(unittest.TestCase):
    @pytest.mark.episode
    def test_method(self): pass

@pytest.mark.episode(scenario_id="seldom", min_passes=5)
def test_seldom(): pass
"""

NOTES = [
    "note: run once, not repeated: test_suite.py::TestOld::test_method; pytest repeats neither methods of unittest.TestCase nor what is marked after collection",
]


def test_what_cannot_be_shown_is_said_at_collection_and_fails_nothing(suite):
    suite.write(NOTED)
    ran = suite.run("--aitest-iterations=5", "-W", "error")
    ran.result.assert_outcomes(passed=6)
    notes = [line for line in ran.result.outlines if line.startswith("note: ")]
    assert notes == NOTES
    assert ran.result.outlines.index(notes[0]) < 10, "it stands below the count of items"


def test_a_note_keeps_a_secret(suite, monkeypatch):
    monkeypatch.setenv("DESK_API_KEY", "hunter2-hunter2")
    suite.pytester.makeini("[pytest]\nmarkers = episode: our own")
    suite.write("""
        import pytest

        @pytest.mark.episode
        @pytest.mark.parametrize("key", ["hunter2-hunter2"])
        def test_one(episode, key): pass
    """)
    (note,) = [line for line in suite.run().result.outlines if line.startswith("note: ")]
    assert "test_one[" in note
    assert "hunter2" not in note
