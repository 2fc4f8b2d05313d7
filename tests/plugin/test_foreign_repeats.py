"""Plugins that run a test several times unseen are refused, by a sentence at each episode."""

from __future__ import annotations

PLUGINS = """
def pytest_addoption(parser):
    parser.addoption("--count", type=int, default=1)

def pytest_configure(config):
    config.addinivalue_line("markers", "flaky")
    for name in ("pytest-retry", "repeat"):
        config.pluginmanager.register(object(), name)
"""

SUITE = """
import pytest

@pytest.mark.flaky(retries=2)
def test_again(episode): assert episode.iteration

@pytest.mark.flaky(retries=2)
def test_plain(): pass

def test_once(episode): assert episode.iteration
"""


def test_an_episode_that_they_would_run_is_an_error(suite):
    suite = suite.without_evidence()
    suite.write(SUITE, conftest=PLUGINS)
    ran = suite.run()
    ran.result.assert_outcomes(passed=2, errors=1)
    assert "use pytest-rerunfailures, or more iterations" in ran.episodes["test_again"].reason
    ran = suite.run("--count=2")
    ran.result.assert_outcomes(passed=1, errors=2)
    assert "use the episode's iterations" in ran.episodes["test_once"].reason
