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

OUTCOMES = {
    "test_holds": "passed",
    "test_fails": "failed",
    "test_check": "failed",
    "test_marked[1-of-2]": "passed",
    "test_marked[2-of-2]": "passed",
}


@pytest.fixture
def suite(suite):
    """These suites are about properties, and need no evidence."""
    return suite.without_evidence()


def test_a_property_is_one_episode_with_its_plugin_and_without(suite):
    suite.write(test_property=SUITE)
    ran = suite.run(plugins=("hypothesispytest",))
    assert ran.status == 1, ran.output
    assert len(ran.episodes) == 5
    assert ran.outcomes == OUTCOMES
    assert ran.junit["test_plain"] == "passed"
    assert "number=10" in ran.output, "the smallest example that fails"
    (failed,) = (e for e in ran.episodes if e["nodeid"].endswith("::test_fails"))
    (assertion,) = failed["assertions"]
    assert assertion["name"] == "assert number < 10"
    assert assertion["file"] == "test_property.py"
    assert suite.run("-p", "no:hypothesispytest").outcomes == OUTCOMES
