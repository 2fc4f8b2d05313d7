"""The address of a scenario, as comments link to it: `report.html#scenario=ID`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ci_agent_eval.render.links import Links
from tests.builders import episode, failed_assertion, failing, turn
from tests.integration.html.browser import page_of

ODD = "refund/50 %, ä#b&c='d'"


def conversation(answer):
    return {"turns": [{"role": "user", "content": "May I return them?"}, turn(answer)]}


def suite():
    fails = [failed_assertion("states the limit", reason="it is not in the answer")]
    return [
        episode(ODD, trajectory=conversation("Within 30 days.")),
        failing(ODD, iteration=2, assertions=fails, trajectory=conversation("Within 60 days.")),
        failing("parcel", assertions=fails, trajectory=conversation("It is on its way.")),
    ]


def find_anchor(scenario_id: str) -> str:
    address = Links(report_url="https://github.com/o/r/1").conversation(scenario_id)
    assert address is not None
    return "#" + address.partition("#")[2]


@pytest.mark.parametrize(("name", "shown"), [(ODD, "Within 60 days."), ("parcel", "on its way")])
def test_it_opens_the_first_failing_conversation(show, name, shown):
    opened = show(page_of(suite()), fragment=find_anchor(name))
    assert opened.page.get_by_text(shown).first.is_visible()
    assert opened.seen.nothing(), opened.seen


@pytest.mark.parametrize("fragment", ["#scenario=gone", "#scenario=%E0%A4%A", "#scenario="])
def test_an_unknown_one_opens_the_report(show, fragment):
    opened = show(page_of(suite()), fragment=fragment)
    assert opened.page.locator("h1").first.is_visible()
    assert opened.seen.nothing(), opened.seen


@contextmanager
def serve(answer) -> Iterator[str]:
    """Serve every path by `answer(handler)` on the loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def send_page(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.end_headers()
    handler.wfile.write(page_of(suite()).encode())


def test_the_scenario_survives_a_redirect_to_another_host(browser):
    """An artifact's address leads to the storage with a redirect, which has no fragment."""
    with serve(send_page) as storage:

        def redirect(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(302)
            handler.send_header("Location", f"{storage}/report.html?signature=1")
            handler.end_headers()

        with serve(redirect) as address:
            page = browser.new_page()
            page.goto(f"{address}/artifacts/9{find_anchor(ODD)}")
            assert page.url.startswith(f"{storage}/report.html?signature=1#scenario=")
            assert page.get_by_text("Within 60 days.").first.is_visible()
            page.close()
