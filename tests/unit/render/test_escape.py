"""Hostile text: seen in full, acting nowhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ci_agent_eval.render.escape import (
    code_block,
    code_span,
    comment_token,
    cut_bytes,
    escape_terminal,
    visible_line,
    visible_lines,
)
from tests.tables import each_row


def parsed_code(markdown: str) -> list[str]:
    tokens = MarkdownIt("commonmark").parse(markdown)
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    assert [child.type for child in tokens[1].children] == ["code_inline"]
    return tokens[1].children[0].content


@each_row(
    ("text", "shown"),
    [
        ("plain", "`plain`"),
        ("a`b", "``a`b``"),
        ("`", "`` ` ``"),
        ("``", "``` `` ```"),
        ("`a", "`` `a ``"),
        ("a``", "``` a`` ```"),
        (" a ", "`  a  `"),
        ("", "`(empty)`"),
        ("  ", "`(empty)`"),
        ("a\nb\r\nc\rd\u2028e", "`a⏎b⏎c⏎d⏎e`"),
        ("a\tb", "`a b`"),
        ("\x1b[31m", "`⟨U+001B⟩[31m`"),
        ("\x00\x7f\x9b", "`⟨U+0000⟩⟨U+007F⟩⟨U+009B⟩`"),
        ("\u202eabc\u2066", "`⟨U+202E⟩abc⟨U+2066⟩`"),
        ("a\u200bb\ufeff", "`a⟨U+200B⟩b⟨U+FEFF⟩`"),
        ("\ud800", "`⟨U+D800⟩`"),
        ("x" * 21, f"`{'x' * 20}… (1 more characters)`"),
        ("\U0001f600" * 21, f"`{chr(0x1F600) * 20}… (1 more characters)`"),
        ("a|b", "`a|b`"),
    ],
)
def test_code_span(text, shown):
    assert code_span(text, limit=20) == shown


@given(st.text(max_size=60))
def test_code_span_is_one_code_span_and_nothing_else(text):
    shown = visible_line(text, 50) if visible_line(text, 50).strip() else "(empty)"
    assert parsed_code(code_span(text, limit=50)) == shown


@given(st.lists(st.sampled_from(["\\", "|", "`", "a", " ", "\n"]), max_size=12).map("".join))
def test_code_span_in_a_table_never_makes_a_cell(text):
    row = f"| {code_span(text, cell=True)} | end |"
    tokens = MarkdownIt("commonmark").enable("table").parse(f"| a | b |\n|---|---|\n{row}\n")
    cells = [tokens[i + 1] for i, token in enumerate(tokens) if token.type == "td_open"]
    assert [cell.children[0].type for cell in cells] == ["code_inline", "text"]
    assert cells[1].content == "end"
    # Parsers that pair backslashes from the left see the same two cells.
    assert "\\\\|" not in row


@given(st.text(max_size=200))
def test_fenced_block_is_one_block(text):
    tokens = MarkdownIt("commonmark").parse(code_block(text, 100))
    assert [token.type for token in tokens] == ["fence"]


def test_fence_is_longer_than_any_inside():
    block = code_block("```\n````\n</details>", 100)
    assert block == "`````text\n```\n````\n</details>\n`````"


def test_many_lines_keeps_lines_and_cuts():
    assert visible_lines("a\r\nb\x07\rc", 100) == "a\nb⟨U+0007⟩\nc"
    assert visible_lines("abcdef", 3) == "abc… (3 more characters)"


@given(st.text(max_size=50), st.integers(3, 40))
def test_cut_bytes_keeps_the_limit_and_whole_characters(text, limit):
    shown = cut_bytes(text, limit)
    assert len(shown.encode()) <= limit
    assert shown == text or (shown.endswith("…") and text.startswith(shown[:-1]))


def test_cut_bytes_takes_text_that_has_no_utf8():
    assert cut_bytes("\ud800", 100) == "\\ud800"


@each_row(
    ("text", "shown"),
    [
        ("::error::x", ": :error::x"),
        ("  ::set-output name=a::b", ": :set-output name=a::b"),
        ("a\n::error::x", "a⏎::error::x"),
        ("a ##[error]x", "a ## [error]x"),
        ("a::b", "a::b"),
        ("\x1b[2J", "⟨U+001B⟩[2J"),
        ("", "(empty)"),
    ],
)
def test_terminal(text, shown):
    assert escape_terminal(text) == shown


def test_a_word_of_an_html_comment_has_no_hyphens():
    assert comment_token("a--b") == "a%2D%2Db"
