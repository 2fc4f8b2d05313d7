from __future__ import annotations

from ci_agent_eval.results.importers import values
from tests.tables import each_row


@each_row("value", [True, False, None, "7", [], float("nan"), float("inf"), 10**300])
def test_what_is_no_number_is_not_measured(value):
    assert values.as_number(value) is None
    assert values.build_usage(value, 5) is None


@each_row(
    ("read", "value", "found"),
    [
        (values.as_amount, -1, None),
        (values.as_amount, 0, 0),
        (values.as_share, 1.5, None),
        (values.as_count, 1.5, None),
        (values.as_count, 2.0, 2),
        (values.as_milliseconds, 1.25, 1250),
        (values.as_milliseconds, 1e14, None),
        (values.as_text, "  ", None),
    ],
)
def test_a_figure_out_of_its_range_is_not_there(read, value, found):
    assert read(value) == found


def test_cached_tokens_are_part_of_those_read():
    assert values.build_usage(10, 5, 99) == {"input": 10, "output": 5, "cached": 10}


def test_a_name_is_one_short_line():
    assert values.as_name({"b": 1, "a": "x\n y"}) == '{"a": "x\\n y", "b": 1}'
    assert values.as_name("a\n b") == "a b"
    assert len(values.as_name("x" * 5000)) == 201
