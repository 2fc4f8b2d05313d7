"""JSON in a page: whatever it holds, no parser of HTML sees anything in it."""

from __future__ import annotations

import json
from html.parser import HTMLParser

from hypothesis import example, given
from hypothesis import strategies as st

from ci_agent_eval.render.html.page_limits import drop_empty, embed_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


class Tags(HTMLParser):
    """Collects every tag and comment, and the text of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attributes):
        self.found.append(tag)

    def handle_endtag(self, tag):
        self.found.append(f"/{tag}")

    def handle_comment(self, data):
        self.found.append(f"comment {data}")

    def handle_data(self, data):
        self.text += data


@given(VALUES)
@example("</script><script>alert(1)</script>")
@example("<!--<script>")
@example("]]>\u2028\u2029\u202e\x00")
@example({"</script>": ["<!--", "&lt;"]})
def test_the_value_comes_back_and_nothing_of_it_is_markup(value):
    written = embed_json(value)
    assert json.loads(written) == value
    assert written.isascii()
    assert not set(written) & set("<>&\n\r")
    parser = Tags()
    parser.feed(f"<script>{written}</script>")
    parser.close()
    assert parser.found == ["script", "/script"]
    assert parser.text == written


def test_only_what_is_empty_is_left_out():
    row = {"zero": 0, "nothing": 0.0, "no": False, "none": None, "text": "", "list": [], "a": "b"}
    assert drop_empty(row) == {"zero": 0, "nothing": 0.0, "a": "b"}
