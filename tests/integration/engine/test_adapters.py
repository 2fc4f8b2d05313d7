from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from pydantic_ai import Agent
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelContextWindowExceededError,
    RunCancelled,
    RunTimedOut,
    UsageLimitExceeded,
)
from pydantic_ai.messages import BinaryImage, FilePart, ModelResponse, ThinkingPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from ci_agent_eval.engine.adapters import CommandAgent, HTTPAgent, LoopAgent, Reply, run_adapter
from ci_agent_eval.engine.cassette import CassetteStore
from ci_agent_eval.engine.limits import RunLimits
from ci_agent_eval.engine.result import CassetteCounts
from ci_agent_eval.engine.run import aitest_run
from ci_agent_eval.errors import InputError
from ci_agent_eval.redaction import Redactor
from tests.integration.engine import rig
from tests.model_server import ModelServer
from tests.model_server.script import call

SCRIPT = [{"tool_calls": [call("balance", account="checking")]}, "You have {tool}"]


def go(agent, prompt="my balance?", **options):
    return asyncio.run(run_adapter(agent, prompt, clock=time.monotonic, **options))


# Functions


async def echoes(message):
    return f"you said {message}"


def test_an_async_function_is_an_agent():
    result = go(echoes, "hello")
    assert (result.stop_reason, result.final_response) == ("completed", "you said hello")
    assert [turn.role for turn in result.turns] == ["user", "assistant"]
    assert result.agent == "echoes"
    assert result.turns[1].latency_ms is not None
    assert (result.token_usage, result.cost_usd) == (None, None)
    assert result.messages == (
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "you said hello"},
    )


def test_a_plain_function_runs_beside_the_loop_and_may_show_what_it_did():
    def respond(message):
        assert threading.current_thread() is not threading.main_thread()
        return Reply(
            "1500",
            tool_calls=[{"name": "balance", "arguments": {"a": 1}, "result": {"usd": 1500}}],
            usage={"input": 10, "output": 2},
            cost_usd=0.25,
        )

    result = go(respond)
    assert result.tool_call_arg("balance", "a") == 1
    assert result.all_tool_calls[0].result == {"usd": 1500}
    assert (result.token_usage.total, result.cost_usd) == (12, 0.25)


def test_a_function_of_two_sees_what_went_before():
    def respond(message, history):
        return f"{len(history)} before: {history[0]['content'] if history else '-'}"

    first = go(respond, "one")
    second = go(respond, "two", messages=first.messages)
    assert (first.final_response, second.final_response) == ("0 before: -", "2 before: one")
    assert len(second.messages) == 4


@pytest.mark.parametrize(
    ("respond", "said"),
    [
        (lambda message: 1 / 0, "the agent failed: ZeroDivisionError: division by zero"),
        (
            lambda message: next(iter(())),
            "the agent failed: RuntimeError: it raised StopIteration()",
        ),
        (lambda message: None, "returned a NoneType; return a text or a Reply"),
        (lambda message: Reply("x", tool_calls=[{"nom": 1}]), "cannot be read"),
        (lambda message: Reply("x", usage={"input": -1}), "cannot be read"),
    ],
)
def test_a_function_that_gives_no_answer_ends_the_run_and_no_other(respond, said):
    result = go(respond)
    assert (result.stop_reason, result.outcome) == ("model_error", "error")
    assert said in result.error


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_a_function_that_hangs_is_left_at_its_deadline(kind):
    release = threading.Event()

    async def hangs(message):
        await asyncio.Event().wait()

    def blocks(message):
        release.wait(30)

    result = go({"async": hangs, "plain": blocks}[kind], timeout_s=0.05)
    release.set()
    assert (result.stop_reason, result.error) == ("timeout", "it was not done after 0.05 s")
    assert result.turns[0].content == "my balance?"


def test_an_agent_says_itself_that_it_refused_or_went_too_far():
    assert go(lambda m: Reply("no", stop_reason="refusal", error="no")).stop_reason == "refusal"
    calls = [{"name": "x"}] * 3
    result = go(lambda m: Reply("y", tool_calls=calls), limits=RunLimits(tool_calls=2))
    assert result.stop_reason == "tool_call_limit"


@pytest.mark.parametrize(
    ("reply", "stop"),
    [
        ("", "empty_answer"),
        (Reply("  \n"), "empty_answer"),
        (Reply("", tool_calls=[{"name": "note"}]), "completed"),
        (Reply("You have", finish_reason="MAX_TOKENS"), "truncated"),
        (Reply("No.", finish_reason="refusal"), "refusal"),
        (Reply("Fine.", finish_reason="end_turn"), "completed"),
        (Reply("Fine.", finish_reason="a new word"), "completed"),
    ],
)
def test_an_answer_that_is_none(reply, stop):
    assert go(lambda message: reply).stop_reason == stop


class BadRequestError(Exception):
    """Stands for that of OpenAI's library."""

    code = "context_length_exceeded"


@pytest.mark.parametrize(
    ("error", "stop"),
    [
        (BadRequestError("too long"), "context_window"),
        (ModelContextWindowExceededError("gpt", "too long"), "context_window"),
        (ExceptionGroup("all", [BadRequestError("a"), BadRequestError("b")]), "context_window"),
        (ExceptionGroup("all", [BadRequestError("a"), ValueError("b")]), "model_error"),
        (ContentFilterError("filtered"), "refusal"),
        (UsageLimitExceeded("too many"), "max_turns"),
        (RunTimedOut("after 3 s"), "timeout"),
        (RunCancelled("by a tool"), "cancelled"),
        (ValueError("context_length_exceeded"), "model_error"),
    ],
)
def test_an_error_that_a_function_raises_says_how_its_model_ended(error, stop):
    def respond(message):
        raise error

    assert go(respond).stop_reason == stop


def test_allowed_ends_pass():
    def allowing(stops):
        async def once():
            async with rig.session() as opened:
                empty = lambda message: ""  # noqa: E731 - as a user may write it
                return await aitest_run(empty, "x", session=opened, allowed_stops=stops)

        return asyncio.run(once())

    assert allowing("empty_answer").outcome == "passed"
    assert allowing({"refusal"}).outcome == "failed"
    with pytest.raises(
        InputError, match=r"aitest_run\.allowed_stops: must be one or several of max_turns, "
    ):
        allowing({"model_error"})


def test_a_cancelled_run_is_seen_and_stays_cancelled():
    async def cancelled():
        seen, began = [], asyncio.Event()

        async def respond(message):
            began.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(
            run_adapter(respond, "hello", clock=time.monotonic, observer=seen.append)
        )
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [result.stop_reason for result in seen]

    assert asyncio.run(cancelled()) == ["cancelled"]


def test_what_is_no_agent_is_refused():
    with pytest.raises(InputError, match="int is no agent; give"):
        go(3)


# PydanticAI agents


def balance(account: str) -> dict[str, object]:
    """What an account holds."""
    return {"account": account, "usd": 1500}


def loop_agent(server, **options):
    model = OpenAIChatModel(
        "gpt-5-mini", provider=OpenAIProvider(base_url=server.base_url, api_key="k")
    )
    return Agent(model, tools=[balance], **options)


def test_a_pydantic_agent_is_an_agent():
    with ModelServer(SCRIPT) as server:
        result = go(loop_agent(server, name="teller"))
    assert (result.stop_reason, result.agent, result.model) == (
        "completed",
        "teller",
        "openai:gpt-5-mini",
    )
    assert result.final_response == 'You have {"account":"checking","usd":1500}'
    assert [turn.role for turn in result.turns] == ["user", "assistant", "assistant"]
    assert result.all_tool_calls[0].result == {"account": "checking", "usd": 1500}
    assert result.token_usage.total == 240
    assert all(turn.latency_ms is not None for turn in result.trajectory.agent_turns)


@pytest.mark.parametrize(
    ("script", "options", "reason"),
    [
        ([SCRIPT[0], {"hang": True}], {"timeout_s": 0.5}, "timeout"),
        ([SCRIPT[0], 400], {}, "model_error"),
        (SCRIPT, {"limits": RunLimits(max_turns=1)}, "max_turns"),
        ([SCRIPT[0], SCRIPT[0], "x"], {"limits": RunLimits(tool_calls=0)}, "tool_call_limit"),
    ],
)
def test_a_pydantic_agent_keeps_what_it_did_however_it_ends(script, options, reason):
    with ModelServer(script) as server:
        result = go(loop_agent(server), **options)
    assert result.stop_reason == reason
    assert result.tool_was_called("balance")


def test_a_pydantic_agent_goes_on_from_where_it_was():
    with ModelServer(["first", "second"]) as server:
        agent = loop_agent(server)
        first = go(agent, "one")
        second = go(agent, "two", messages=first.messages)
    assert [turn.content for turn in second.turns] == ["two", "second"]


def test_a_pydantic_agent_is_recorded_and_replayed(tmp_path):
    redactor = Redactor.from_environ({})
    with ModelServer(SCRIPT) as server:
        agent = loop_agent(server)
        with CassetteStore("record", redactor).episode("e", tmp_path, "s") as cassette_session:
            live = go(agent, cassette_session=cassette_session)
    with CassetteStore("replay", redactor).episode("e", tmp_path, "s") as cassette_session:
        again = go(agent, cassette_session=cassette_session)
    assert (live.cassette, again.cassette) == (CassetteCounts(live=2), CassetteCounts(hits=2))
    assert again.final_response == live.final_response
    assert again.turns[1].latency_ms == live.turns[1].latency_ms
    assert {t.source for t in again.trajectory.agent_turns} == {"replayed"}


def test_an_agent_known_by_its_models_name_needs_no_key_in_replay(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    redactor = Redactor.from_environ({})
    store = CassetteStore("record", redactor)
    with ModelServer(["hello"]) as server, store.episode("e", tmp_path, "s") as cassette_session:
        go(Agent(loop_agent(server).model), cassette_session=cassette_session)
    with CassetteStore("replay", redactor).episode("e", tmp_path, "s") as cassette_session:
        assert (
            go(
                Agent("openai-chat:gpt-5-mini", defer_model_check=True),
                cassette_session=cassette_session,
            ).final_response
            == "hello"
        )


def test_a_model_that_goes_past_the_cassette_is_refused(tmp_path):
    agent = Agent("openai:gpt-5-mini", defer_model_check=True)
    store = CassetteStore("replay", Redactor.from_environ({}))
    with (
        store.episode("e", tmp_path, "s") as cassette_session,
        agent.override(model=TestModel()),
        pytest.raises(InputError, match="its model is overridden"),
    ):
        go(agent, cassette_session=cassette_session)


def test_an_agent_without_a_model_is_refused():
    with pytest.raises(InputError, match="has no model"):
        go(LoopAgent(Agent(), name="x"))


def test_any_agent_stands_where_a_declared_one_does(tmp_path):
    def answer(agent, mode):
        async def once():
            store = CassetteStore(mode, Redactor.from_environ({}))
            opened = rig.session(cassettes=store, cassette_mode=mode)
            async with opened:
                with store.episode("e", tmp_path, "s"):
                    return await aitest_run(
                        agent, "my balance?", session=opened, episode_id="e", max_turns=5
                    )

        return asyncio.run(once())

    assert answer(echoes, "off").final_response == "you said my balance?"
    with ModelServer(SCRIPT) as server:
        agent = loop_agent(server)
        assert answer(agent, "record").cassette == CassetteCounts(live=2)
    assert answer(agent, "replay").cassette == CassetteCounts(hits=2)


def test_turns_asked_for_hold_for_any_agent():
    async def once(agent):
        async with rig.session() as opened:
            return await aitest_run(agent, "x", session=opened, max_turns=1)

    with ModelServer(SCRIPT) as server:
        result = asyncio.run(once(loop_agent(server)))
    assert (result.stop_reason, result.needs_turn) == ("max_turns", True)


def test_turns_that_were_taken_beyond_the_limit_are_not_counted_twice():
    result = go(python(SPEAKS), limits=RunLimits(max_turns=1))
    assert (result.stop_reason, result.needs_turn) == ("max_turns", False)


UNFINISHED = {
    "refusal": [{"refusal": "I will not."}],
    "truncated": [{"text": "You have", "finish_reason": "length"}],
    "context_window": [{"status": 400, "code": "context_length_exceeded"}],
    "empty_answer": [{"text": ""}, {"text": ""}],
}


@pytest.mark.parametrize("stop", UNFINISHED)
def test_a_pydantic_agent_that_does_not_finish(stop):
    with ModelServer(UNFINISHED[stop]) as server:
        result = go(loop_agent(server))
    assert (result.stop_reason, result.outcome) == (stop, "failed")


@pytest.mark.parametrize("stop", ["refusal", "truncated", "empty_answer"])
def test_a_replayed_run_ends_as_it_was_recorded(stop, tmp_path):
    def ask(agent, mode):
        async def once():
            store = CassetteStore(mode, Redactor.from_environ({}))
            async with rig.session(cassettes=store, cassette_mode=mode) as opened:
                with store.episode("e", tmp_path, "s"):
                    return await aitest_run(agent, "hi", session=opened, episode_id="e")

        return asyncio.run(once())

    with ModelServer(UNFINISHED[stop]) as server:
        live = ask(loop_agent(server), "record")
        replayed = ask(loop_agent(server), "replay")
    assert (replayed.stop_reason, replayed.error) == (live.stop_reason, live.error)
    assert live.stop_reason == stop
    reasons = [[turn.finish_reason for turn in one.turns] for one in (live, replayed)]
    assert reasons[0] == reasons[1]
    assert reasons[1][-1] is not None


def test_the_limit_of_an_agent_inside_is_no_turn_that_the_outer_one_needed():
    inner = Agent(TestModel(), tools=[balance])
    outer = Agent(TestModel())

    @outer.tool_plain
    async def delegate() -> str:
        return (await inner.run("x", usage_limits=UsageLimits(request_limit=1))).output

    result = go(outer, limits=RunLimits(max_turns=3))
    assert (result.stop_reason, result.outcome, result.needs_turn) == ("max_turns", "failed", False)


def test_typed_output_and_an_attachment_are_answers():
    def image(messages, info):
        return ModelResponse(parts=[FilePart(BinaryImage(b"png", media_type="image/png"))])

    model = FunctionModel(image, profile={"supports_image_output": True})
    result = go(Agent(model, output_type=BinaryImage))
    assert (result.stop_reason, result.final_response) == ("completed", "<image/png, 3 bytes>")
    typed = go(Agent(TestModel(custom_output_args={"usd": 3}), output_type=dict[str, int]))
    assert typed.stop_reason == "completed"


def test_thinking_alone_is_no_answer():
    def thinks(messages, info):
        return ModelResponse(parts=[ThinkingPart("hm")], finish_reason="stop")

    assert go(Agent(FunctionModel(thinks))).stop_reason == "empty_answer"


def test_an_answer_that_fails_its_type_is_not_empty():
    agent = Agent(TestModel(custom_output_args={"usd": "x"}), output_type=dict[str, int])
    assert go(agent).stop_reason != "empty_answer"


# HTTP


@contextmanager
def endpoint(answer):
    """An endpoint on the loopback; `answer(body)` gives what it responds."""
    asked = []

    async def respond(request):
        asked.append((await request.json(), dict(request.headers)))
        return answer(asked[-1][0])

    app = Starlette(routes=[Route("/chat", respond, methods=["POST"])])
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    socket.listen(64)  # from here on a client waits for the server and is not refused
    thread = threading.Thread(target=server.run, args=([socket],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/chat", asked
    finally:
        server.should_exit = True
        thread.join(10)
        socket.close()


def test_an_endpoint_is_an_agent():
    answer = {
        "text": "1500",
        "tool_calls": [{"name": "balance", "arguments": {"a": 1}, "result": 1500}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1},
        "cost_usd": 0.5,
    }
    with endpoint(lambda body: JSONResponse(answer)) as (url, asked):
        first = go(HTTPAgent(url, headers={"X-Key": "k"}))
        go(HTTPAgent(url), "and now?", messages=first.messages)
    assert (first.stop_reason, first.final_response) == ("completed", "1500")
    assert (first.token_usage.total, first.cost_usd) == (10, 0.5)
    assert first.tool_call_arg("balance", "a") == 1
    assert asked[0][0] == {"message": "my balance?", "messages": []}
    assert asked[0][1]["x-key"] == "k"
    assert [m["content"] for m in asked[1][0]["messages"]] == ["my balance?", "1500"]


def test_an_endpoints_own_forms_are_mapped():
    def answer(body):
        return JSONResponse({"choices": [{"message": {"content": body["input"]["q"].upper()}}]})

    with endpoint(answer) as (url, _):
        agent = HTTPAgent(url, body={"input": {"q": "{prompt}"}}, text="/choices/0/message/content")
        assert go(agent, "hi").final_response == "HI"


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (Response("<html>", 200), "answered no JSON: '<html>'"),
        (JSONResponse({"t": 1}), "answered without a text at /text"),
        (Response("down", 503), "answered with status 503: 'down'"),
        (Response("no", 429), "answered with status 429"),
        (RedirectResponse("http://127.0.0.1:1/"), "answered with status 307"),
        (JSONResponse({"text": "x" * 5000}), "answered more than 4000 bytes"),
    ],
)
def test_an_endpoint_that_gives_no_answer_is_the_worlds_error(response, said):
    with endpoint(lambda body: response) as (url, _):
        result = go(HTTPAgent(url + "?key=secret", cap_bytes=4000))
    assert (result.stop_reason, result.rate_limited) == ("model_error", int("429" in said))
    assert said in result.error
    assert "secret" not in f"{result.error}{result.agent}"


def choice(content, finish_reason):
    return {"choices": [{"message": {"content": content}, "finish_reason": finish_reason}]}


@pytest.mark.parametrize(
    ("response", "stop"),
    [
        (JSONResponse(choice("You have", "length")), "truncated"),
        (JSONResponse(choice(None, "content_filter")), "refusal"),
        (JSONResponse(choice(None, "stop")), "empty_answer"),
        (JSONResponse({"error": {"code": "context_length_exceeded"}}, 400), "context_window"),
        (JSONResponse({"error": {"code": "invalid_api_key"}}, 401), "model_error"),
        (Response("[" * 100_000, 400), "model_error"),
        (JSONResponse(choice("You have 1500.", "stop")), "completed"),
    ],
)
def test_an_endpoint_that_says_how_its_model_finished(response, stop):
    with endpoint(lambda body: response) as (url, _):
        at = "/choices/0"
        agent = HTTPAgent(url, text=f"{at}/message/content", finish_reason=f"{at}/finish_reason")
        result = go(agent)
    assert result.stop_reason == stop
    assert result.outcome == {"completed": "passed", "model_error": "error"}.get(stop, "failed")


def test_an_endpoint_nobody_listens_at():
    result = go(HTTPAgent("http://127.0.0.1:9/chat"))
    assert result.stop_reason == "model_error"
    assert "could not be asked: ConnectError" in result.error


@pytest.mark.parametrize(
    "wrong", [{"url": "ftp://x"}, {"url": ""}, {"url": "http://x", "text": "text"}]
)
def test_an_endpoint_declared_wrongly_names_the_field(wrong):
    with pytest.raises(InputError, match=r"HTTPAgent\.(url|text)"):
        HTTPAgent(**wrong)


# Commands


def python(code, **options):
    return CommandAgent([sys.executable, "-c", code], name="prog", **options)


SPEAKS = """
import json, sys
prompt = sys.stdin.read()
def say(**event): print(json.dumps(event), flush=True)
say(type="tool_call", name="balance", arguments={"q": prompt})
say(type="tool_result", result=1500)
say(type="text", text="You have 1500.")
say(type="usage", input=10, output=5)
"""


def test_a_program_is_an_agent():
    result = go(python(SPEAKS))
    assert (result.stop_reason, result.final_response, result.error) == (
        "completed",
        "You have 1500.",
        None,
    )
    assert result.tool_call_arg("balance", "q") == "my balance?"
    assert result.all_tool_calls[0].result == 1500
    assert [turn.role for turn in result.turns] == ["user", "assistant", "assistant"]


def test_a_program_may_be_told_what_went_before():
    code = "import json,sys; d=json.load(sys.stdin); print(json.dumps({'type':'text','text':str(len(d['messages']))+d['prompt']}))"
    agent = python(code, stdin="json")
    first = go(agent, "a")
    assert [first.final_response, go(agent, "b", messages=first.messages).final_response] == [
        "0a",
        "2b",
    ]


def test_a_program_gets_the_environment_it_is_given(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "secret")
    code = "import json,os; print(json.dumps({'type':'text','text':' '.join(k for k in ('MY_TOKEN','GIVEN') if k in os.environ)}))"
    assert go(python(code, env={"GIVEN": "1"})).final_response == "GIVEN"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "import sys; sys.exit('no luck')",
            "prog ended with exit code 1; its stderr ends with: no luck",
        ),
        ("print('hello')", "wrote a line 1 that cannot be read: it is no JSON"),
        ("print('x' * 10_000)\nimport time; time.sleep(60)", "wrote more than 5000 bytes"),
        ("while True: print('{}' * 5000, flush=True)", "wrote more than 5000 bytes"),
    ],
)
def test_a_program_that_breaks_is_an_infrastructure_error(code, said):
    result = go(python(code, cap_bytes=5000))
    assert result.stop_reason == "model_error"
    assert said in result.error


USAGE = 'print(\'{"type": "usage", "finish_reason": "max_tokens"}\')'
SAYS = 'print(\'{"type": "text", "text": "Well,"}\')'


@pytest.mark.parametrize(
    ("code", "stop", "said"),
    [
        ("pass", "empty_answer", "prog gave no answer; its stderr is empty"),
        (SAYS.replace("Well,", " "), "empty_answer", "no text"),
        (f"{SAYS}\n{USAGE}", "truncated", "token limit"),
        (f"{SAYS}\n{USAGE.replace('max_tokens', 'SAFETY')}", "refusal", "refused: Well,"),
    ],
)
def test_a_program_without_an_answer_is_an_agent_failure(code, stop, said):
    result = go(python(code))
    assert (result.stop_reason, result.outcome) == (stop, "failed")
    assert said in result.error


def test_a_program_that_is_not_there():
    result = go(CommandAgent(["/no/such/program"]))
    assert (result.stop_reason, result.agent) == ("model_error", "program")
    assert "could not be started" in result.error


def test_a_program_that_does_not_read_a_long_prompt_still_answers():
    code = """print('{"type": "text", "text": "no need"}')"""
    assert go(python(code), "x" * 1_000_000).final_response == "no need"


HANGS = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print('{"type": "text", "text": "%d"}' % child.pid, flush=True)
time.sleep(600)
"""


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def test_a_program_that_hangs_is_gone_with_its_children_and_keeps_what_it_said():
    result = go(python(HANGS), timeout_s=2)
    assert result.stop_reason == "timeout"
    assert not is_alive(int(result.final_response))


def test_a_child_that_outlives_a_program_is_gone_as_well():
    silent = "Popen(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, args="
    result = go(python(HANGS.rsplit("time.sleep", 1)[0].replace("Popen(", silent)))
    assert result.stop_reason == "completed"
    assert not is_alive(int(result.final_response))


def test_hostile_text_is_kept_as_text():
    text = "\ud800 \x00 ::error:: <!-- @all -->"
    code = f"import json; print(json.dumps({{'type': 'text', 'text': {json.dumps(text)}}}))"
    assert go(python(code)).final_response == "\ufffd \x00 ::error:: <!-- @all -->"
