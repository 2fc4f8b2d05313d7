"""Links lead to lines of the head commit inside the repository, or nowhere."""

from __future__ import annotations

import re
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ci_agent_eval.render.links import Links, line_number, repository_path
from ci_agent_eval.render.markdown.guard import find_foreign_elements
from ci_agent_eval.render.markdown.phrases import render_link
from tests.render_reports import LINKS
from tests.tables import each_row


@each_row(
    ("file", "path"),
    [
        ("tests/a.py", "tests/a.py"),
        ("./tests/a.py", "tests/a.py"),
        ("tests\\a.py", "tests/a.py"),
        ("..a/b..c/...", "..a/b..c/..."),
        (None, None),
        ("", None),
        (".", None),
        ("/etc/passwd", None),
        ("../a.py", None),
        ("a/../../b.py", None),
        ("a/./b.py", None),
        ("a//b.py", None),
        ("a/", None),
        ("..\\a.py", None),
        ("C:\\a.py", None),
        ("a\nb.py", None),
        ("a\x00b", None),
        ("a/" * 3_000 + "b", None),
    ],
)
def test_path_stays_in_the_repository(file, path):
    assert repository_path(file) == path


@each_row(("line", "number"), [(48, 48), (0, None), (None, None), (2**31, None)])
def test_line(line, number):
    assert line_number(line) == number


def test_address_is_quoted():
    root = f"https://github.com/acme/support-agent/blob/{LINKS.sha}"
    assert LINKS.blob("a b/(c)[d]#é?.py", 3) == f"{root}/a%20b/%28c%29%5Bd%5D%23%C3%A9%3F.py#L3"
    assert LINKS.blob("a.py", None) == f"{root}/a.py"


@each_row(
    "links",
    [
        Links(),
        Links("https://github.com", "o/r"),
        Links(None, "o/r", "a" * 40),
        Links(sha="a" * 40),
    ],
)
def test_without_context_there_is_no_link(links):
    assert links.blob("a.py", 1) is None
    assert links.commit() is None
    assert links.place("tests/a.py", 1).url is None


@given(st.text(), st.text(), st.text())
def test_any_link_is_one_link_under_its_prefix(file, run, server):
    links = Links("https://github.com/" + server, "o/r", "abc", run_url="https://e.example/" + run)
    shown = render_link("x", links.place(file + "x", 1).url)
    (paragraph,) = [t for t in MarkdownIt("commonmark").parse(f"a {shown} b") if t.type == "inline"]
    found = [t.attrs["href"] for t in paragraph.children if t.type == "link_open"]
    assert all(address.startswith(links.prefixes[0]) for address in found)
    assert len(found) == (repository_path(file + "x") is not None)


@given(st.text(max_size=200))
def test_the_address_of_a_conversation_holds_the_whole_id(scenario_id):
    links = Links(report_url="https://e.example/artifacts/1?a=(1)")
    address = links.conversation(scenario_id)
    page, _, anchor = address.partition("#scenario=")
    assert page == "https://e.example/artifacts/1?a=%281%29"
    assert page in links.prefixes
    assert unquote(anchor) == scenario_id.encode("utf-8", "replace").decode()
    assert re.fullmatch(r"[\w.~%-]*", anchor, re.ASCII)
    assert find_foreign_elements(f"[a]({address})", links.prefixes) == ()


def test_a_long_id_is_left_out_of_the_address():
    links = Links(report_url="https://e.example/1")
    assert links.conversation("ä" * 1_000) == "https://e.example/1"
    assert Links().conversation("a") is None
