"""Iterations of a scenario: --aitest-iterations, fixed and adaptive."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.plugin.conftest import SCRIPTED_CLOCK

# `--aitest-iterations`: episodes run N times, everything else once.


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


# `iterations="auto"`: a scenario runs as often as its decision needs.


MIXED = """
import pytest

@pytest.mark.episode(iterations="auto")
async def test_always_fails(episode):
    episode.check("polite", passed=False)

@pytest.mark.episode(iterations="auto")
async def test_always_passes(episode): pass

@pytest.mark.episode(iterations="auto", min_pass_rate=0.6)
async def test_mostly_passes(episode):
    episode.check("polite", episode.iteration % 4 != 0)

@pytest.mark.episode(iterations="auto:4-9", min_pass_rate=0.9)
async def test_sometimes_passes(episode):
    episode.check("polite", episode.iteration % 4 != 0)

@pytest.mark.episode(iterations="auto", gate="advisory")
async def test_is_advisory(episode): pass

@pytest.mark.episode(iterations=2)
async def test_is_fixed(episode): pass

@pytest.mark.episode(iterations="auto")
def test_errs(episode):
    raise ConnectionError("down")

def test_is_no_episode(): pass
"""

COUNTS = {
    "test_always_fails": 3,
    "test_always_passes": 22,
    "test_mostly_passes": 11,
    "test_sometimes_passes": 9,
    "test_is_advisory": 3,
    "test_is_fixed": 2,
    "test_errs": 3,
}
CAUSES = {
    "test_errs": "not_judged",
    "test_always_fails": "below_required",
    "test_always_passes": "reaches_required",
    "test_is_advisory": "undemanding",
    "test_mostly_passes": "reaches_required",
    "test_sometimes_passes": "maximum",
}


def count_iterations(ran):
    """Return how many iterations of each test ran."""
    return Counter(name.partition("[")[0] for name in ran.episodes)


def causes(ran):
    return {s.scenario_id.rpartition("::")[2]: s.cause for s in ran.session.adaptive_stops}


def test_each_scenario_runs_until_it_is_decided(suite):
    suite.write(MIXED)
    ran = suite.run("-prandomly")
    assert count_iterations(ran) == COUNTS
    assert causes(ran) == CAUSES
    # Only the iterations that always run are selected; junit.xml has those that ran.
    assert ran.session.selected == 3 + 3 + 3 + 4 + 3 + 2 + 3
    assert len(ran.properties) == sum(COUNTS.values()) + 1
    assert ran.session.removed == ()
    found = ran.episodes["test_sometimes_passes[9-of-auto]"]
    assert (found.iteration, found.iterations, found.minimum_iterations) == (9, 9, 4)
    ran.result.stdout.fnmatch_lines(
        ["note: adaptive iterations: 6 scenarios of 3 to 60 iterations, as many as needed"]
    )


def test_a_selection_by_name_and_each_shard_decide_on_their_own_scenarios(suite):
    suite.write(MIXED)
    named = count_iterations(suite.run("-kfails or fixed"))
    assert named == {"test_always_fails": 3, "test_is_fixed": 2}
    shards = [count_iterations(suite.run(f"--shard={number}/2")) for number in (1, 2)]
    assert sum(shards, Counter()) == COUNTS


def test_neither_workers_nor_concurrency_change_a_result(suite):
    suite.write(MIXED)
    alone = suite.run()
    expected = (alone.folder / "results.json").read_bytes(), alone.session.adaptive_stops
    ran = suite.run("-n2", "--episode-concurrency=4")
    assert ((ran.folder / "results.json").read_bytes(), ran.session.adaptive_stops) == expected


def test_the_option_is_for_the_whole_suite(suite):
    suite.write("def test_one(episode):\n    assert episode.iteration != 2")
    ran = suite.run("--aitest-iterations=auto:2-7")
    assert count_iterations(ran) == {"test_one": 2}
    assert causes(ran) == {"test_one": "below_required"}


def test_fixtures_are_set_up_for_each_iteration_and_once_for_the_module(suite):
    suite.write("""
        import pytest
        made = []

        @pytest.fixture(scope="module")
        def server():
            made.append("server")
            yield
            print("made", made.count("server"), made.count("desk"))
            raise OSError("the server is stuck")

        @pytest.fixture
        def desk(server): made.append("desk")

        @pytest.mark.episode(iterations="auto:2-30")
        def test_passes(episode, desk): pass

        @pytest.mark.episode(iterations="auto:2-30")
        def test_fails(episode, desk):
            assert made.count("server") == 2
    """)
    suite.pytester.makepyfile(test_zother="def test_plain(): pass")
    ran = suite.run("-s", "-prandomly")
    assert count_iterations(ran) == {"test_passes": 22, "test_fails": 2}
    # The module's fixture ends although the last of its iterations are not needed, and its error
    # is told.
    ran.result.stdout.fnmatch_lines(["*made 1 24*"])
    ran.result.assert_outcomes(passed=23, failed=2, errors=1)


def test_a_scenario_of_several_tests_runs_in_rounds(suite):
    suite.write("""
        import pytest

        @pytest.mark.parametrize("tier", ["gold", "basic"])
        @pytest.mark.episode(scenario_id="desk", iterations="auto", min_pass_rate=0.3)
        async def test_tiers(episode, tier):
            assert tier == "gold"
    """)
    for arguments in ((), ("--episode-concurrency=3",)):
        ran = suite.run(*arguments)
        found = Counter(name.partition("-")[0] for name in ran.episodes)
        assert len(set(found.values())) == 1
        assert [(s.scenario_id, s.cause) for s in ran.session.adaptive_stops] == [
            ("desk", "reaches_required")
        ]


RERUNS = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    # What pytest-rerunfailures does, once.
    for attempt in (1, 2):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = any(report.failed for report in reports)
        for report in reports:
            if attempt == 1 and failed and report.failed:
                report.outcome = "rerun"
            item.ihook.pytest_runtest_logreport(report=report)
        if not failed:
            break
        item._initrequest()
    return True
"""


def test_a_retry_that_passes_is_a_pass(suite):
    suite.write(
        """
        import pytest
        tries = []

        @pytest.mark.episode(iterations="auto")
        async def test_flaky(episode):
            tries.append(1)
            episode.check("second time lucky", len(tries) % 2 == 0)
        """,
        conftest=SCRIPTED_CLOCK + RERUNS,
    )
    ran = suite.run()
    assert count_iterations(ran) == {"test_flaky": 22}
    assert causes(ran) == {"test_flaky": "reaches_required"}


def test_a_run_that_ends_early_is_undecided(suite):
    suite.write("""
        import pytest

        @pytest.mark.episode(iterations="auto", min_pass_rate=0.5)
        def test_one(episode):
            assert episode.iteration != 4
    """)
    ran = suite.run("-x")
    assert count_iterations(ran) == {"test_one": 4}
    assert causes(ran) == {"test_one": "unfinished"}


def test_another_worker_decides_anew_on_what_a_dead_one_left(suite):
    suite.write("""
        import os, pytest

        @pytest.mark.episode(iterations="auto")
        def test_one(episode):
            if episode.iteration == 5:
                os._exit(1)

        @pytest.mark.parametrize("number", range(6))
        def test_other(number): pass
    """)
    ran = suite.run("-n2")
    outcomes = Counter(e.outcome for e in ran.results.episodes)
    assert outcomes["error"] == 1
    assert outcomes["passed"] >= 22
    assert causes(ran) == {"test_one": "reaches_required"}
