"""`make pictures`: make the pictures of docs/pictures anew, in the Chromium of this machine.

The report and the comment are what `agent-eval report` leaves for the results that
`pictures_data.py` writes. The comment is rendered from its Markdown with a style of ours that
looks as GitHub's does.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from markdown_it import MarkdownIt
from palette import shrink
from playwright.sync_api import Browser, FloatRect, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs/pictures"
MERMAID_ROOT = "scripts/mermaid"
MERMAID = ROOT / MERMAID_ROOT / "node_modules/mermaid/dist/mermaid.min.js"
"""What GitHub draws the charts of a comment with."""
LARGEST = 200_000
"""Bytes of a picture; the repository keeps every version of it."""

PADDING = 24

SETTINGS = """
suite = "support-desk"
[gate]
max_error_rate = 0.05
[compare]
baseline = "main"
max_cost_increase = 0.25
[budgets]
total_cost_usd = 0.5
total_tokens = {limit = 100000, hard = false}
"""
FONTS = """
body { font-family: Inter, system-ui, sans-serif !important; }
code, pre, .code, .tool, .place { font-family: "JetBrains Mono", monospace !important; }
"""
COMMENT = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; padding: 20px 24px; width: 860px; box-sizing: border-box; background: #ffffff;
  color: #1f2328; font: 14px/1.5 Inter, system-ui, sans-serif; }
.box { border: 1px solid #d1d9e0; border-radius: 6px; }
.head { padding: 8px 16px; background: #f6f8fa; border-bottom: 1px solid #d1d9e0;
  border-radius: 6px 6px 0 0; color: #59636e; }
.head b { color: #1f2328; }
.head span { margin-left: 4px; padding: 0 6px; border: 1px solid #d1d9e0; border-radius: 1em;
  font-size: 12px; }
.body { padding: 16px; }
h3 { margin: 0 0 16px; font-size: 17.5px; }
p { margin: 0 0 12px; }
table { border-collapse: collapse; margin-bottom: 16px; }
th, td { padding: 6px 13px; border: 1px solid #d1d9e0; text-align: left; }
tr:nth-child(2n) td { background: #f6f8fa; }
[style*="right"] { text-align: right; }
code { padding: 2px 5px; border-radius: 6px; background: #818b981f; font-size: 12px; }
code { font-family: "JetBrains Mono", monospace; }
summary { margin-bottom: 10px; }
pre { margin: 0 0 12px; padding: 12px; border-radius: 6px; background: #f6f8fa; }
pre code { padding: 0; background: none; }
.minus { background: #ffebe9; }
.plus { background: #dafbe1; }
.chart { display: inline-block; width: 400px; }
</style><div class="box"><div class="head"><b>github-actions</b> <span>bot</span> commented</div>
<div class="body">%s</div></div>"""


AS_GITHUB = """async () => {
  mermaid.initialize({ startOnLoad: false });
  for (const folded of document.querySelectorAll("details")) {
    folded.open = /^(What changed|Trend)/.test(folded.querySelector("summary").textContent);
  }
  for (const code of document.querySelectorAll(".language-diff")) {
    code.replaceChildren(...code.textContent.trimEnd().split("\\n").map((line) => {
      const shown = document.createElement("div");
      shown.className = { "-": "minus", "+": "plus" }[line[0]] ?? "";
      shown.textContent = line;
      return shown;
    }));
  }
  for (const [number, code] of [...document.querySelectorAll(".language-mermaid")].entries()) {
    const chart = document.createElement("div");
    chart.className = "chart";
    chart.innerHTML = (await mermaid.render(`chart-${number}`, code.textContent)).svg;
    code.parentElement.replaceWith(chart);
  }
}"""
"""What GitHub does with a comment: it draws charts and colours diffs; and the folds of interest."""


def main() -> int:
    """Make every picture; exit status 1 where one is too large or there is no browser."""
    found = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if found is None:
        print("make pictures: there is no Chromium here; scripts/chromium installs it")
        return 1
    if not MERMAID.exists():
        print(f"make pictures: there is no Mermaid here; run: npm --prefix {MERMAID_ROOT} ci")
        return 1
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        report = _report(Path(name))
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        _report_picture(browser, report / "report.html")
        _changed_picture(browser, report / "report.html")
        _episode_picture(browser, report / "report.html")
        _comment_picture(browser, report / "comment.md")
        for picture in sorted(PICTURES.glob("*.png")):
            shrink(browser, picture)
        browser.close()
    return _measure()


def _report(folder: Path) -> Path:
    """Leave the report of the pictures' results in a folder of its own."""
    (folder / "agent-eval.toml").write_text(SETTINGS, encoding="utf-8")
    subprocess.run([sys.executable, ROOT / "scripts/pictures_data.py", folder], check=True)
    command = [sys.executable, "-m", "ci_agent_eval", "report", "--results", "results.json"]
    done = subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)
    if done.returncode != 1:
        raise SystemExit(f"make pictures: the report ended with {done.returncode}, expected 1")
    return folder / "agent-eval-report"


@contextmanager
def _opened(browser: Browser, file: Path, scheme: str, width: int, height: int) -> Iterator[Page]:
    # The fonts stand for those of a reader's system; the page itself allows no style but its own.
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": height},
        bypass_csp=True,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(file.as_uri())
    page.add_style_tag(content=FONTS)
    page.evaluate("document.fonts.ready")
    yield page
    context.close()


def _report_picture(browser: Browser, file: Path) -> None:
    """Show verdict, figures, and what changed since the baseline."""
    with _opened(browser, file, "light", 1180, 3200) as page:
        height = _bottom(page, ".pair .ways:not(.talks)")
        page.screenshot(path=PICTURES / "report.png", clip=_clip(0, height, 1180))


def _changed_picture(browser: Browser, file: Path) -> None:
    """Show a scenario that changed, its conversations side by side, in the dark scheme."""
    with _opened(browser, file, "dark", 1180, 3200) as page:
        page.locator("#baseline .talk").first.wait_for()
        box = page.locator("#baseline .pair").first.bounding_box()
        if box is None:
            raise SystemExit("make pictures: the report shows no scenario that changed")
        clip = _clip(box["y"] - 4, box["height"] + 8, 1180)
        page.screenshot(path=PICTURES / "changed.png", clip=clip)


def _clip(top: float, height: float, width: float) -> FloatRect:
    return {"x": 0, "y": top, "width": width, "height": height}


def _bottom(page: Page, selector: str) -> float:
    box = page.locator(selector).first.bounding_box()
    if box is None:
        raise SystemExit(f"make pictures: the page shows no {selector}")
    return box["y"] + box["height"] + PADDING


def _episode_picture(browser: Browser, file: Path) -> None:
    """Show a failed episode, opened, in the dark scheme."""
    with _opened(browser, file, "dark", 1180, 3200) as page:
        page.get_by_role("searchbox").fill("refund_over_limit")
        page.get_by_role("button", name="failed 7").click()
        page.get_by_text("4 of 80 episodes").wait_for()
        page.locator(".episode .opener").first.click()
        page.evaluate("document.activeElement.blur()")
        box = page.locator("#episodes").bounding_box()
        if box is None:
            raise SystemExit("make pictures: the report shows no episodes")
        clip = _clip(box["y"] - PADDING, box["height"] + 2 * PADDING, 1180)
        page.screenshot(path=PICTURES / "episode.png", clip=clip)


def _comment_picture(browser: Browser, file: Path) -> None:
    """Show the comment on a pull request."""
    markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    shown = file.with_name("comment.html")
    text = markdown.render(file.read_text(encoding="utf-8"))
    shown.write_text(COMMENT % text, encoding="utf-8")
    with _opened(browser, shown, "light", 908, 500) as page:
        page.add_script_tag(path=MERMAID)
        page.evaluate(AS_GITHUB)
        page.screenshot(path=PICTURES / "comment.png", full_page=True)


def _measure() -> int:
    sizes = {path.name: path.stat().st_size for path in sorted(PICTURES.glob("*.png"))}
    for name, size in sizes.items():
        print(f"docs/pictures/{name}: {size // 1000} kB")
    too_large = [name for name, size in sizes.items() if size > LARGEST]
    if too_large:
        print(f"make pictures: over {LARGEST // 1000} kB: {', '.join(too_large)}")
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
