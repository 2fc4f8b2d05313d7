"""`iterations="auto"`: a scenario runs as often as its decision needs."""

from __future__ import annotations

from collections import Counter

from tests.plugin.conftest import SCRIPTED_CLOCK

NEEDS_EVIDENCE = False

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
