"""Which requests belong to one session, and which do not."""

from __future__ import annotations

import json

from ci_agent_eval.steering.proxy.session_identity import identify_session
from tests.tables import each_row

SYSTEM = {"role": "system", "content": "You fix bugs."}
USER = {"role": "user", "content": "Fix it."}
CHAT = {"model": "m", "messages": [SYSTEM, USER]}


def session(body, headers=None, previous=None, header="x-session-id"):
    return identify_session(headers or {}, body, header, previous)


def later(body, *more):
    key = "messages" if "messages" in body else "input"
    return {**body, key: [*body[key], *more]}


BODIES = {
    "chat": CHAT,
    "responses": {"model": "m", "instructions": "You fix bugs.", "input": [USER]},
    "messages": {
        "model": "m",
        "system": [{"type": "text", "text": "You fix bugs."}],
        "messages": [USER],
    },
}
every_body = each_row("body", BODIES.values(), ids=BODIES)


@every_body
def test_a_conversation_keeps_its_session_as_it_grows(body):
    grown = later(
        body, {"role": "assistant", "content": "Hm."}, {"role": "user", "content": "Go on."}
    )
    assert session(grown) == session(body) is not None


@every_body
def test_marks_for_caches_and_forms_of_text_do_not_matter(body):
    def marked(message):
        part = {"type": "text", "text": message["content"], "cache_control": {"type": "ephemeral"}}
        return {**message, "content": [part]}

    key = "messages" if "messages" in body else "input"
    assert session({**body, key: [marked(m) for m in body[key]]}) == session(body)


@every_body
@each_row(
    "change",
    [
        {"model": "other"},
        {"prompt_cache_key": "k"},
        {"user": "u"},
        {"safety_identifier": "u"},
        {"metadata": {"user_id": "u"}},
    ],
)
def test_other_requests_are_other_sessions(body, change):
    assert session({**body, **change}) != session(body)


@every_body
@each_row("name", ["authorization", "x-api-key", "api-key"])
def test_other_keys_are_other_sessions_and_do_not_show(body, name):
    found = {session(body), session(body, {name: "a"}), session(body, {name: "b"})}
    assert len(found) == 3
    assert all(len(each) == 32 for each in found)


def asking(content):
    return {"messages": [{"role": "user", "content": content}]}


IMAGE = {"type": "image", "source": {"data": "A"}}


@each_row(
    ("one", "other", "is_same"),
    [
        (CHAT, {**CHAT, **asking("Fix that.")}, False),
        (CHAT, {**CHAT, "messages": [{"role": "developer", "content": "x"}, USER]}, False),
        ({"model": "m", "input": "Fix it."}, {"model": "m", "input": "Else."}, False),
        ({"model": "m", "input": "Fix it."}, {"model": "m", "input": [USER]}, True),
        (asking([IMAGE]), asking([{**IMAGE, "source": {"data": "B"}}]), False),
        (asking([IMAGE]), asking([{**IMAGE, "cache_control": {"type": "ephemeral"}}]), True),
    ],
)
def test_sessions_are_told_apart_by_how_they_begin(one, other, is_same):
    assert (session(one) == session(other)) is is_same


def test_the_header_comes_first():
    named = {"x-session-id": " s1 "}
    other = {"previous_response_id": "resp_1", **CHAT}
    assert session(CHAT, named) == session(other, {"x-session-id": "s1"}) == session({}, named)
    assert session(CHAT, named) != session(CHAT)
    assert session(CHAT, {"x-run": "1"}, header="X-Run") != session(
        CHAT, {"x-run": "2"}, header="X-Run"
    )
    assert session(CHAT, {"x-session-id": " "}) == session(CHAT)


def test_a_response_goes_on_in_the_session_of_the_one_before():
    body = {"model": "m", "input": "Go on.", "previous_response_id": "resp_1"}
    assert session(body, previous="abc") == "abc"
    assert session(body) == session({**body, "input": "Else."})
    assert session(body) != session({**body, "previous_response_id": "resp_2"})


@each_row("conversation", ["conv_1", {"id": "conv_1"}])
def test_a_conversation_at_the_provider_is_a_session(conversation):
    body = {"input": "Go on.", "conversation": conversation}
    assert session(body) == session({"input": "Else.", "conversation": "conv_1"})
    assert session(body) != session({"input": "Go on.", "conversation": "conv_2"})


@each_row(
    "user_id",
    [
        "user_0a1b_account_9c_session_12345678-aaaa-bbbb-cccc-1234567890ab",
        json.dumps({"device_id": "d", "session_id": "12345678-aaaa-bbbb-cccc-1234567890ab"}),
    ],
)
def test_a_session_in_the_users_id_outlives_a_compaction(user_id):
    body = {**BODIES["messages"], "metadata": {"user_id": user_id}}
    assert session(body) == session(
        {**body, "messages": [{"role": "user", "content": "Compacted."}]}
    )
    assert session(body) != session(
        {**body, "metadata": {"user_id": user_id.replace("1234", "9999")}}
    )


@each_row(
    "body",
    [
        {},
        {"model": "m"},
        {"messages": []},
        {"messages": [{"role": "assistant", "content": "x"}]},
        {"messages": 1},
        {"input": None},
    ],
)
def test_what_begins_with_nothing_has_no_session(body):
    assert session(body) is None
