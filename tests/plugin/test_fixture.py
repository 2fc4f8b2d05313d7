"""The fixtures `episode` and `episode_clock`."""

from __future__ import annotations

OWN = """
import pytest

@pytest.fixture
def episode():
    return "S01E01"

def test_series(episode):
    assert episode == "S01E01"
"""
MARKED = """
import pytest

@pytest.fixture
def episode():
    raise RuntimeError("nobody asked for it")

@pytest.mark.episode(evidence="none")
def test_marked(): pass
"""


def test_a_fixture_of_ones_own_is_not_ours(suite):
    suite.pytester.makepyfile(test_own=OWN, test_marked=MARKED)
    ran = suite.run()
    ran.result.assert_outcomes(passed=2)
    assert {name: e.outcome for name, e in ran.episodes.items()} == {"test_marked": "passed"}
    assert ran.properties["test_series"] == {}


def test_it_is_extended_asked_for_by_others_or_late_and_timed_by_the_clock(suite):
    suite.write("""
        import pytest

        @pytest.fixture
        def desk(episode):
            episode.check("ready", True)

        @pytest.mark.episode(evidence="none")
        def test_through_others(desk): pass

        def test_late(request):
            request.getfixturevalue("episode").check("late", False)

        def test_timed(episode):
            with episode.turn("Hello") as turn:
                turn.reply("Hi")
            episode.check("greets", True)

        class TestExtended:
            @pytest.fixture
            def episode(self, episode):
                episode.agent = "desk"
                return episode

            @pytest.mark.episode(evidence="none")
            def test_own(self, episode): pass
    """)
    ran = suite.run()
    ran.result.assert_outcomes(passed=3, failed=1)
    episodes = ran.episodes
    assert episodes["test_through_others"].assertions[0].name == "ready"
    assert episodes["test_late"].outcome == "failed"
    assert episodes["test_own"].agent == "desk"
    timed = episodes["test_timed"]
    assert timed.trajectory is not None
    assert (timed.trajectory.latencies_ms, timed.duration_ms) == ((100,), 300)


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
