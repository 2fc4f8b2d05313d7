"""The fixtures `episode` and `episode_clock`."""

from __future__ import annotations


def test_a_fixture_of_ones_own_is_not_ours(suite):
    suite.write(
        """
        def test_series(episode):
            assert episode == "S01E01"
        """,
        conftest="""
            import pytest

            @pytest.fixture
            def episode():
                return "S01E01"
        """,
    )
    ran = suite.run()
    ran.result.assert_outcomes(passed=1)
    assert ran.results.episodes == ()
    assert ran.properties == {"test_series": {}}


def test_a_fixture_of_ones_own_beside_our_marker(suite):
    suite.write(
        """
        import pytest

        @pytest.mark.episode(evidence="none")
        def test_series(): pass
        """,
        conftest="""
            import pytest

            @pytest.fixture
            def episode():
                raise RuntimeError("nobody asked for it")
        """,
    )
    ran = suite.run()
    ran.result.assert_outcomes(passed=1)
    assert ran.episodes["test_series"].outcome == "passed"


def test_a_fixture_that_extends_ours_is_ours(suite):
    suite.write(
        "def test_one(episode): pass",
        conftest="""
            import pytest

            @pytest.fixture
            def episode(episode):
                episode.agent = "desk"
                return episode
        """,
    )
    assert suite.run().episodes["test_one"].agent == "desk"


def test_it_reaches_through_other_fixtures(suite):
    suite.write(
        "def test_one(desk): pass",
        conftest="""
            import pytest

            @pytest.fixture
            def desk(episode):
                episode.check("ready", True)
        """,
    )
    assert suite.run().episodes["test_one"].assertions[0].name == "ready"


def test_it_can_be_asked_for_late(suite):
    suite.write("""
        def test_one(request):
            request.getfixturevalue("episode").check("late", False)
    """)
    ran = suite.run()
    ran.result.assert_outcomes(failed=1)
    assert ran.episodes["test_one"].outcome == "failed"


def test_a_scripted_clock_times_turns_and_episode(suite):
    suite.write("""
        def test_one(episode):
            with episode.turn("Hello") as turn:
                turn.reply("Hi")
    """)
    episode = suite.run().episodes["test_one"]
    assert episode.trajectory is not None
    assert episode.trajectory.latencies_ms == (100,)
    assert episode.duration_ms == 300


def test_a_check_stands_where_the_test_made_it(suite, pytester):
    pytester.mkdir(".git")
    folder = pytester.mkdir("evals")
    folder.joinpath("pytest.ini").write_text("[pytest]\n")
    folder.joinpath("test_deep.py").write_text(
        "def expect(episode):\n    episode.check('a', True)\n\ndef test_one(episode):\n    expect(episode)\n"
    )
    ran = suite.run("--rootdir=evals", "evals")
    episode = ran.episodes["test_one"]
    # Relative to the repository, which is what an annotation on a pull request needs.
    assert episode.nodeid == "test_deep.py::test_one"
    assert (episode.file, episode.line) == ("evals/test_deep.py", 4)
    assert (episode.assertions[0].file, episode.assertions[0].line) == ("evals/test_deep.py", 2)
