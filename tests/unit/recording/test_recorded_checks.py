"""Checks of an episode: their values, places and effect on its outcome."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ci_agent_eval.checks import ForbiddenTools
from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin.episodes.repository_paths import CheckPlaces, RepositoryPaths
from ci_agent_eval.recording import list_failure_reasons
from tests.tables import each_row
from tests.unit.recording.rig import a_recorder


def test_checks_go_on_and_fail_the_episode_at_its_end():
    places = iter([("tests/test_a.py", 3), ("tests/test_a.py", 4)])
    episode = a_recorder(locate=lambda: next(places))
    assert episode.check("polite", True) is True
    assert episode.check("asks first", False, "called refund at once", score=0.2) is False
    ended = episode.finish()
    assert ended.outcome == "failed"
    assert ended.reason == "failed: asks first"
    assert [(a.name, a.passed, a.file, a.line) for a in ended.assertions] == [
        ("polite", True, "tests/test_a.py", 3),
        ("asks first", False, "tests/test_a.py", 4),
    ]
    assert list_failure_reasons(ended) == ("tests/test_a.py:4: asks first: called refund at once",)


FOUND = Assertion(name="calls refund", passed=False, reason="it did not", score=0.5)

NO_VERDICTS: list[tuple[object, str]] = [
    ("no", "of type str ('no')"),
    ("False", "of type str ('False')"),
    ("", "of type str ('')"),
    ("x" * 100, "of type str;"),
    (0.01, "of type float (0.01)"),
    (math.nan, "of type float (nan)"),
    (1, "of type int (1)"),
    (None, "of type NoneType"),
    ([], "of type list"),
    ([FOUND, True], "of type list"),
    ({"passed": False}, "of type dict"),
    (np.float64(0.01), "of type float64"),
    (np.array([False]), "of type ndarray"),
    (ForbiddenTools(["refund"]), "of type ForbiddenTools"),
]


@each_row(("value", "described"), NO_VERDICTS, ids=[said for _, said in NO_VERDICTS])
def test_what_is_neither_true_nor_false_is_refused(value, described):
    recorder = a_recorder()
    with pytest.raises(InputError) as raised:
        recorder.check("tone", value)
    said = str(raised.value)
    assert said.startswith(f"check 'tone': `passed` is {described}")
    assert "give True or False, a number from 0 to 1 with `threshold`, or what a Check" in said
    assert recorder.finish().assertions == ()


def test_the_truth_of_numpy_is_one_and_is_not_imported_for_it(monkeypatch):
    recorder = a_recorder()
    assert recorder.check("near", np.float64(0.5) < 1) is True
    assert recorder.check("far", np.bool_(False)) is False
    monkeypatch.delitem(sys.modules, "numpy")
    with pytest.raises(InputError, match="`passed` is of type str"):
        recorder.check("tone", "no")
    assert "numpy" not in sys.modules


@each_row(
    "value", [0.7, np.float32(0.75), Decimal("0.7"), Fraction(7, 10), 1, True, np.bool_(True)]
)
def test_with_a_threshold_a_number_passes_from_there_on(value):
    recorder = a_recorder()
    assert recorder.check("tone", value, threshold=0.7) is True
    assert recorder.check("tone", 0.69, threshold=0.7) is False
    first, second = recorder.finish().assertions
    assert (first.score, second.score) == (float(value), 0.69)


@each_row(
    ("value", "more", "said"),
    [
        ("0.9", {"threshold": 0.5}, "the value is of type str ('0.9')"),
        ([0.9], {"threshold": 0.5}, "the value is of type list"),
        (np.array([0.9]), {"threshold": 0.5}, "the value is of type ndarray"),
        (math.nan, {"threshold": 0.5}, "the value must be from 0 to 1 (got nan)"),
        (math.inf, {"threshold": 0.5}, "the value must be from 0 to 1 (got inf)"),
        (1j, {"threshold": 0.5}, "the value must be from 0 to 1 (got 1j)"),
        (85, {"threshold": 0.5}, "the value must be from 0 to 1 (got 85)"),
        (0.9, {"threshold": 0}, "the threshold is 0, which everything reaches"),
        (0.9, {"threshold": math.nan}, "the threshold must be from 0 to 1 (got nan)"),
        (0.9, {"threshold": 0.5, "score": 0.9}, "the value is the score"),
        (FOUND, {"threshold": 0.5}, "brings its own reason, score, threshold and severity"),
        ([FOUND], {"severity": "warning"}, "leave them out"),
    ],
    ids=repr,
)
def test_what_no_threshold_can_judge_is_refused(value, more, said):
    with pytest.raises(InputError) as raised:
        a_recorder().check("tone", value, **more)
    assert said in str(raised.value)


@each_row("found", [FOUND, (FOUND,), [FOUND]], ids=["one", "tuple", "list"])
def test_what_a_check_found_is_recorded_as_it_is(found):
    recorder = a_recorder(locate=lambda: ("tests/test_a.py", 3))
    assert recorder.check("tools", found) is False
    (kept,) = recorder.finish().assertions
    assert kept == FOUND.model_copy(
        update={"name": "tools: calls refund", "file": "tests/test_a.py", "line": 3}
    )


def test_a_coroutine_is_no_verdict():
    async def verdict() -> bool:
        return False

    with pytest.raises(InputError, match="call or await it first"):
        a_recorder().check("kind", verdict())


def test_a_checks_place_is_the_callers_even_inside_this_repository():
    # The recorder's own files are below the same root here, and are not the caller.
    places = CheckPlaces(RepositoryPaths(Path(__file__).parents[3]))
    episode = a_recorder(locate=places.locate_caller)
    episode.check("polite", True)
    (assertion,) = episode.finish().assertions
    assert assertion.file == "tests/unit/recording/test_recorded_checks.py"
    assert "episode.check" in Path(__file__).read_text().splitlines()[(assertion.line or 0) - 1]
