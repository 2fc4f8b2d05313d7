"""The small parts: headers, memories, complaints, whose calls are looked at."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic.forwarding.headers import (
    get_end_to_end_headers,
)
from ci_agent_eval.model_traffic.forwarding.upstream import parse_upstream
from ci_agent_eval.steering.policy.reactor_builder import build_reactor
from ci_agent_eval.steering.policy.settings import GeneralRule, SteeringSettings
from ci_agent_eval.steering.policy.warned_commands import (
    AnswerWarnedCommands,
    InMemoryWarnedCommands,
)
from ci_agent_eval.steering.proxy import proxy_errors
from ci_agent_eval.steering.proxy.dialect import HeldAnswer, HeldCall
from ci_agent_eval.steering.proxy.held_history import HeldHistory
from ci_agent_eval.steering.proxy.lru import LruCache
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls
from ci_agent_eval.steering.proxy.server import get_host_warning
from ci_agent_eval.steering.proxy.session_review import ProxyReview
from ci_agent_eval.steering.proxy.stored_responses import StoredResponses
from ci_agent_eval.steering.proxy.tool_filter import build_tool_filter
from tests.tables import each_row

# Headers


def headers(*lines):
    return [tuple(line.encode().split(b": ")) for line in lines]


def test_a_connection_header_cannot_take_the_length_away():
    given = headers("connection: content-length", "content-length: 3")
    assert get_end_to_end_headers(given) == headers("content-length: 3")


# Memories


def test_what_was_asked_for_least_lately_is_forgotten():
    recent = LruCache(2)
    recent.put("a", 1)
    recent.put("b", 2)
    assert recent.find("a") == 1
    recent.put("c", 3)
    assert [recent.find(key) for key in "abc"] == [1, None, 3]
    recent.forget("a")
    recent.forget("a")
    assert recent.find("a") is None


def test_a_cache_keeps_its_size():
    sized = LruCache(10, max_size=5)
    sized.put("a", 1, 3)
    sized.put("b", 2, 2)
    assert sized.find("a") == 1
    sized.put("c", 3, 2)
    assert [sized.find(key) for key in "abc"] == [1, None, 3]
    sized.put("a", 4, 6)
    assert sized.find("a") is None


def test_held_calls_are_found_in_their_own_session():
    history = HeldHistory()
    held = (HeldAnswer((HeldCall(0, {"id": "c"}, {}),), has_client_calls=False),)
    history.remember("s", ["0:a", "0:b"], held)
    assert history.find("s", ["0:x", "0:b"]) == held
    assert not history.find("t", ["0:a"])


RESULT = {"type": "function_call_output", "call_id": "call_0", "output": "Fewer."}


def stored(request=None, response_id="resp_1"):
    responses = StoredResponses()
    responses.remember(request or {}, [response_id], [RESULT])
    return responses


@each_row("entered", [None, "Go on.", [RESULT], [1, None, {}]])
def test_any_input_is_answered_once(entered):
    request = {"previous_response_id": "resp_1", "input": entered}
    stored().continue_request(request)
    assert [item for item in request["input"] if item == RESULT] == [RESULT]


# Whose calls


def rule(*tools):
    return GeneralRule("r", "x", "m", tools)


@each_row(
    ("settings", "names", "others"),
    [
        (SteeringSettings(), [], ["bash", "read"]),
        (
            SteeringSettings(enabled=True),
            ["bash", "Bash", "mcp__x__bash", "mcp__x__run", "pytest", "run_pytest"],
            ["read", "run", ""],
        ),
        (SteeringSettings(dangerous=("disk",)), ["bash"], ["read"]),
        (SteeringSettings(general=(rule(),)), ["bash"], ["read", "pytest"]),
        (SteeringSettings(general=(rule("Read"),)), ["read", "READ"], ["bash"]),
        (SteeringSettings(general=(rule("*"),)), ["read", "bash", ""], []),
    ],
)
def test_only_calls_that_may_be_steered_are_held(settings, names, others):
    concerns = build_tool_filter(settings)
    assert [name for name in [*names, *others] if concerns(name)] == names


def test_spellings_of_one_intent_in_one_answer_are_all_held_and_run_in_the_next():
    memory = InMemoryWarnedCommands()
    settings = SteeringSettings(enabled=True)
    review = ProxyReview(
        lambda: build_reactor(settings, AnswerWarnedCommands(memory)), lambda _: True, lambda: 0.0
    )
    commands = ["pytest -q", "python -m pytest", "pytest | tail"]

    for expected in (True, False):
        calls = ReviewedCalls(review.for_session("s"))
        held = [calls.get_message("bash", {"command": each}) is not None for each in commands]
        assert held == [expected] * 3


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
        ("http://[::1", "no address"),
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


def test_complaints_have_the_shape_of_the_api():
    told = proxy_errors.build_internal_error(ValueError("SECRET"))
    assert json.loads(told.body("messages")) == {
        "type": "error",
        "error": {"type": "api_error", "message": told.message},
    }
    for api in ("chat", "responses", None):
        assert json.loads(told.body(api))["error"] == {
            "message": told.message,
            "type": "server_error",
            "param": None,
            "code": "proxy_error",
        }
    assert "SECRET" not in told.message
