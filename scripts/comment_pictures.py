"""Pictures of comments, rendered as GitHub does.

The style has GitHub's rules for what may scroll sideways: only code blocks and tables.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from browser_window import open_page
from markdown_it import MarkdownIt
from palette import shrink
from playwright.sync_api import Browser, Page

STYLE = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; padding: 12px 16px; box-sizing: border-box; background: #ffffff; color: #1f2328;
  font: 14px/1.5 Inter, system-ui, "Noto Color Emoji", sans-serif; overflow-wrap: break-word; }
h3 { margin: 0 0 12px; font-size: 17.5px; line-height: 1.25; }
p, ul, pre, table, details { margin: 0 0 12px; }
ul { padding-left: 24px; }
a { color: #0969da; text-decoration: none; }
table { display: block; width: max-content; max-width: 100%; overflow: auto;
  border-collapse: collapse; font-size: 12px; }
th, td { padding: 4px 8px; border: 1px solid #d1d9e0; text-align: left; }
[style*="right"] { text-align: right; }
code { padding: 2px 4px; border-radius: 6px; background: #818b981f; font-size: 85%;
  font-family: "JetBrains Mono", "DejaVu Sans Mono", monospace; white-space: break-spaces; }
summary { cursor: pointer; }
pre { padding: 10px; border-radius: 6px; background: #f6f8fa; overflow: auto; }
pre code { padding: 0; background: none; white-space: pre; }
.minus { background: #ffebe9; }
.plus { background: #dafbe1; }
.part { color: #6639ba; }
</style><body>"""

COLOUR = """() => {
  for (const code of document.querySelectorAll(".language-diff")) {
    code.replaceChildren(...code.textContent.trimEnd().split("\\n").map((line) => {
      const shown = document.createElement("div");
      shown.className = { "-": "minus", "+": "plus", "@": "part" }[line[0]] ?? "";
      shown.textContent = line;
      return shown;
    }));
  }
}"""
"""What GitHub does with a diff."""

TOO_WIDE = """() => {
  for (const folded of document.querySelectorAll("details")) { folded.open = true; }
  const wide = [...document.querySelectorAll("body, body *")].filter(
    (one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 && !one.closest("pre"));
  const shown = wide.map((one) => `<${one.tagName.toLowerCase()}> ${one.textContent.slice(0, 60)}`);
  for (const folded of document.querySelectorAll("details:not([open=''])")) { folded.open = false; }
  return shown;
}"""
"""The elements that scroll sideways with every fold open, apart from code blocks."""


def render_page(comment: str) -> str:
    """Return a comment's page."""
    markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return STYLE + markdown.render(comment)


def picture_comment(browser: Browser, comment: Path, picture: Path, width: int) -> list[str]:
    """Make the picture of a comment, and return what scrolls sideways in it."""
    with tempfile.TemporaryDirectory() as folder:
        shown = Path(folder) / "comment.html"
        shown.write_text(render_page(comment.read_text(encoding="utf-8")), encoding="utf-8")
        with open_page(browser, shown, "light", width, 200) as page:
            page.evaluate(COLOUR)
            page.screenshot(path=picture, full_page=True)
            shrink(browser, picture)
            return [f"{picture.name}: {one} scrolls" for one in find_too_wide(page)]


def find_too_wide(page: Page) -> list[str]:
    """Return the elements of a page that scroll sideways, apart from code blocks."""
    found: list[str] = page.evaluate(TOO_WIDE)
    return found
