"""hypothesis: a test with @given is one episode, however many examples it runs."""

from __future__ import annotations

import pytest

SUITE = """
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

quick = settings(
    max_examples=20,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

@quick
@given(number=st.integers())
def test_holds(episode, number):
    with episode.turn(str(number)) as turn:
        turn.reply("Hi")
    assert isinstance(number, int)

@quick
@given(number=st.integers())
def test_fails(episode, number):
    assert number < 10

@quick
@given(number=st.integers())
def test_check(episode, number):
    episode.check("small", number < 10)

@quick
@given(number=st.integers())
@pytest.mark.episode(scenario_id="marked", iterations=2)
def test_marked(number): pass

@quick
@given(number=st.integers())
def test_plain(number): pass
"""


@pytest.fixture
def suite(suite):
    """These suites are about properties, and need no evidence."""
    return suite.without_evidence()


def test_a_property_is_one_episode(suite):
    suite.write(test_property=SUITE)
    ran = suite.run(plugins=("hypothesispytest",))
    assert ran.status == 1, ran.output
    assert len(ran.episodes) == 5
    assert ran.outcomes == {
        "test_holds": "passed",
        "test_fails": "failed",
        "test_check": "failed",
        "test_marked[1-of-2]": "passed",
        "test_marked[2-of-2]": "passed",
    }
    assert ran.junit["test_plain"] == "passed"


def test_the_smallest_failing_example_is_in_the_output_and_the_failed_assert_in_the_episode(suite):
    suite.write(test_property=SUITE)
    ran = suite.run("-k", "test_fails", plugins=("hypothesispytest",))
    (episode,) = ran.episodes
    assert "number=10" in ran.output
    (assertion,) = episode["assertions"]
    assert assertion["name"] == "assert number < 10"
    assert assertion["file"] == "test_property.py"


def test_its_episodes_without_its_plugin_are_the_same(suite):
    suite.write(test_property=SUITE)
    having = suite.run(plugins=("hypothesispytest",))
    assert suite.run("-p", "no:hypothesispytest").outcomes == having.outcomes
