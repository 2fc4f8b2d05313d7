from __future__ import annotations

import pytest

from ci_agent_eval.results.importers import values


@pytest.mark.parametrize("value", [True, False, None, "7", [], float("nan"), float("inf"), 10**300])
def test_what_is_no_number_is_not_measured(value):
    assert values.number(value) is None
    assert values.tokens(value, 5) is None


@pytest.mark.parametrize(
    ("read", "value", "found"),
    [
        (values.amount, -1, None),
        (values.amount, 0, 0),
        (values.share, 1.5, None),
        (values.count, 1.5, None),
        (values.count, 2.0, 2),
        (values.seconds_as_ms, 1.25, 1250),
        (values.seconds_as_ms, 1e14, None),
        (values.text, "  ", None),
    ],
)
def test_a_figure_out_of_its_range_is_not_there(read, value, found):
    assert read(value) == found


def test_cached_tokens_are_part_of_those_read():
    assert values.tokens(10, 5, 99) == {"input": 10, "output": 5, "cached": 10}


def test_a_name_is_one_short_line():
    assert values.name_of({"b": 1, "a": "x\n y"}) == '{"a": "x\\n y", "b": 1}'
    assert values.name_of("a\n b") == "a b"
    assert len(values.name_of("x" * 5000)) == 201
