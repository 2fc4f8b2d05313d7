"""What holds for answers of every API: bytes that stay, chunks, limits, faults, damage."""

from __future__ import annotations

import copy
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.model_traffic.formats.sse import parse_data
from ci_agent_eval.steering.policy.model import Steer
from ci_agent_eval.steering.proxy.answer_rewriter import EventRewriter, find_api
from tests import llm_wire as wire
from tests.unit.steering.proxy.rewriting_rig import (
    APIS,
    BODIES,
    EVENTS,
    FULL,
    LS,
    MESSAGE,
    ONE,
    READ,
    answer_of,
    calmly,
    rewritten,
    streamed,
)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("calls", [(), (ONE,), (READ, LS), (LS, READ, ONE)])
@pytest.mark.parametrize("text", [None, "Let me see."])
def test_what_is_not_steered_stays_byte_for_byte(api, calls, text):
    assert rewritten(api, BODIES[api](*calls, text=text)) is None
    events = EVENTS[api](*calls, text=text)
    assert b"".join(streamed(api, events)) == b"".join(events)


@pytest.mark.parametrize("api", APIS)
def test_texts_and_calls_of_other_tools_are_not_held_for_an_event(api):
    events = EVENTS[api](READ, text="Let me see.")
    assert streamed(api, events)[:-1] == events


@pytest.mark.parametrize("api", APIS)
def test_a_call_that_goes_through_is_held_until_it_is_complete(api):
    events = EVENTS[api](LS)
    parts = streamed(api, events)
    held = [at for at, part in enumerate(parts[:-1]) if not part]
    assert held
    assert parts[max(held) + 1] == b"".join(events[min(held) : max(held) + 2])


@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_ends_without_its_last_line(api):
    events = EVENTS[api](LS)
    whole = b"".join(events).rstrip(b"\n")
    assert b"".join(streamed(api, [whole])) == whole


@pytest.mark.parametrize("api", APIS)
@calmly
@given(cuts=st.lists(st.integers(0, 4000), max_size=40))
def test_any_chunking_gives_the_same_bytes(api, cuts):
    stream = b"".join(EVENTS[api](LS, FULL, READ, text="Grüße"))
    at = sorted({min(c, len(stream)) for c in cuts} | {0, len(stream)})
    chunks = [stream[a:b] for a, b in itertools.pairwise(at)]
    assert b"".join(streamed(api, chunks)) == b"".join(streamed(api, [stream]))


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_small_chunks_give_the_same_bytes(api, size, end):
    stream = b"".join(EVENTS[api](LS, FULL, READ, text="Now.")).replace(b"\n", end)
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    got = b"".join(streamed(api, chunks))
    assert got == b"".join(streamed(api, [stream]))
    assert MESSAGE.encode() in got


@pytest.mark.parametrize("api", APIS)
def test_a_call_above_the_limit_passes_as_it_is(api):
    big = wire.bash("pytest " + "x" * 5000)
    events = EVENTS[api](big, text="Now:")
    rewriting = EventRewriter(answer_of(api, lambda _c: Steer("m", "r", "h")).create_stream(), 2000)
    out = [*(rewriting.feed(event) for event in events), rewriting.finish()]
    assert b"".join(out) == b"".join(events)
    assert "2000 bytes" in rewriting.bypass_reason


@pytest.mark.parametrize("api", APIS)
def test_an_event_above_the_limit_passes_as_it_is(api):
    rewriting = EventRewriter(answer_of(api).create_stream(), 100)
    chunk = b"data: " + b"x" * 200
    assert rewriting.feed(chunk) == chunk
    assert rewriting.feed(b"y\n\n") + rewriting.finish() == b"y\n\n"


@pytest.mark.parametrize("api", APIS)
def test_a_fault_in_the_rewriting_loses_nothing(api):
    def review(_call):
        raise ZeroDivisionError

    events = EVENTS[api](LS, READ)
    rewriting = EventRewriter(answer_of(api, review).create_stream(), 1_000_000)
    out = [*(rewriting.feed(event) for event in events), rewriting.finish()]
    assert b"".join(out) == b"".join(events)
    assert rewriting.bypass_reason == "unexpected ZeroDivisionError"


@pytest.mark.parametrize("api", APIS)
def test_a_fault_in_the_rewriting_leaves_a_whole_answer_as_it_is(api):
    def review(_call):
        raise ZeroDivisionError

    answer = answer_of(api, review)
    assert answer.rewrite(json.dumps(BODIES[api](LS)).encode()) is None
    assert answer.bypass_reason == "unexpected ZeroDivisionError"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=6,
)


@st.composite
def damaged(draw, bodies):
    """A document with one of its values replaced by something else."""
    root = [copy.deepcopy(draw(st.sampled_from(bodies)))]
    node, key = root, 0
    while isinstance(node[key], dict | list) and node[key] and draw(st.integers(0, 9)):
        node = node[key]
        key = draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
    if isinstance(node, dict) and draw(st.booleans()):
        del node[key]
    else:
        node[key] = draw(JSON)
    return root[0]


@pytest.mark.parametrize("api", APIS)
@calmly
@given(st.data())
def test_no_shape_of_a_body_breaks_the_rewriting(api, data):
    body = data.draw(damaged([BODIES[api](LS, FULL, READ, text="t")]))
    answer = answer_of(api)
    answer.rewrite(json.dumps(body).encode())
    assert answer.bypass_reason is None


@pytest.mark.parametrize("api", APIS)
@calmly
@given(st.data())
def test_no_shape_of_an_event_breaks_the_rewriting(api, data):
    events = EVENTS[api](LS, FULL, READ, text="t")
    at = data.draw(st.integers(0, len(events) - 1))
    payload = parse_data(events[at])
    if payload is not None:
        events[at] = wire.data(data.draw(damaged([payload])))
    rewriting = EventRewriter(answer_of(api).create_stream(), 1_000_000)
    for event in events:
        rewriting.feed(event)
    rewriting.finish()
    assert rewriting.bypass_reason is None


@pytest.mark.parametrize(
    ("method", "path", "api"),
    [
        ("POST", "/v1/chat/completions", "chat"),
        ("POST", "/openai/deployments/gpt/chat/completions", "chat"),
        ("POST", "/v1/responses", "responses"),
        ("POST", "/v1/responses/", "responses"),
        ("POST", "/v1/messages", "messages"),
        ("GET", "/v1/responses", None),
        ("POST", "/v1/responses/resp_1/cancel", None),
        ("POST", "/v1/messages/count_tokens", None),
        ("POST", "/v1/threads/thread_1/messages", None),
        ("GET", "/v1/models", None),
    ],
)
def test_the_path_names_the_api(method, path, api):
    assert find_api(method, path) == api
