"""Chromium for the scripts that make pictures: where it is, and a window of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

FONTS = """
body { font-family: Inter, system-ui, sans-serif !important; }
code, pre, .code, .tool, .place { font-family: "JetBrains Mono", monospace !important; }
"""


def find_browser() -> str | None:
    """Return the path of this machine's Chromium; None: there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)


@contextmanager
def open_browser(path: str) -> Iterator[Browser]:
    """Start Chromium without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def open_page(browser: Browser, file: Path, scheme: str, width: int, height: int) -> Iterator[Page]:
    """Open a file in a window of its own."""
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
