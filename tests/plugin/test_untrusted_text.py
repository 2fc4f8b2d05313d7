"""What an agent says controls neither the terminal nor the log of GitHub Actions."""

from __future__ import annotations

import re

import pytest

SUITE = r"""
import pytest
from ci_agent_eval import check

TEXT = (
    "A\x1b[2J\x1b]0;title\x07B\x1b[8mC\n::error::one\n  ::error::two\rD\u202eE\x9b2J"
    " ##[error]three" + " ::error::four" * 20
)

@pytest.fixture(autouse=True)
def answer(episode):
    with episode.turn("Hello") as turn:
        turn.reply(TEXT)

def test_one_check(episode):
    episode.check("polite", False, f"the answer is {TEXT}")

def test_two_checks(episode):
    episode.check(f"says {TEXT}", False)
    episode.check("short", False, TEXT)

def test_strict_check(episode):
    check(False, TEXT)

def test_assert(episode):
    assert not TEXT, TEXT

def test_text_diff(episode):
    assert TEXT == TEXT.replace("A", "B")

def test_error(episode):
    raise ConnectionError(TEXT)

def test_skip(episode):
    pytest.skip(TEXT)
"""

_COLOR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize(
    "arguments", [("-n2",), ("-vv", "-rA"), ("-vv", "--color=yes"), ("--tb=line",)]
)
def test_pytest_prints_no_control_character_and_no_command(suite, pytester, arguments):
    suite.write(SUITE)
    ran = pytester.runpytest_inprocess("-p", "no:randomly", "-p", "no:pretty", *arguments)
    ran.assert_outcomes(failed=6, skipped=1)
    output = ran.stdout.str()
    assert "\x1b[8m" not in output
    for line in _COLOR.sub("", output).split("\n"):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", line), line
        assert not re.match(r"\s*::[a-zA-Z]", line), line
        assert "##[" not in line, line
