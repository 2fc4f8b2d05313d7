"""The door to PyGithub, where the fake GitHub is not strange enough."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import requests
from urllib3.exceptions import (
    ConnectTimeoutError,
    MaxRetryError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)

from ci_agent_eval.github.client import Connection, _is_unfinished
from ci_agent_eval.github.request_retry import RequestRetry
from ci_agent_eval.github.retries import WaitBudget
from tests.integration.github.rig import BOT, MARKER, REPO, START, TOKEN, Rig
from tests.tables import each_row


class _Stranger(BaseHTTPRequestHandler):
    """Answers everything the same way, and is not GitHub."""

    status = 200
    kind = "text/html"

    def page(self) -> str:
        return "<html>Please log in @octocat</html>"

    def _serve(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        page = self.page().encode()
        self.send_response(self.status)
        self.send_header("Content-Type", self.kind)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    do_GET = do_POST = do_PATCH = _serve  # noqa: N815 - its names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        pass


class _Echo(_Stranger):
    """Repeats the token in its refusal."""

    status = 422
    kind = "application/json"

    def page(self) -> str:
        return json.dumps({"message": f"odd header {self.headers['Authorization']}"})


@contextmanager
def serving(handler: type[_Stranger]) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_proxys_page_is_not_taken_for_githubs_answer(rig: Rig):
    with serving(_Stranger) as url:
        result = rig.publish(api_url=url)

    assert result.has_failures
    assert all("the answer is not GitHub's" in problem for problem in result.problems)


def test_a_token_that_a_server_repeats_is_struck_out(rig: Rig):
    with serving(_Echo) as url:
        result = rig.publish(api_url=url)

    assert all("odd header token ***" in problem for problem in result.problems)
    assert len(result.problems) == 2


def test_the_token_is_in_no_repr(rig: Rig):
    link = Connection(REPO, TOKEN, rig.fake.url)
    with rig.connect(link) as api:
        assert TOKEN not in repr(link) + repr(api)


def test_pygithub_prints_nothing_of_its_own(rig: Rig, caplog: pytest.LogCaptureFixture):
    rig.fake.add_comment(REPO, 7, BOT, f"{MARKER}\nolder")
    rig.publish()

    assert any(request.status == 403 for request in rig.fake.requests)
    assert [record for record in caplog.records if record.name.startswith("github")] == []


def retry() -> RequestRetry:
    patience = WaitBudget(300, lambda _seconds: None, lambda _level, _text: None)
    return RequestRetry(patience=patience, clock=lambda: START)


@each_row("error", [ProtocolError("cut"), SSLError("cut in the middle"), TimeoutError("late")])
@each_row("method", ["POST", "PATCH"])
def test_a_write_that_may_have_arrived_is_not_repeated(method: str, error: Exception):
    with pytest.raises(type(error)):
        retry().increment(method, "/x", error=error)


@each_row("error", [NewConnectionError(None, "refused"), ConnectTimeoutError("no route")])
@each_row("method", ["GET", "POST", "PATCH"])
def test_a_request_that_was_never_sent_is_repeated(method: str, error: Exception):
    assert retry().increment(method, "/x", error=error).total == 3


@each_row(
    ("error", "is_repeated"),
    [
        (requests.exceptions.ChunkedEncodingError("cut"), True),
        (requests.ConnectionError(ReadTimeoutError(None, "/x", "late")), True),
        (requests.ConnectionError(MaxRetryError(None, "/x")), False),
        (ValueError("odd"), False),
    ],
)
def test_only_an_answer_that_broke_off_is_asked_for_anew(error: Exception, is_repeated: bool):
    """What urllib3 gave up on was repeated already."""
    assert _is_unfinished(error) == is_repeated


def test_an_answer_that_always_breaks_off_is_given_up(rig: Rig):
    rig.fake.faults.add("cut_halfway", on="GET */comments", times=None)

    result = rig.publish()

    assert result.comments[0].status == "failed"
    assert "Could not read the comments of #7: no answer" in result.comments[0].sentence
    assert len([one for one in rig.fake.requests if one.fault]) == 5
    assert rig.naps == [1, 2, 4, 8]
