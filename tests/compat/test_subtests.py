"""Subtests of an episode: of pytest itself from 9.0 on, and of pytest-subtests before."""

from __future__ import annotations

import pytest

SUBTESTS = () if pytest.version_tuple >= (9,) else ("subtests",)


def test_subtests_are_assertions_of_the_episode(suite):
    suite = suite.without_evidence()
    suite.write(
        test_sub="""
        def test_sub(episode, subtests):
            for number in range(3):
                with subtests.test("sum", number=number):
                    assert number != 1
            episode.check("went on", True)

        def test_broken(episode, subtests):
            with subtests.test("lookup"):
                raise ConnectionError("refused")
        """
    )
    ran = suite.run(plugins=SUBTESTS)
    assert ran.outcomes == {"test_sub": "failed", "test_broken": "error"}
    (episode,) = (e for e in ran.episodes if e["outcome"] == "failed")
    found = [(a["name"], a["passed"]) for a in episode["assertions"]]
    assert found == [("sum (number=1)", False), ("went on", True)]
