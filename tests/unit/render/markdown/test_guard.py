"""The guard finds what is not ours, each kind of it."""

from __future__ import annotations

from ci_agent_eval.render.markdown.guard import find_foreign_elements
from tests.tables import each_row

OURS = """<!-- agent-eval suite=default -->
### ❌ Checkout tests (EU) failed: 1 of 2 scenarios fails

| scenario | where |
|---|---|
| `@a #1` | [`t.py:1`](https://github.com/o/r/blob/abc/t.py#L1) |

<details open><summary>❌ <b>2 scenarios</b> <code>@a &lt;b&gt; #1 https://e.example</code> · \
<a href="https://github.com/o/r/blob/abc/t.py#L1"><code>t.py:1</code></a></summary>

x

</details>

<details><summary>1 passing scenario</summary>

- `x`: *not measured*

```text
@b <img src=x> https://e.example
```

</details>

1 episode ran · [run](https://github.com/o/r/actions/runs/1)
"""
ALLOWED = ("https://github.com/o/r/", "https://runs.example/1")


def test_a_small_sum_is_no_commit():
    assert find_foreign_elements("cost per episode: $0.0000012, under $0.00000001", ()) == ()
    assert len(find_foreign_elements("at 0.0000012 and at (0000012)", ())) == 2


def test_our_own_markdown_has_nothing_foreign():
    assert find_foreign_elements(OURS, ALLOWED) == ()


@each_row(
    ("planted", "named"),
    [
        ("hello @octocat", "mention"),
        ("hello &#64;octocat", "mention"),
        ("write to me@example.org", "mention"),
        ("see #12", "issue reference"),
        ("see o/r#12", "issue reference"),
        ("see &#35;12", "issue reference"),
        ("see GH-12", "issue reference"),
        ("go to https://evil.example", "URL"),
        ("go to www.evil.example", "URL"),
        ("at 9c1d2e7aa0b1c2d3e4f5061728394a5b6c7d8e9f", "commit"),
        ("at 9c1d2e7", "commit"),
        (":tada:", "emoji"),
        ("note[^1]", "footnote"),
        ("$$x$$", "formula"),
        ("[x](https://evil.example/)", "link"),
        ("[x](https://github.com/o/r/../../evil/r)", "link"),
        ("[x](https://github.com/o/rest)", "link"),
        ("[x](https://runs.example/12)", "link"),
        ("<https://evil.example>", "link"),
        ("[x][r]\n\n[r]: https://github.com/o/r/x", "link definition"),
        ("![x](https://github.com/o/r/i.png)", "image"),
        ("<img src=x>", "HTML"),
        ("a <b>bold</b> word", "html_inline"),
        ('<details open="x"><summary>x</summary>\n\ny\n\n</details>', "HTML"),
        ("<details><summary><code><i>x</i></code></summary>\n\ny\n\n</details>", "HTML"),
        ("<details><summary><code>x</code>@b</summary>\n\ny\n\n</details>", "mention"),
        ("<details><summary><b id=x>y</b></summary>\n\ny\n\n</details>", "HTML"),
        ('<details><summary><a href="https://evil.example">x</a></summary></details>', "link"),
        ('<details><summary><a href="javascript:x()">x</a></summary></details>', "link"),
        (
            '<details><summary><a id=x href="https://runs.example/1">x</a></summary></details>',
            "HTML",
        ),
        ("<details><summary>a &#64;b</summary>\n\ny\n\n</details>", "HTML"),
        ("<details><summary>@b</summary>\n\ny\n\n</details>", "mention"),
        ("<details><summary>x</summary>\n\ny", "not closed"),
        ("<!-- another comment -->", "HTML"),
        ("# heading", "heading"),
        ("### ❌ Agent evals failed: twice", "heading"),
        ("a line\n===", "heading"),
        ("> quoted", "blockquote"),
        ("---", "hr"),
        ("1. one", "ordered_list"),
        ("    indented", "code_block"),
        ("~~gone~~", "s_open"),
        ("| a |\n|---|\n| @b |", "mention"),
        ("- item\n  - see #3", "issue reference"),
    ],
)
def test_anything_else_is_named(planted, named):
    found = find_foreign_elements(f"{OURS}\n{planted}\n", ALLOWED)
    assert any(named in sentence for sentence in found), found


def test_link_to_an_allowed_page_or_a_part_of_it_is_ours():
    text = "[run](https://runs.example/1) [part](https://runs.example/1#summary)"
    assert find_foreign_elements(text, ALLOWED) == ()
