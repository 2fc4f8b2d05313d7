"""The small parts: headers, memories, complaints."""

from __future__ import annotations

from uuid import uuid4

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic.forwarding.headers import (
    get_end_to_end_headers,
)
from ci_agent_eval.model_traffic.forwarding.upstream import parse_upstream
from ci_agent_eval.steering.policy.reactor import build_reactor
from ci_agent_eval.steering.policy.settings import SteeringSettings
from ci_agent_eval.steering.proxy import answer_reviewer
from ci_agent_eval.steering.proxy.answer_reviewer import AnswerReviewer
from ci_agent_eval.steering.proxy.apis import ClientCall
from ci_agent_eval.steering.proxy.server import get_host_warning
from ci_agent_eval.steering.store import SteeringStore
from tests.tables import each_row
from tests.unit.steering.proxy.conversation_rig import FULL, USER, Rig, Said

# Headers


def headers(*lines):
    return [tuple(line.encode().split(b": ")) for line in lines]


def test_a_connection_header_cannot_take_the_length_away():
    given = headers("connection: content-length", "content-length: 3")
    assert get_end_to_end_headers(given) == headers("content-length: 3")


# Memories


def test_the_oldest_response_is_forgotten(monkeypatch):
    monkeypatch.setattr(answer_reviewer, "MAX_RESPONSES", 2)
    rig = Rig("responses", Said((FULL,)), *[Said(text="ok")] * 3, is_streamed=True)
    rig.send([USER])
    for continued in ("resp_2", "resp_1"):
        rig.send("Go on.", previous_response_id="resp_1")
        assert rig.provider.requests[-1]["previous_response_id"] == continued


def test_spellings_of_one_intent_in_one_answer_are_all_held_and_run_in_the_next():
    memory = SteeringStore()
    settings = SteeringSettings(enabled=True)
    review = AnswerReviewer(
        lambda: build_reactor(settings, memory.for_answer(uuid4())), lambda: 0.0
    )
    commands = ["pytest -q", "python -m pytest", "pytest | tail", "pytest -q"]
    calls = [ClientCall(str(at), "bash", {"command": c}) for at, c in enumerate(commands)]
    assert list(review.list_messages(calls, "s")) == ["0", "1", "2", "3"]
    assert review.list_messages(calls, "s") == {}


# Addresses, warnings, complaints


@each_row(
    ("given", "origin", "target"),
    [
        ("https://api.openai.com", "https://api.openai.com", b"/v1/x?a=1"),
        ("https://api.openai.com/", "https://api.openai.com", b"/v1/x?a=1"),
        ("http://h:81/a/b/", "http://h:81", b"/a/b/v1/x?a=1"),
        ("http://[::1]:8/a%20b", "http://[::1]:8", b"/a%20b/v1/x?a=1"),
    ],
)
def test_an_upstream_is_an_origin_and_a_prefix(given, origin, target):
    upstream = parse_upstream(given, "--upstream")
    assert upstream.origin == origin
    assert upstream.build_target(b"/v1/x", b"a=1") == target
    assert upstream.build_target(b"/v1/x", b"") == target.removesuffix(b"?a=1")


@each_row(
    ("given", "said"),
    [
        ("", "begin with http"),
        ("api.openai.com", "begin with http"),
        ("ftp://x", "begin with http"),
        ("http://", "begin with http"),
        ("http:/h", "begin with http"),
        ("http://[::1", "not an address"),
        ("https://u@h", "credentials"),
        ("https://x/?key=SECRET", "credentials"),
        ("https://h#x", ""),
    ],
)
def test_what_is_no_upstream_is_refused(given, said):
    with pytest.raises(InputError, match=f"--upstream.*{said}") as raised:
        parse_upstream(given, "--upstream")
    assert "SECRET" not in str(raised.value)


@each_row("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost", "LOCALHOST"])
def test_the_loopback_needs_no_warning(host):
    assert get_host_warning(host) is None


@each_row("host", ["0.0.0.0", "::", "192.168.0.3", "example.org", ""])
def test_other_hosts_do(host):
    assert "other machines reach it" in get_host_warning(host)
