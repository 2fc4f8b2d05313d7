"""A browser for the tests of a module, and a page of it for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.html.browser import Opened, chromium, missing_browser, watch

SMOKE = "test_it_loads_and_shows_verdict_scenarios_and_episodes"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder as full, except for the one that shows that the page loads."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.name != SMOKE:
            item.add_marker("full")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window; where it is missing the tests are skipped and say why.

    Of a module, not of the session: while Playwright's synchronous API is open, its event loop
    counts as running in the process's main thread, and every `asyncio.run` of other tests fails.
    """
    if reason := missing_browser():
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # The tests may run as root in a container, where Chromium's own sandbox does not start.
        found = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Open a page's text as a file."""
    contexts = []

    def opened(text: str, *, fragment: str = "", **options: Any) -> Opened:
        file = tmp_path / "report.html"
        file.write_bytes(text.encode())
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        seen = watch(page, file)
        page.goto(file.as_uri() + fragment)
        return Opened(page, seen)

    yield opened
    for context in contexts:
        context.close()
