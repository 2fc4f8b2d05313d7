"""Up to N episodes at once: no fewer where there are as many, and never more."""

from __future__ import annotations

import pytest

MEET = """
import pytest
from meeting import Crowd, let_others_work, meet

crowd = Crowd()

@pytest.mark.parametrize("number", range(12))
async def test_meet(episode, number):
    with crowd.among():
        await let_others_work()
        await meet({parties})
        await let_others_work()

def test_at_last():
    assert (crowd.now, crowd.most) == (0, {parties})
"""


def test_the_ini_setting_says_it_too_and_the_option_overrides_it(suite):
    suite.pytester.makeini("[pytest]\nepisode_concurrency = 3")
    suite.write(MEET.format(parties=3))
    suite.run().result.assert_outcomes(passed=13)
    suite.write(MEET.format(parties=2))
    suite.run("--episode-concurrency=2").result.assert_outcomes(passed=13)


def test_without_it_they_run_one_by_one_and_nothing_is_said_of_it(suite):
    suite.write(MEET.format(parties=1) + "\nasync def test_alone(episode, monkeypatch): pass")
    ran = suite.run()
    ran.result.assert_outcomes(passed=14)
    assert "alone" not in ran.result.stdout.str().replace("test_alone", "")


def test_a_number_that_means_nothing_is_refused_before_anything_runs(suite):
    suite.pytester.makeini("[pytest]\nepisode_concurrency = many")
    suite.write("async def test_one(episode): pass")
    for said, arguments in [
        ("--episode-concurrency", ["--episode-concurrency=0"]),
        ("episode_concurrency", []),
    ]:
        ran = suite.run(*arguments)
        assert ran.result.ret == pytest.ExitCode.USAGE_ERROR
        ran.result.stderr.fnmatch_lines([f"*{said}*"])
        assert not (ran.folder / "results.json").exists()


def test_those_that_wait_for_their_turn_do_not_pile_up(suite):
    suite.write("""
        import asyncio
        import pytest
        from meeting import let_others_work

        begun = []

        async def test_slow(episode):
            while len(begun) < 2 * 4:
                await let_others_work()
            await let_others_work(500)
            assert len(begun) == 2 * 4

        @pytest.mark.parametrize("number", range(30))
        async def test_quick(episode, number):
            begun.append(number)

        def test_order():
            assert begun == list(range(30))
    """)
    suite.run("--episode-concurrency=2").result.assert_outcomes(passed=32)


def test_workers_have_as_many_each(suite):
    suite.write("""
        import pytest
        from meeting import meet

        @pytest.mark.parametrize("number", range(80))
        async def test_meet(episode, number):
            if number < 4:
                await meet(2)
    """)
    ran = suite.run("-n2", "--dist=load", "--episode-concurrency=4")
    ran.result.assert_outcomes(passed=80)
    assert len(ran.results.episodes) == 80


def test_what_shows_each_setup_sees_them_one_by_one(suite):
    suite.write(MEET.format(parties=1).replace("== (0, 1)", "in [(0, 1), (0, 0)]"))
    for option in ("--setup-show", "--setup-only", "--setup-plan"):
        ran = suite.run(option, "--episode-concurrency=4", "-k", "test_meet")
        shown = [line for line in ran.result.outlines if line.lstrip().startswith("SETUP")]
        assert len(shown) > 12, option
        assert ran.result.ret == 0


def test_iterations_run_beside_each_other(suite):
    suite.write("""
        from meeting import meet

        async def test_meet(episode):
            await meet(4)
    """)
    ran = suite.run("--episode-concurrency=4", "--aitest-iterations=4", "-p", "no:capture")
    ran.result.assert_outcomes(passed=4)
    assert [e.iteration for e in ran.results.episodes] == [1, 2, 3, 4]
