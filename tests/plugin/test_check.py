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

class Judged:
    async def assertions(self, episode):
        return (Assertion(name="rubric", passed=False, score=0.5, reason="so so"),)
"""


def run(suite, tests, *arguments, name="chat_eval"):
    suite.pytester.makepyfile(**{name: CHECKS + tests, "conftest": ""})
    return suite.run(f"{name}.py", "-W", "error", *arguments)


def recorded(episode):
    return [(a.passed, a.score, a.name, a.reason) for a in episode.assertions]


def test_values_and_shares(suite):
    ran = run(
        suite,
        """
def test_a():
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
""",
    )
    ran.result.assert_outcomes(passed=2)
    assert [(a.passed, a.name) for a in ran.episodes["test_described"].assertions] == [
        (False, "score"),
        (True, "score / 2"),
        (False, "0.0"),
        (False, "check(0.0)"),
    ]
    episode = ran.episodes["test_a"]
    checks = [a for a in recorded(episode) if "check(" not in a[2]]
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
    lines = [a.line for a in episode.assertions if "check(" not in a.name]
    first = 21
    assert [line - first for line in lines] == [0, 1, 2, 3, 4, 8, 9, 9]
    assert {a.file for a in episode.assertions} == {"chat_eval.py"}


def test_a_check_looks_at_the_episode_so_far(suite):
    ran = run(
        suite,
        """
def test_a(episode):
    with episode.turn("hi") as turn:
        turn.reply("hello", tokens=3)
    polite = Polite()
    assert not check(polite)
    check(polite, "manners")
    assert polite.saw.trajectory_summary.steps_count == 1
    assert len(polite.saw.assertions) == 4
""",
    )
    (episode,) = ran.results.episodes
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


@pytest.mark.parametrize("name", ["chat_eval", "test_chat"])
def test_one_that_asks_a_model_is_awaited(suite, name):
    ran = run(
        suite,
        """
async def test_a(episode):
    assert await check(Judged()) is False
    assert 0, "an evaluation goes on"
""",
        name=name,
    )
    (episode,) = ran.results.episodes
    assert recorded(episode)[0] == (False, 0.5, "rubric", "so so")
    measured = name == "chat_eval"
    ran.result.assert_outcomes(passed=1 if measured else 0, failed=0 if measured else 1)
    assert len(episode.assertions) == (3 if measured else 1)
    if not measured:
        ran.result.stdout.fnmatch_lines(["E*CheckFailed: rubric: so so"])


@pytest.mark.parametrize("name", ["chat_eval", "test_chat"])
def test_one_that_was_not_awaited_is_an_error(suite, name):
    ran = run(
        suite,
        """
def test_a(episode):
    check(Judged())
""",
        name=name,
    )
    ran.result.assert_outcomes(failed=1)
    (episode,) = ran.results.episodes
    assert (episode.outcome, episode.assertions) == ("error", ())
    assert episode.reason == f"check(...) was not awaited ({name}.py:20); write `await check(...)`"


def test_in_a_strict_test_a_failure_is_recorded_once_and_raises(suite):
    ran = run(
        suite,
        """
def test_a(episode):
    check(True, "first")
    check(0.5, "second", threshold=0.75)
    check(True, "never")

def test_b(episode):
    with pytest.raises(AssertionError, match="thanks: no thanks"):
        check(Polite())
""",
        name="test_chat",
    )
    ran.result.assert_outcomes(failed=2)
    ran.result.stdout.fnmatch_lines(
        [
            '>   *check(0.5, "second", threshold=0.75)',
            "E*CheckFailed: second: score 0.5, needed 0.75",
            "test_chat.py:21: CheckFailed",
        ]
    )
    assert "checking.py" not in ran.result.stdout.str()
    episode = ran.episodes["test_a"]
    assert recorded(episode) == [
        (True, 1.0, "first", None),
        (False, 0.5, "second", "score 0.5, needed 0.75"),
    ]
    assert (episode.outcome, episode.reason) == ("failed", "failed: second")
    assert ran.episodes["test_b"].outcome == "failed", (
        "what was recorded stands, though it is caught"
    )


def test_a_broken_check_is_an_error_and_no_score(suite):
    ran = run(
        suite,
        """
class Broken:
    def assertions(self, episode):
        raise ConnectionError("judge is down")

def test_a():
    check(True)
    check(Broken())
""",
    )
    ran.result.assert_outcomes(failed=1)
    (episode,) = ran.results.episodes
    assert (episode.outcome, len(episode.assertions)) == ("error", 1)


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


def test_fixtures_may_check_before_and_after_the_episode(suite):
    ran = run(
        suite,
        """
@pytest.fixture
def around():
    check(False, "early")
    yield
    check(False, "late")

def test_a(around):
    check(True, "between")
""",
    )
    ran.result.assert_outcomes(passed=1)
    (episode,) = ran.results.episodes
    assert [a.name for a in episode.assertions] == ["early", "between", "late"]
    assert [a.line for a in episode.assertions] == [21, 26, 23]


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
