"""`check(...)`: a value, a share of one, or what a Check finds; measured or enforced."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from ci_agent_eval import check
from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.errors import InputError
from tests.tables import each_row

CHECKS = """
import pytest
from ci_agent_eval import check
from ci_agent_eval.contract.episode import Assertion

class Polite:
    '''A check of three findings, of which one has a place of its own and one only warns.'''
    def assertions(self, episode):
        self.saw = episode
        return (
            Assertion(name="greets", passed=True, reason="hello"),
            Assertion(name="thanks", passed=False, reason="no thanks", score=0.25),
            Assertion(name="short", passed=False, severity="warning", file="rules.md", line=3),
        )

class Broken:
    def assertions(self, episode):
        raise ConnectionError("judge is down")

class Judged:
    async def assertions(self, episode):
        return (Assertion(name="rubric", passed=False, score=0.5, reason="so so"),)
"""


def recorded(episode):
    return [(a.passed, a.score, a.name, a.reason) for a in episode.assertions]


MEASURED = """
def test_values():
    text = "hello"
    assert check("he" in text) is True
    assert check("bye" in text, "says bye", reason="it never does") is False
    assert not check(0.25)
    assert check(0.75, "quality", threshold=0.7, reason="by length")
    assert check(
        1 / 3,
        threshold=1 / 3,
    )
    if check(2 > 3): raise OSError
    check(1); check(0.0)

def test_described():
    score = 0.5
    check(value=score)
    check(threshold=0.1, value=score / 2)
    check(check(0.0))

def test_polite(episode):
    with episode.turn("hi") as turn:
        turn.reply("hello", tokens=3)
    polite = Polite()
    assert not check(polite)
    check(polite, "manners")
    assert polite.saw.trajectory_summary.steps_count == 1
    assert len(polite.saw.assertions) == 4

@pytest.fixture
def around():
    check(False, "early")
    yield
    check(False, "late")

def test_around(around):
    check(True, "between")

def test_broken():
    check(True)
    check(Broken())
"""
AWAITED = """
async def test_awaited(episode):
    assert await check(Judged()) is False
    assert 0, "an evaluation goes on"

def test_forgotten(episode):
    check(Judged())
"""
STRICT = """
def test_a(episode):
    check(True, "first")
    check(0.5, "second", threshold=0.75)
    check(True, "never")

def test_b(episode):
    with pytest.raises(AssertionError, match="thanks: no thanks"):
        check(Polite())
"""


def run(suite, tests, name):
    source = CHECKS + tests
    suite.pytester.makepyfile(**{name: source, "conftest": ""})
    return suite.run(f"{name}.py", "-W", "error"), source.strip().splitlines()


def test_an_evaluation_records_each_check_with_its_place_and_goes_on(suite):
    ran, lines = run(suite, MEASURED + AWAITED, "chat_eval")
    ran.result.assert_outcomes(passed=5, failed=2)
    episodes = ran.episodes
    assert [(a.passed, a.name) for a in episodes["test_described"].assertions] == [
        (False, "score"),
        (True, "score / 2"),
        (False, "0.0"),
        (False, "check(0.0)"),
    ]
    checks = [a for a in recorded(episodes["test_values"]) if "check(" not in a[2]]
    assert checks == [
        (True, 1.0, '"he" in text', None),
        (False, 0.0, "says bye", "it never does"),
        (False, 0.25, "0.25", "score 0.25, needed 1"),
        (True, 0.75, "quality", "by length; score 0.75, needed 0.7"),
        (True, 1 / 3, "1 / 3", "score 0.3333, needed 0.3333"),
        (False, 0.0, "2 > 3", None),
        (True, 1.0, "1", None),
        (False, 0.0, "0.0", None),
    ]
    places = [a.line for a in episodes["test_values"].assertions if "check(" not in a.name]
    first = lines.index('    assert check("he" in text) is True') + 1
    assert [line - first for line in places] == [0, 1, 2, 3, 4, 8, 9, 9]
    assert {a.file for a in episodes["test_values"].assertions} == {"chat_eval.py"}
    expect_a_check_that_looks_at_the_episode_so_far(episodes["test_polite"])
    around = episodes["test_around"].assertions
    assert [a.name for a in around] == ["early", "between", "late"]
    assert all(f'"{a.name}"' in lines[a.line - 1] for a in around)
    broken = episodes["test_broken"]
    assert (broken.outcome, len(broken.assertions)) == ("error", 1)
    expect_awaited_checks(episodes, lines, "chat_eval")
    assert len(episodes["test_awaited"].assertions) == 3


def expect_a_check_that_looks_at_the_episode_so_far(episode):
    found = [(a.name, a.passed, a.severity, a.file) for a in episode.assertions]
    assert found[:3] == [
        ("greets", True, "error", "chat_eval.py"),
        ("thanks", False, "error", "chat_eval.py"),
        ("short", False, "warning", "rules.md"),
    ]
    assert [name for name, *_ in found[4:7]] == [
        "manners: greets",
        "manners: thanks",
        "manners: short",
    ]
    assert [passed for _, passed, *_ in found[7:]] == [True, True]


def expect_awaited_checks(episodes, lines, name):
    assert recorded(episodes["test_awaited"])[0] == (False, 0.5, "rubric", "so so")
    forgotten = episodes["test_forgotten"]
    assert (forgotten.outcome, forgotten.assertions) == ("error", ())
    line = lines.index("    check(Judged())") + 1
    said = f"check(...) was not awaited ({name}.py:{line}); write `await check(...)`"
    assert forgotten.reason == said


def test_in_a_strict_test_a_failure_is_recorded_once_and_raises(suite):
    ran, lines = run(suite, STRICT + AWAITED, "test_chat")
    ran.result.assert_outcomes(failed=4)
    line = lines.index('    check(0.5, "second", threshold=0.75)') + 1
    ran.result.stdout.fnmatch_lines(
        [
            '>   *check(0.5, "second", threshold=0.75)',
            "E*CheckFailed: second: score 0.5, needed 0.75",
            f"test_chat.py:{line}: CheckFailed",
        ]
    )
    ran.result.stdout.fnmatch_lines(["E*CheckFailed: rubric: so so"])
    assert "checking.py" not in ran.result.stdout.str()
    episode = ran.episodes["test_a"]
    assert recorded(episode) == [
        (True, 1.0, "first", None),
        (False, 0.5, "second", "score 0.5, needed 0.75"),
    ]
    assert (episode.outcome, episode.reason) == ("failed", "failed: second")
    stands = "what was recorded stands, though it is caught"
    assert ran.episodes["test_b"].outcome == "failed", stands
    expect_awaited_checks(ran.episodes, lines, "test_chat")
    assert len(ran.episodes["test_awaited"].assertions) == 1


class Says:
    """A check that answers with what it was given."""

    def __init__(self, found):
        self.found = found

    def assertions(self, episode):
        return self.found


class Awaited(Says):
    async def assertions(self, episode):
        return self.found


FINE = Assertion(name="greets", passed=True)


@pytest.mark.episode(evidence="none")
async def test_a_check_may_answer_with_any_sequence(episode):
    kinds = [list, iter, tuple, lambda items: (item for item in items)]
    for kind in kinds:
        assert check(Says(kind([FINE]))) is True
        assert await check(Awaited(kind([FINE]))) is True
    assert [a.name for a in episode.snapshot().assertions] == ["greets"] * 2 * len(kinds)


@pytest.mark.episode(evidence="none")
async def test_what_is_no_answer_of_a_check_is_refused(episode):
    for found in (None, True, FINE, "fine", {"greets": FINE}, [FINE, None]):
        said = rf"returned a {type(found).__name__}; return a tuple or a list of Assertions$"
        with pytest.raises(InputError, match=f"^check Says: .*{said}"):
            check(Says(found))
        with pytest.raises(InputError, match=f"^check Awaited: .*{said}"):
            await check(Awaited(found))
    for found in ((), [], iter(())):
        with pytest.raises(InputError, match=r"^check Says: it found nothing to say; return"):
            check(Says(found))
        with pytest.raises(InputError, match=r"^check Awaited: it found nothing to say; return"):
            await check(Awaited(found))


def test_outside_of_an_episode_it_only_raises():
    async def answer():
        return True

    one, two = 1, 2
    assert check(Decimal(1)) is True
    assert check(Fraction(1, 2), threshold=0.5) is True
    with pytest.raises(InputError, match="call or await it first"):
        check(answer())
    assert check(one == 1) is True
    with pytest.raises(AssertionError, match=r"^one == two$"):
        check(one == two)
    with pytest.raises(AssertionError, match=r"^quality: score 0.2, needed 0.5$"):
        check(0.2, "quality", threshold=0.5)


@each_row(
    ("value", "arguments", "said"),
    [
        (
            "text",
            {},
            r"check 'value': the value is of type str \('text'\); give True or False, a number from 0 to 1, or",
        ),
        (None, {}, "the value is of type NoneType"),
        (7, {}, r"must be from 0 to 1 \(got 7\)"),
        (float("nan"), {}, "must be from 0 to 1"),
        (-0.1, {"description": "cost"}, "check 'cost'"),
        (0.5, {"threshold": 2}, r"the threshold must be from 0 to 1 \(got 2\)"),
        (0.5, {"threshold": 0}, "the threshold is 0, which everything reaches; give one above 0"),
        ([0.5], {}, "the value is of type list"),
    ],
)
def test_what_is_no_value_is_refused(value, arguments, said):
    with pytest.raises(InputError, match=said):
        check(value, **arguments)


def test_a_check_needs_an_episode_and_brings_its_own_threshold():
    class Fine:
        def assertions(self, episode):
            return ()

    with pytest.raises(InputError, match="none is running here"):
        check(Fine())
    with pytest.raises(InputError, match="brings its own threshold"):
        check(Fine(), threshold=0.5)
