"""Lines of a terminal by their columns."""

from __future__ import annotations

import textwrap

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.contract.wording import count_columns, wrap_columns
from tests.tables import each_row

ACCENT = "e\N{COMBINING ACUTE ACCENT}"


@each_row(
    ("text", "columns"),
    [("", 0), ("abc", 3), ("返品", 4), ("🙂", 2), ("ﾊ", 1), ("Ａ", 2), (ACCENT, 1), ("…─→", 3)],
)
def test_columns(text, columns):
    assert count_columns(text) == columns


@each_row(
    ("text", "lines"),
    [
        ("", [""]),
        ("返品は三十日以内です", ["返品は三十", "  日以内で", "  す"]),
        ("no 返品は三十日以内です", ["no 返品は", "  三十日以", "  内です"]),
        ("yes 🙂🙂🙂 ok", ["yes 🙂🙂🙂", "  ok"]),
        (f"{ACCENT * 10} b", [ACCENT * 10, "  b"]),
        ("a\tb\nc ", ["a       b", "  c"]),
    ],
)
def test_wide_and_combining_characters(text, lines):
    assert wrap_columns(text, 10, "  ") == lines


@given(st.text(alphabet="ab cdefghij", max_size=80), st.integers(4, 30))
def test_ascii_is_wrapped_as_textwrap_does(text, width):
    assert wrap_columns(text, width) == (textwrap.wrap(text, width) or [""])


@given(st.text(max_size=120), st.integers(4, 30))
def test_no_line_is_too_long_and_no_character_is_lost(text, width):
    lines = wrap_columns(text, width, "  ")
    assert all(count_columns(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
