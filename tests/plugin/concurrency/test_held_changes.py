"""Autouse fixtures with `monkeypatch`: episodes overlap while they make the same changes."""

from __future__ import annotations

HEAD = """
import os
from pathlib import Path
import pytest
from meeting import Crowd, let_others_work, meet

crowd = Crowd()

@pytest.fixture(autouse=True)
def desk(monkeypatch, request):
    name = request.node.callspec.params.get("name")
    if name is not None:
        monkeypatch.setenv("DESK", name)
        monkeypatch.setenv("PATH", "/desk", prepend=os.pathsep)
        monkeypatch.delenv("ROOM", raising=False)
        monkeypatch.chdir(Path(__file__).parent)
    with monkeypatch.context() as brief:
        brief.setenv("BRIEF", request.node.name)
    yield
    assert os.environ.get("DESK") == name
"""

CONFTEST = """
import os

def pytest_sessionfinish():
    assert "DESK" not in os.environ and "/desk" not in os.environ["PATH"]
"""


def test_the_same_changes_are_held_until_the_last_of_them_ends(suite):
    suite.write(
        f"""{HEAD}
@pytest.mark.parametrize("name", ["a"])
@pytest.mark.parametrize("number", range(4))
async def test_meet(episode, name, number):
    with crowd.among():
        await meet(4)
        await let_others_work(number)
        assert os.environ["DESK"] == "a"
        assert os.environ["PATH"].count("/desk") == 1
""",
        CONFTEST,
    )
    ran = suite.run_apart("--episode-concurrency=4")
    ran.result.assert_outcomes(passed=4)
    assert "run alone" not in ran.result.stdout.str()


def test_other_changes_wait_for_their_turn_and_count_once(suite):
    suite.write(
        f"""{HEAD}
@pytest.mark.parametrize("name", "aabbb")
async def test_named(episode, request, name):
    with crowd.among():
        await let_others_work()
        assert os.environ["DESK"] == name

@pytest.mark.parametrize("number", range(3))
async def test_plain(episode, number):
    with crowd.among():
        await meet(3, "plain")
        assert "DESK" not in os.environ
""",
        CONFTEST,
    )
    ran = suite.run_apart("--episode-concurrency=8")
    ran.result.assert_outcomes(passed=8)
    assert {episode.attempt for episode in ran.results.episodes} == {1}


def test_a_change_in_the_body_is_refused_while_others_overlap(suite):
    suite.write(
        """
import asyncio
import pytest
from meeting import meet, until

tried = asyncio.Event()

@pytest.fixture(autouse=True)
def settings(monkeypatch, request):
    request.node.change = lambda: monkeypatch.setenv("DESK", "late")

@pytest.mark.parametrize("number", range(2))
async def test_late(episode, request, number):
    await meet(2)
    if number == 0:
        return await until(tried)
    try:
        request.node.change()
    finally:
        tried.set()
"""
    )
    ran = suite.run_apart("--episode-concurrency=2")
    ran.result.assert_outcomes(passed=1, failed=1)
    ran.result.stdout.fnmatch_lines(
        ["*test_late?1?: monkeypatch.setenv changes the whole process while other episodes run;*"]
    )
