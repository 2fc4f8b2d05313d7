from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.contract.wording import (
    format_column,
    make_lines_printable,
    make_printable,
    one_line,
    pluralize,
    shorten_text,
    summarize_reason,
    without_commands,
)
from tests.tables import each_row


@each_row(
    ("written", "expected"),
    [
        (pluralize(0, "call"), "0 calls"),
        (pluralize(1, "call"), "1 call"),
        (pluralize(2, "call"), "2 calls"),
        (pluralize(1, "pass", "passes"), "1 pass"),
        (pluralize(2, "pass", "passes"), "2 passes"),
        (pluralize(1200, "call", figure="1,200"), "1,200 calls"),
        (one_line(" a\n\tb  c\r\n"), "a b c"),
        (shorten_text("a\nb c", 5), "a b c"),
        (shorten_text("a\nb cd", 5), "a b …"),
        (
            summarize_reason("no please\nassert 'please' in 'no'"),
            "no please (assert 'please' in 'no')",
        ),
        (summarize_reason("two\nlines\nassert 1 == 2\n +  where 1 = f()"), "two (assert 1 == 2)"),
        (summarize_reason("assert 1 == 2\nassert 3"), "assert 1 == 2"),
        (summarize_reason("said no\nand left"), "said no"),
        (summarize_reason(""), ""),
    ],
)
def test_words_of_messages(written, expected):
    assert written == expected


@each_row(
    ("text", "shown"),
    [
        ("a\x1b[2Jb\rc\u202ed\x9b2J", "a�[2Jb�c�d�2J"),
        ("::error::x ##[error]y", ": :error::x ## [error]y"),
        ("a ::error::x", "a : :error::x"),
        ("test_a.py::test_b", "test_a.py::test_b"),
        ("30\xa0€\u3000of 5\u202f%\tin all", "30\xa0€\u3000of 5\u202f%\tin all"),
        (
            "\U0001f469\u200d\U0001f680 می\u200cخواهم Zu\u00adsage",
            "\U0001f469\u200d\U0001f680 می\u200cخواهم Zu\u00adsage",
        ),
        ("a\nb", "a�b"),
    ],
)
def test_a_line_controls_neither_terminal_nor_runner(text, shown):
    assert make_printable(text) == shown


@each_row("color", ["\x1b[31m", "\x1b[39;49;00m", "\x1b[01m", "\x1b[0m", "\x1b[m"])
def test_lines_keep_the_colors_of_pytest(color):
    assert make_lines_printable(f"a{color}b\n::c", has_colors=True) == f"a{color}b\n: :c"
    assert "\x1b" not in make_lines_printable(f"a{color}b", has_colors=False)


@each_row("sequence", ["\x1b[8m", "\x1b[31;7m", "\x1b[41m", "\x1b[2J", "\x1b]0;t\x07"])
def test_lines_lose_every_other_sequence(sequence):
    assert make_lines_printable(f"a{sequence}b", has_colors=True).isprintable()


def test_a_long_sequence_that_is_no_color_is_read_once():
    assert make_lines_printable("\x1b[" + "0;" * 100_000, has_colors=True).isprintable()


def test_addresses_and_slices_are_no_commands():
    text = "assert ::1 == a[ ::2]"
    assert make_lines_printable(text, has_colors=False) == text


def test_commands_are_broken_up_at_the_start_of_every_line():
    text = without_commands("ok\n  ::error::x\n\t::warning::y ##[group]z")
    assert text == "ok\n  : :error::x\n\t: :warning::y ## [group]z"


@given(st.text(alphabet=":#[ \n\tx", max_size=40))
def test_no_line_is_left_that_the_runner_would_obey(text):
    for line in without_commands(text).split("\n"):
        assert not re.match(r"\s*::[a-zA-Z]", line)  # the name of a command, as the runner reads it
        assert "##[" not in line


@each_row(
    ("value", "shown"),
    [(True, "yes"), (12345678, "12,345,678"), (-3, "-3"), (1 / 3, "0.333333"), ("a", "a")],
)
def test_a_column_is_formatted_by_its_type(value, shown):
    assert format_column(value) == shown
