"""The browser that the report is opened in, and what a test may ask of a page of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci_agent_eval.analysis.agent_names import assign_agents
from ci_agent_eval.analysis.comparison.model import BaselineRun, ConversationSample
from ci_agent_eval.analysis.loaded_results import build_episode_record
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.html.page import render_html
from ci_agent_eval.render.html.page_limits import PageLimits
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import report

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


def page_of(
    episodes: Iterable[Episode],
    *,
    built: Report | None = None,
    links: Links | None = None,
    budgets: SuiteBudgets | None = None,
    samples: Sequence[ConversationSample] = (),
    runs: Sequence[BaselineRun] = (),
    caps: PageLimits | None = None,
) -> str:
    """Return the page of these episodes, as the pipeline renders it."""
    ordered = sorted(episodes, key=lambda item: item.key)
    pieces = render_html(
        build_report_view(built or report(*ordered, budgets=budgets), links or Links()),
        tuple(assign_agents(build_episode_record(item) for item in ordered)),
        map(canonical_json, ordered),
        budgets=budgets or SuiteBudgets(),
        runs=runs or (BaselineRun((), samples=tuple(samples)),),
        caps=caps or PageLimits(),
    )
    return "".join(pieces)


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


def watch(page: Any, own: Path) -> Seen:
    """Write down what the page does; `own` is the file that it is."""
    seen = Seen()
    page.on("console", lambda message: seen.console.append(message.text))
    page.on("pageerror", lambda error: seen.errors.append(str(error)))

    def on_dialog(dialog: Any) -> None:
        seen.dialogs.append(dialog.message)
        dialog.dismiss()

    def on_request(request: Any) -> None:
        if request.url.split("#")[0] != own.as_uri():
            seen.requests.append(request.url)

    page.on("dialog", on_dialog)
    page.on("request", on_request)
    return seen
