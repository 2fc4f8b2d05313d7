"""What a marker says of an evaluation."""

from __future__ import annotations


def test_what_a_marker_requires_gates(measured):
    ran = measured("""
        import pytest

        def test_unmarked(): pass

        @pytest.mark.episode(agent="a")
        def test_marked(): pass

        @pytest.mark.episode(gate="required")
        def test_gate(): pass

        @pytest.mark.episode(min_pass_rate=0.5)
        def test_rate(): pass

        @pytest.mark.episode(min_passes=1)
        def test_passes(): pass

        @pytest.mark.episode(min_passes=1, gate="advisory")
        def test_both(): pass
    """)
    assert {name: e.gate for name, e in ran.episodes.items()} == {
        "test_unmarked": "advisory",
        "test_marked": "advisory",
        "test_gate": "required",
        "test_rate": "required",
        "test_passes": "required",
        "test_both": "advisory",
    }


def test_a_marker_that_cannot_be_read_is_a_collection_error(measured):
    ran = measured("""
        import pytest

        @pytest.mark.episode(gate="maybe")
        def test_a(): pass
    """)
    ran.result.assert_outcomes(errors=1)


def test_a_project_s_own_marker_of_the_name_says_nothing_of_an_evaluation(measured, suite):
    suite.pytester.makeini("[pytest]\nmarkers = episode: of our TV series")
    ran = measured(
        """
        import pytest

        @pytest.mark.episode("pilot", season=1)
        def test_a(): assert 0
        """
    )
    ran.result.assert_outcomes(passed=1)
    (episode,) = ran.results.episodes
    assert (episode.scenario_id, episode.gate) == ("chat_eval.py::test_a", "advisory")
