"""A number of iterations, as markers, options and scenario files give it."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.iteration_range import (
    IterationRange,
    parse_iterations,
    parse_iterations_text,
)
from tests.tables import each_row


@each_row(
    ("given", "expected"),
    [("1", (1, None)), ("25", (25, None)), ("auto", (60, 3)), ("auto:1-2", (2, 1))],
)
def test_numbers_and_ranges_are_read(given, expected):
    found = parse_iterations_text(given)
    assert found == expected
    assert found.guaranteed == (expected[1] or expected[0])
    if given.isdigit():
        assert parse_iterations(int(given)) == IterationRange(int(given))


@each_row(
    "given", ["", "0", "-3", "2.0", "auto:", "auto:3", "auto:0-5", "auto:5-1000", "auto-60", "Auto"]
)
def test_what_is_neither_is_refused(given):
    with pytest.raises(ValueError, match="must be a whole number, 1 or more, "):
        parse_iterations_text(given)


@each_row("given", ["auto:5-5", "auto:9-3"])
def test_a_maximum_is_above_its_minimum(given):
    with pytest.raises(ValueError, match="the maximum must be above the minimum"):
        parse_iterations(given)
