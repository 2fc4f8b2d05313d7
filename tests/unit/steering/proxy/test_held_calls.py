"""A held call gets the message as its result, and the client the model's next answer."""

from __future__ import annotations

import json

import httpx2

from ci_agent_eval.steering.proxy.answer_reviewer import NOT_RUN
from tests.tables import each_row
from tests.unit.steering.proxy.conversation_rig import (
    APIS,
    FULL,
    LS,
    MESSAGE,
    READ,
    USER,
    Failed,
    Once,
    Rig,
    Said,
    build_body,
    build_events,
    extend,
    list_calls,
    list_commands,
    respond,
)

every_api = each_row("api", APIS)
both_ways = each_row("is_streamed", [False, True], ids=["whole", "streamed"])


def read(api, body):
    """Return the text, the commands and the reason of an answer's end."""
    if api == "chat":
        choice = body["choices"][0]
        text, end = choice["message"].get("content"), choice["finish_reason"]
    elif api == "messages":
        text = "\n\n".join(b["text"] for b in body["content"] if b["type"] == "text")
        end = body["stop_reason"]
    else:
        texts = [p["text"] for i in body["output"] for p in i.get("content") or []]
        text, end = "\n\n".join(texts), body["status"]
    return text or "", list_commands(api, body), end


CALLED = {"chat": "tool_calls", "responses": "completed", "messages": "tool_use"}
ENDED = {"chat": "stop", "responses": "completed", "messages": "end_turn"}


def result_of(api, call_id):
    return {
        "chat": {"role": "tool", "tool_call_id": call_id, "content": MESSAGE},
        "responses": {"type": "function_call_output", "call_id": call_id, "output": MESSAGE},
        "messages": {"type": "tool_result", "tool_use_id": call_id, "content": MESSAGE},
    }[api]


@every_api
@both_ways
def test_an_insisted_call_reaches_the_client(api, is_streamed):
    rig = Rig(api, Said((FULL,)), Said((FULL,)), is_streamed=is_streamed)
    body = rig.send([USER])
    assert read(api, body) == ("", [FULL], CALLED[api])
    assert "call_2_0" in json.dumps(body)


@every_api
@both_ways
def test_the_same_call_twice_in_one_answer_is_no_second_attempt(api, is_streamed):
    rig = Rig(api, Said((FULL, FULL)), Said(text="ok"), is_streamed=is_streamed)
    assert read(api, rig.send([USER])) == ("ok", [], ENDED[api])


@every_api
@both_ways
def test_other_calls_of_the_answer_are_not_run(api, is_streamed):
    """The APIs require the results of all calls of an answer together."""
    script = [Said((LS, FULL, READ), "Now."), Said((LS, READ))]
    rig = Rig(api, *script, is_streamed=is_streamed)
    text = "Now." if is_streamed else ""
    assert read(api, rig.send([USER])) == (text, [LS, READ], CALLED[api])
    request = rig.provider.requests[1]
    assert list_calls(api, request) == ["call_1_0", "call_1_1", "call_1_2"]
    told = json.dumps(request)
    assert (told.count(NOT_RUN), told.count(MESSAGE)) == (2, 1)


@every_api
@both_ways
def test_the_clients_history_goes_on_without_the_held_call(api, is_streamed):
    script = [Said((FULL,), "Now.", "Hm."), Said((LS,), "So.", "Hm."), Said(text="ok")]
    rig = Rig(api, *script, is_streamed=is_streamed)
    rig.send(extend(api, [USER], rig.send([USER])))
    assert list_calls(api, rig.provider.requests[2]) == ["call_2_0"]


@every_api
@both_ways
def test_the_clients_usage_is_that_of_the_last_answer(api, is_streamed):
    """It is the size of the context."""
    rig = Rig(api, Said((FULL,)), Said(text="ok"), is_streamed=is_streamed)
    options = {"stream_options": {"include_usage": True}} if api == "chat" else {}
    usage = rig.send([USER], **options)["usage"]
    assert [usage.get("input_tokens", usage.get("prompt_tokens"))] == [200]
    assert [usage.get("output_tokens", usage.get("completion_tokens"))] == [2]


def test_reasoning_that_is_not_stored_is_sent_only_encrypted():
    body = build_body("responses", Said((FULL,), thinking="Hm."), 1)
    plain = {key: value for key, value in body["output"][0].items() if key != "encrypted_content"}
    body["output"].insert(0, plain)
    rig = Rig("responses", respond(json.dumps(body).encode()), Said(text="ok"))
    rig.send([USER], store=False)
    items = [i for i in rig.provider.requests[1]["input"] if i.get("type") == "reasoning"]
    assert [item["encrypted_content"] for item in items] == ["E1"]


# Where a call cannot be answered by the proxy


@every_api
@both_ways
@each_row("failure", [Failed(500), Failed(429), Failed(error=httpx2.ConnectError("no"))])
def test_after_a_failed_second_request_the_call_goes_through(api, is_streamed, failure, caplog):
    caplog.clear()
    rig = Rig(api, Said((FULL,), "Now."), failure, is_streamed=is_streamed)
    response = rig.send_raw([USER])
    body = build_body(api, Said((FULL,), "Now."), 1)
    sent = b"".join(build_events(api, body)) if is_streamed else json.dumps(body).encode()
    assert response.content == sent
    assert "a held call goes through: " in caplog.text


@every_api
@both_ways
def test_after_a_later_failure_the_second_answers_call_goes_through(api, is_streamed):
    script = [Said((FULL,), "One."), Said(("pytest -x",), "Two."), Failed()]
    rig = Rig(api, *script, is_streamed=is_streamed)
    text = "One.\n\nTwo." if is_streamed else "Two."
    assert read(api, rig.send([USER])) == (text, ["pytest -x"], CALLED[api])


@every_api
@both_ways
def test_an_answer_in_another_form_lets_the_call_through(api, is_streamed, caplog):
    caplog.clear()
    other = respond(b"{}", kind="application/json" if is_streamed else "text/event-stream")
    rig = Rig(api, Said((FULL,)), other, is_streamed=is_streamed)
    assert read(api, rig.send([USER]))[1] == [FULL]
    assert "another form" in caplog.text


@both_ways
@each_row(
    ("api", "more", "reason"),
    [
        ("chat", {"n": 2}, "several choices"),
        ("responses", {"background": True}, "in the background"),
    ],
)
def test_some_requests_cannot_be_continued(api, is_streamed, more, reason, caplog):
    caplog.clear()
    rig = Rig(api, Said((FULL,)), is_streamed=is_streamed)
    assert read(api, rig.send([USER], **more))[1] == [FULL]
    assert reason in caplog.text


@both_ways
@each_row(
    ("api", "stop"), [("chat", "length"), ("messages", "max_tokens"), ("responses", "incomplete")]
)
def test_a_call_of_an_answer_that_was_cut_off_goes_through(api, stop, is_streamed, caplog):
    caplog.clear()
    rig = Rig(api, Said((FULL,), stop=stop), is_streamed=is_streamed)
    assert read(api, rig.send([USER])) == ("", [FULL], stop)
    assert "the answer is incomplete" in caplog.text


@every_api
@both_ways
def test_a_request_without_a_session_is_not_steered(api, is_streamed, caplog):
    caplog.clear()
    rig = Rig(api, Said((FULL,)), is_streamed=is_streamed)
    assert read(api, rig.send([]))[1] == [FULL]
    assert "nothing in the request identifies its session" in caplog.text


@every_api
@both_ways
def test_a_request_that_takes_too_long_is_not_continued(api, is_streamed, caplog):
    caplog.clear()
    times = iter(range(0, 10_000, 700))
    rig = Rig(api, Said((FULL,)), is_streamed=is_streamed, clock=lambda: next(times))
    assert read(api, rig.send([USER]))[1] == [FULL]
    assert "more than 600 seconds" in caplog.text


@every_api
@both_ways
def test_a_model_that_only_makes_held_calls_may_then_make_none(api, is_streamed):
    class Always(Once):
        def review(self, call, session, now):
            self.met.clear()
            return super().review(call, session, now)

    script = [*[Said((FULL,))] * 4, Said(text="I give up.")]
    rig = Rig(api, *script, is_streamed=is_streamed, reviewer=Always())
    assert read(api, rig.send([USER]))[0] == "I give up."
    choices = [request.get("tool_choice") for request in rig.provider.requests]
    none = {"type": "none"} if api == "messages" else "none"
    assert choices == [None, None, None, None, none]


@every_api
@both_ways
def test_a_call_without_an_id_of_its_own_goes_through(api, is_streamed):
    body = build_body(api, Said((FULL, "pytest -x")), 1)
    text = json.dumps(body).replace("call_1_1", "call_1_0")
    body = json.loads(text)
    events = respond(*build_events(api, body), kind="text/event-stream")
    answer = events if is_streamed else respond(text.encode())
    rig = Rig(api, answer, is_streamed=is_streamed)
    assert len(read(api, rig.send([USER]))[1]) in (1, 2)
    assert len(rig.provider.requests) == 1


def test_calls_that_run_at_the_provider_are_left_alone():
    body = build_body("messages", Said((FULL,)), 1)
    body["content"][0]["caller"] = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
    rig = Rig("messages", respond(json.dumps(body).encode()))
    assert rig.send([USER]) == body
    program = {"type": "program", "caller_id": "p"}
    container = {"type": "container_reference", "container_id": "x"}
    for more in ({"caller": program}, {"environment": container}):
        body = build_body("responses", Said((FULL,)), 1)
        body["output"][0] |= more
        rig = Rig("responses", respond(json.dumps(body).encode()))
        assert rig.send([USER]) == body


# Responses that the provider stores


def test_a_request_continues_from_the_last_answer_of_a_stream():
    """The client knows the first one's id: one stream has one id."""
    rig = Rig("responses", Said((FULL,)), *[Said(text="ok")] * 3, is_streamed=True)
    assert rig.send([USER])["id"] == "resp_1"
    for name in ("resp_1", "resp_2"):
        rig.send("Go on.", previous_response_id=name)
        assert rig.provider.requests[-1]["previous_response_id"] == "resp_2"


def test_a_conversation_at_the_provider_gets_only_the_results():
    rig = Rig("responses", Said((FULL,)), Said((LS,)))
    rig.send_raw("Go.", conversation="conv_1")
    assert rig.provider.requests[1]["input"] == [result_of("responses", "call_1_0")]


EXIT = {"type": "exit", "exit_code": 1}
SHELL_OUTPUT = [{"stdout": "", "stderr": MESSAGE, "outcome": EXIT}]


@each_row(
    ("more", "output"),
    [
        (
            {"type": "local_shell_call", "action": {"type": "exec", "command": "pytest"}},
            {"id": "call_9", "output": f'{{"output":"{MESSAGE}","metadata":{{"exit_code":1}}}}'},
        ),
        (
            {"type": "shell_call", "action": {"commands": ["pytest"]}, "environment": None},
            {"call_id": "call_9", "output": SHELL_OUTPUT},
        ),
        (
            {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
            {"call_id": "call_9", "output": MESSAGE, "status": "failed"},
        ),
        (
            {"type": "custom_tool_call", "name": "bash", "input": '{"command": "pytest"}'},
            {"call_id": "call_9", "output": MESSAGE},
        ),
    ],
)
def test_each_kind_of_call_has_its_own_result(more, output):
    class Any(Once):
        def review(self, call, session, now):
            call = type(call)(call.tool, {"command": "pytest"})
            return super().review(call, session, now)

    body = build_body("responses", Said(), 1)
    body["output"] = [{"id": "x_1", "call_id": "call_9", "status": "completed", **more}]
    rig = Rig("responses", respond(json.dumps(body).encode()), Said(text="ok"), reviewer=Any())
    rig.send([USER])
    result = {"type": f"{more['type']}_output", **output}
    assert rig.provider.requests[1]["input"][-1] == result


@each_row("kind", ["computer_call", "mcp_approval_request"])
def test_beside_a_call_that_only_the_client_can_answer_a_call_goes_through(kind, caplog):
    body = build_body("responses", Said((FULL,)), 1)
    body["output"].append({"type": kind, "id": "x_1", "call_id": "call_9"})
    rig = Rig("responses", respond(json.dumps(body).encode()))
    assert rig.send([USER]) == body
    assert "only the client can answer" in caplog.text
