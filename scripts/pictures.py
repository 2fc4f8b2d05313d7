"""`make pictures`: make the pictures of docs/pictures anew, in the Chromium of this machine.

The report and the comment are what `agent-eval report` leaves for the results that
`pictures_data.py` writes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from browser_window import find_browser, open_page
from comment_pictures import picture_comment
from palette import shrink
from playwright.sync_api import Browser, FloatRect, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs/pictures"
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


def main() -> int:
    """Make every picture; exit status 1 where one is too large or there is no browser."""
    found = find_browser()
    if found is None:
        print("make pictures: there is no Chromium here; scripts/chromium installs it")
        return 1
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        report = _report(Path(name))
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        _report_picture(browser, report / "report.html")
        _changed_picture(browser, report / "report.html")
        _episode_picture(browser, report / "report.html")
        picture_comment(browser, report / "comment.md", PICTURES / "comment.png", 860)
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


def _report_picture(browser: Browser, file: Path) -> None:
    """Show the first screen, on a desktop and on a phone."""
    for name, width in (("report.png", 1180), ("report-phone.png", 390)):
        with open_page(browser, file, "light", width, 3200) as page:
            height = _bottom(page, ".cause-board")
            page.screenshot(path=PICTURES / name, clip=_clip(0, height, width))


def _changed_picture(browser: Browser, file: Path) -> None:
    """Show a scenario that changed, its conversations side by side, in the dark scheme."""
    with open_page(browser, file, "dark", 1180, 6000) as page:
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
    with open_page(browser, file, "dark", 1180, 6000) as page:
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
