"""The browser that the report is opened in, and what a test may ask of a page of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.render.links import Links
from tests.unit.render.html.rendered_page import page

NAMES = ("chromium", "chromium-browser", "google-chrome")
REQUIRED = "CHROMIUM_REQUIRED"
"""Where this variable is set, a machine without a browser fails instead of skipping."""


def chromium() -> str | None:
    """Return the path of the browser, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def missing_browser() -> str | None:
    """Say why there is no browser to test in, or None."""
    if chromium() is not None or os.environ.get(REQUIRED):
        return None
    return "no Chromium on this machine; `sudo scripts/chromium` installs it on Debian and Ubuntu"


def page_of(episodes: Iterable[Episode], *, links: Links | None = None, **options: Any) -> str:
    """Return the page of these episodes, as the pipeline renders it."""
    return page(*episodes, links=links or Links(), **options)


@dataclass
class Seen:
    """What a page did that no page of ours may do."""

    console: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def nothing(self) -> bool:
        """Whether it did none of it."""
        return not (self.console or self.errors or self.dialogs or self.requests)


@dataclass
class Opened:
    """A report that is open in the browser."""

    page: Any
    seen: Seen

    def rows(self) -> list[str]:
        """Return the titles of the episodes that are listed."""
        return self.page.locator("#episode-list .title").all_text_contents()

    def expect_status(self, text: str) -> None:
        """Wait until the page says so of how many were found: it follows its address later."""
        from playwright.sync_api import expect

        expect(self.page.locator("#episode-status")).to_have_text(text, timeout=600_000)


def watch(tab: Any, own: Path) -> Seen:
    """Write down what the page does; `own` is the file that it is."""
    seen = Seen()
    tab.on("console", lambda message: seen.console.append(message.text))
    tab.on("pageerror", lambda error: seen.errors.append(str(error)))

    def on_dialog(dialog: Any) -> None:
        seen.dialogs.append(dialog.message)
        dialog.dismiss()

    def on_request(request: Any) -> None:
        if request.url.split("#")[0] != own.as_uri():
            seen.requests.append(request.url)

    tab.on("dialog", on_dialog)
    tab.on("request", on_request)
    return seen
