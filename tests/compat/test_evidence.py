"""Asserts that pass are counted by code that pytest writes for its own hook, on every pytest."""

from __future__ import annotations

import pytest

SUITE = """
import pytest
from helpers import greets

def talk(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    return "Hi"

def test_assert(episode): assert talk(episode) == "Hi"
def test_helper(episode): greets(talk(episode))
def test_fixture_s_function(episode, says_hi): says_hi(talk(episode))

def test_expected(episode):
    talk(episode)
    with pytest.raises(ValueError):
        int("x")

async def test_async(episode):
    assert talk(episode)

@pytest.mark.parametrize("reply", ["Hi"])
class TestDesk:
    @staticmethod
    def test_static(episode, reply): assert talk(episode) == reply

    def test_nested(self, episode, reply):
        def inner():
            assert talk(episode) == reply
        inner()

def test_forgotten(episode): talk(episode) == "Bye"
"""
CONFTEST = """
import pytest

@pytest.fixture
def says_hi():
    def says(reply):
        assert reply == "Hi"
    return says
"""


@pytest.mark.parametrize("settings", [{}, {"enable_assertion_pass_hook": "true"}], ids=str)
@pytest.mark.parametrize("options", [(), ("-n2",)], ids=str)
def test_every_assert_that_passed_is_evidence(suite, options, settings):
    suite.configure(episode_assert_modules="helpers", **settings)
    suite.write(test_suite=SUITE, conftest=CONFTEST, helpers="def greets(reply): assert reply\n")
    for _ in ("rewritten", "read from the cache"):
        ran = suite.run(*options, plugins=("xdist",))
        errors = [name for name, outcome in ran.outcomes.items() if outcome != "passed"]
        assert errors == ["test_forgotten"], ran.output
        assert len(ran.outcomes) == 8
