"""pictures.py: make the pictures of docs/pictures anew, in the Chromium of this machine.

The report and the comment are what `agent-eval report` leaves for the results that
`pictures_data.py` writes; further comments are golden ones. In no golden comment does anything
but code blocks scroll sideways, on a desktop or on a phone.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from browser_window import find_browser, open_browser, open_page
from comment_pictures import picture_comment
from palette import shrink
from playwright.sync_api import Browser, FloatRect, Page

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs/pictures"
LARGEST = 200_000
"""Bytes of a picture; the repository keeps every version of it."""

PADDING = 24

COMMENTS = ROOT / "tests/golden/comments/markdown.md"
SHOWN_COMMENTS = {"1-green-cheaper-slower", "10-three-regressions", "14-prompt-changed"}
"""The golden comments that docs/comment.md shows."""
DESKTOP, PHONE = 860, 358
"""Widths of a comment in pixels."""

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


def main() -> int:
    """Make every picture; exit status 1 where one is too large or there is no browser."""
    found = find_browser()
    if found is None:
        print("pictures.py: there is no Chromium here; scripts/chromium installs it")
        return 1
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, open_browser(found) as browser:
        report = _report(Path(name))
        _report_picture(browser, report / "report.html")
        picture_comment(browser, report / "comment.md", PICTURES / "comment.png", DESKTOP)
        problems = _picture_golden_comments(browser, Path(name))
        for picture in sorted(PICTURES.glob("*.png")):
            shrink(browser, picture)
    print("".join(f"{problem}\n" for problem in problems), end="")
    return _measure() or int(bool(problems))


def _picture_golden_comments(browser: Browser, folder: Path) -> list[str]:
    """Make the pictures of the shown comments, and return what scrolls sideways in any."""
    problems: list[str] = []
    _, *parts = re.split(r"^===== (.+) =====\n", COMMENTS.read_text("utf-8"), flags=re.MULTILINE)
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        comment = folder / f"{name}.md"
        comment.write_text(text, encoding="utf-8")
        picture = (PICTURES / "comments" if name in SHOWN_COMMENTS else folder) / f"{name}.png"
        problems += picture_comment(browser, comment, picture, DESKTOP)
        problems += picture_comment(browser, comment, folder / f"phone-{picture.name}", PHONE)
    return problems


def _report(folder: Path) -> Path:
    """Leave the report of the pictures' results in a folder of its own."""
    (folder / "agent-eval.toml").write_text(SETTINGS, encoding="utf-8")
    subprocess.run([sys.executable, ROOT / "scripts/pictures_data.py", folder], check=True)
    command = [sys.executable, "-m", "ci_agent_eval", "report", "--results", "results.json"]
    done = subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)
    if done.returncode != 1:
        raise SystemExit(f"pictures.py: the report ended with {done.returncode}, expected 1")
    return folder / "agent-eval-report"


def _report_picture(browser: Browser, file: Path) -> None:
    """Show the first screen."""
    with open_page(browser, file, "light", 1180, 3200) as page:
        height = _bottom(page, ".cause-board")
        page.screenshot(path=PICTURES / "report.png", clip=_clip(0, height, 1180))


def _clip(top: float, height: float, width: float) -> FloatRect:
    return {"x": 0, "y": top, "width": width, "height": height}


def _bottom(page: Page, selector: str) -> float:
    box = page.locator(selector).first.bounding_box()
    if box is None:
        raise SystemExit(f"pictures.py: the page shows no {selector}")
    return box["y"] + box["height"] + PADDING


def _measure() -> int:
    sizes = {path.name: path.stat().st_size for path in sorted(PICTURES.glob("*.png"))}
    for name, size in sizes.items():
        print(f"docs/pictures/{name}: {size // 1000} kB")
    too_large = [name for name, size in sizes.items() if size > LARGEST]
    if too_large:
        print(f"pictures.py: over {LARGEST // 1000} kB: {', '.join(too_large)}")
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
