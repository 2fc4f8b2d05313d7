"""Requests that each mock of HTTP recorded are the state of an episode."""

from __future__ import annotations

import pytest

SUITE = """
import httpx
import pytest
import requests
from ci_agent_eval import check
from ci_agent_eval.checks import FinalState

def refund(episode, post, url="https://bank.example"):
    with episode.turn("Refund") as turn:
        for usd in (39, 5):
            post(f"{url}/refunds?id=1", json={"usd": usd})
        turn.reply("Done.")
    name = "POST /refunds?id=1" if "localhost" in url else f"POST {url}/refunds?id=1"
    check(FinalState({name: {"body": {"usd": 39}}, f"{name} #2": {"body": {"usd": 5}}}))
"""

TESTS = {
    "respx": """
def test_mock(episode, respx_mock):
    respx_mock.post("https://bank.example/refunds").respond(200)
    episode.watch(respx_mock)
    refund(episode, httpx.post)
""",
    "pytest_httpx": """
def test_mock(episode, httpx_mock):
    httpx_mock.add_response(is_reusable=True)
    episode.watch(httpx_mock)
    refund(episode, httpx.post)
""",
    "requests_mock": """
def test_mock(episode, requests_mock):
    requests_mock.post("https://bank.example/refunds")
    episode.watch(requests_mock)
    refund(episode, requests.post)
""",
    "responses": """
import responses

@pytest.fixture
def bank():
    with responses.RequestsMock() as mock:
        mock.add(mock.POST, "https://bank.example/refunds")
        yield mock

def test_mock(episode, bank):
    episode.watch(bank)
    refund(episode, requests.post)
""",
    "pytest_httpserver": """
def test_mock(episode, httpserver):
    httpserver.expect_request("/refunds").respond_with_data("")
    episode.watch(httpserver)
    refund(episode, httpx.post, httpserver.url_for(""))
""",
}
PLUGINS = {
    "respx": ("respx.plugin",),
    "pytest_httpx": ("pytest_httpx",),
    "requests_mock": ("requests_mock.contrib._pytest_plugin",),
    "responses": (),
    "pytest_httpserver": ("pytest_httpserver.pytest_plugin",),
}


@pytest.mark.parametrize("mock", TESTS)
def test_the_requests_of_a_mock_are_a_state(suite, mock):
    pytest.importorskip(mock, reason=f"{mock} is not in this environment")
    suite.write(test_suite=SUITE + TESTS[mock])
    ran = suite.run(plugins=PLUGINS[mock])
    assert ran.status == 0, ran.output
