"""The small parts: headers, memories, open calls, complaints, whose calls are looked at."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic.forwarding.headers import (
    build_upstream_headers,
    get_end_to_end_headers,
    get_header,
    replace_body_headers,
)
from ci_agent_eval.model_traffic.forwarding.upstream import parse_upstream
from ci_agent_eval.steering.policy.model import Allow
from ci_agent_eval.steering.policy.settings import GeneralRule, SteeringSettings
from ci_agent_eval.steering.proxy import proxy_errors
from ci_agent_eval.steering.proxy.answer_rewriter import AnswerRewriter
from ci_agent_eval.steering.proxy.lru import LruCache
from ci_agent_eval.steering.proxy.open_calls import OpenCallStore
from ci_agent_eval.steering.proxy.responses import OpenCall
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls, SessionReview
from ci_agent_eval.steering.proxy.server import get_host_warning
from ci_agent_eval.steering.proxy.tool_filter import build_tool_filter
from tests import llm_wire as wire

CALL = OpenCall(wire.response_item(0, wire.bash("pytest")), "Fewer.")
RESULT = {"type": "function_call_output", "call_id": "call_0", "output": "Fewer."}


# Headers


def headers(*lines):
    return [tuple(line.encode().split(b": ")) for line in lines]


def test_headers_of_a_connection_stay_on_it():
    given = headers(
        "Connection: X-A, close",
        "X-A: 1",
        "TE: x",
        "X-B: 2",
        "x-b: 3",
        "Transfer-Encoding: chunked",
    )
    assert get_end_to_end_headers(given) == headers("x-b: 2", "x-b: 3")


def test_a_connection_header_cannot_take_the_length_away():
    given = headers("connection: content-length", "content-length: 3")
    assert get_end_to_end_headers(given) == headers("content-length: 3")


def test_the_provider_gets_neither_our_host_nor_a_coding_to_undo():
    given = headers("host: proxy", "accept-encoding: gzip", "content-length: 3", "a: b")
    assert build_upstream_headers(given, plain=True) == headers("a: b", "accept-encoding: identity")
    assert build_upstream_headers(given, plain=False) == given[1:]


def test_other_bytes_have_another_description():
    given = headers("etag: e", "content-encoding: gzip", "content-length: 9", "a: b")
    assert replace_body_headers(given) == headers("a: b")
    assert replace_body_headers(given, 4) == headers("a: b", "content-length: 4")
    assert get_header(headers("a: 1", "a: 2"), b"a") == "1, 2"


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


def open_calls(request=None, response_id="resp_1", calls=(CALL,)):
    calls_of = OpenCallStore()
    calls_of.remember(request or {}, response_id, calls)
    return calls_of


def test_a_call_of_the_response_before_is_answered():
    request = {"previous_response_id": "resp_1", "input": [{"role": "user", "content": "x"}]}
    assert open_calls().add_missing_results(request)
    assert request["input"] == [RESULT, {"role": "user", "content": "x"}]


def test_a_request_may_go_on_from_a_response_more_than_once():
    calls = open_calls()
    assert calls.add_missing_results({"previous_response_id": "resp_1"})
    assert calls.add_missing_results({"previous_response_id": "resp_1"})


@pytest.mark.parametrize("entered", [None, "Go on.", [RESULT], [1, None, {}]])
def test_any_input_is_answered_once(entered):
    request = {"previous_response_id": "resp_1", "input": entered}
    open_calls().add_missing_results(request)
    results = [item for item in request["input"] if item == RESULT]
    assert len(results) == 1


def test_another_request_stays_as_it_is():
    for request in ({}, {"previous_response_id": "resp_2"}, {"input": "x"}, {"conversation": "c"}):
        before = dict(request)
        assert not open_calls().add_missing_results(request)
        assert request == before


def test_a_conversation_is_answered_until_the_provider_took_it():
    calls = open_calls({"conversation": {"id": "conv_1"}}, None)
    assert calls.add_missing_results({"conversation": "conv_1"})
    assert calls.add_missing_results({"conversation": "conv_1"})
    calls.close_conversations({"conversation": "conv_1"})
    assert not calls.add_missing_results({"conversation": "conv_1"})


def test_our_message_in_a_history_becomes_the_call_and_its_result():
    request = {"input": [{"role": "user", "content": "x"}, {"type": "message", "id": "msg_call_0"}]}
    assert open_calls().add_missing_results(request)
    assert request["input"][1:] == [CALL.item, RESULT]


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("custom_tool_call", {"call_id": "c", "output": "Fewer."}),
        (
            "local_shell_call",
            {
                "id": "c",
                "output": json.dumps(
                    {"output": "Fewer.", "metadata": {"exit_code": 1}}, separators=(",", ":")
                ),
            },
        ),
        (
            "shell_call",
            {
                "call_id": "c",
                "output": [
                    {"stdout": "", "stderr": "Fewer.", "outcome": {"type": "exit", "exit_code": 1}}
                ],
            },
        ),
    ],
)
def test_each_kind_of_call_has_its_own_result(kind, result):
    call = OpenCall({"type": kind, "call_id": "c"}, "Fewer.")
    request = {"previous_response_id": "resp_1", "input": []}
    calls = open_calls(calls=[call])
    assert calls.add_missing_results(request)
    assert request["input"] == [{"type": f"{kind}_output", **result}]
    assert not calls.add_missing_results(request)


# Whose calls


def rule(*tools):
    return GeneralRule("r", "x", "m", tools)


@pytest.mark.parametrize(
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


def test_a_tool_that_concerns_nobody_is_not_asked_about():
    asked = []
    calls = ReviewedCalls(
        SessionReview(lambda call: asked.append(call) or Allow(""), lambda tool: tool == "bash")
    )
    assert calls.get_message("read", {}) is None
    assert asked == []


# Addresses, warnings, complaints


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("given", ["", "x", "//h", "http:/h", "https://u@h", "https://h#x"])
def test_what_is_no_upstream_is_refused(given):
    with pytest.raises(InputError, match="--upstream"):
        parse_upstream(given, "--upstream")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost", "LOCALHOST"])
def test_the_loopback_needs_no_warning(host):
    assert get_host_warning(host) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.3", "example.org", ""])
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


@pytest.mark.parametrize("depth", [100, 500, 900, 990, 1500, 5000, 50_000])
@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_no_depth_of_arguments_breaks_an_answer(api, depth):
    deep = json.loads("[" * 400 + "]" * 400)
    body = {"chat": wire.chat_body, "responses": wire.response_body, "messages": wire.message_body}
    text = json.dumps(body[api](("bash", {"a": deep, "command": "pytest"})))
    text = text.replace("[[[[", "[" * depth, 1).replace("]]]]", "]" * depth, 1)
    answer = AnswerRewriter(api, ReviewedCalls(SessionReview(lambda _call: Allow(""))))
    assert answer.rewrite(text.encode()) is None
