"""A scripted provider, the proxy and a client that keeps the history, without sockets.

The provider refuses conversations that a real one refuses: calls without a result, results without
a call, roles that do not alternate.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from dataclasses import dataclass, field

import httpx2

from ci_agent_eval.model_traffic.formats.sse import parse_data
from ci_agent_eval.model_traffic.forwarding.upstream import Upstream
from ci_agent_eval.steering.policy.model import Allow, Steer
from ci_agent_eval.steering.proxy.answer_reviewer import AnswerReviewer
from ci_agent_eval.steering.proxy.apis import APIS as READERS
from ci_agent_eval.steering.proxy.server import SteeringProxy
from tests import llm_wire as wire
from tests.model_server import streams

MESSAGE = "Run fewer tests."
APIS = ["chat", "responses", "messages"]
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
HISTORY = {"chat": "messages", "responses": "input", "messages": "messages"}
FULL, LS, READ = "pytest", "ls", "read"


@dataclass(frozen=True)
class Said:
    """One answer of the model; a call is its command, or `read` for a tool that is no shell."""

    calls: tuple[str, ...] = ()
    text: str | None = None
    thinking: str | None = None
    stop: str | None = None


@dataclass(frozen=True)
class Failed:
    """A failed request: a status, or an exception."""

    status: int = 500
    error: Exception | None = None


class Once:
    """Holds a command without a path once in each session, as the real handler."""

    def __init__(self, message=MESSAGE):
        self.message = message
        self.met = set()
        self.fresh = set()

    def start_answer(self):
        self.fresh = set()
        return self

    def review(self, call, session, _now):
        command = call.arguments.get("command") if isinstance(call.arguments, dict) else None
        is_full = isinstance(command, str) and command.startswith("pytest") and "/" not in command
        is_new = (session, command) not in self.met or command in self.fresh
        self.met.add((session, command))
        self.fresh |= {command} if is_new else set()
        if is_full and is_new:
            return Steer(self.message, "the whole suite", "pytest-full-suite", command)
        return Allow("targeted")


# Answers


def call_of(command):
    return ("read_file", {"path": "a"}) if command == READ else ("bash", {"command": command})


def build_body(api, said, turn):
    """Return an answer; its ids are unique in the conversation."""
    calls = [call_of(command) for command in said.calls]
    body = {"chat": _chat, "responses": _response, "messages": _message}[api](said, calls, turn)
    text = re.sub(r'"(?:call|toolu)_(\d)', rf'"call_{turn}_\1', json.dumps(body))
    text = re.sub(r'"fc_(\d)', rf'"fc_{turn}_\1', text).replace('"msg_1"', f'"msg_{turn}"')
    return json.loads(text)


def _chat(said, calls, turn):
    body = wire.chat_body(*calls, text=said.text, finish=said.stop)
    if said.thinking:
        body["choices"][0]["message"]["reasoning_content"] = said.thinking
    used = {"prompt_tokens": 100 * turn, "completion_tokens": turn, "total_tokens": 101 * turn}
    return {**body, "id": f"chatcmpl-{turn}", "usage": used}


def _response(said, calls, turn):
    body = wire.response_body(*calls, text=said.text, name=f"resp_{turn}")
    if said.thinking:
        kept = {"encrypted_content": f"E{turn}"}
        reasoning = {"id": f"rs_{turn}", "type": "reasoning", "summary": [], **kept}
        body["output"].insert(0, reasoning)
    used = {"input_tokens": 100 * turn, "output_tokens": turn, "total_tokens": 101 * turn}
    return {**body, "status": said.stop or "completed", "usage": used}


def _message(said, calls, turn):
    body = wire.message_body(*calls, text=said.text, stop=said.stop)
    if said.thinking:
        block = {"type": "thinking", "thinking": said.thinking, "signature": f"S{turn}"}
        body["content"].insert(0, block)
    used = {"input_tokens": 100 * turn, "output_tokens": turn}
    return {**body, "usage": used}


def build_events(api, body):
    """Return the events of an answer."""
    build = {
        "chat": lambda: streams.chat_events(body, with_usage=True),
        "responses": lambda: streams.response_events(body),
        "messages": lambda: streams.message_events(body),
    }
    return list(build[api]())


def assemble(api, stream):
    """Put a stream together as a client does."""
    events = [parse_data(event + b"\n\n") for event in stream.split(b"\n\n")]
    return READERS[api].reader.assemble([event for event in events if event is not None])


# Conversations


def list_calls(api, request):
    """Return the ids of calls and results in order. Raises AssertionError as a provider does."""
    return {"chat": _check_chat, "responses": _check_responses, "messages": _check_messages}[api](
        request[HISTORY[api]]
    )


def _check_chat(messages):
    called, waiting = [], []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting, "a result without a call"
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, "a call without a result"
        waiting = [entry["id"] for entry in message.get("tool_calls", [])]
        called += waiting
        assert len(set(called)) == len(called), "a call twice"
        assert waiting or message.get("content") is not None
    assert not waiting, "a call without a result"
    return called


def _check_messages(messages):
    called, waiting = [], []
    for at, message in enumerate(messages):
        assert message["role"] == ("user", "assistant")[at % 2], "roles do not alternate"
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        assert blocks
        assert all(block.get("text") != "" for block in blocks), "an empty text"
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        assert sorted(results) == sorted(waiting), "calls and results differ"
        assert all(b["type"] == "tool_result" for b in blocks[: len(results)]), "results are first"
        waiting = [b["id"] for b in blocks if b["type"] == "tool_use"]
        called += waiting
    assert not waiting, "a call without a result"
    assert len(set(called)) == len(called), "a call twice"
    return called


def _check_responses(items):
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    called, waiting = [], []
    had_result = False
    for item, following in zip(items, [*items[1:], {}], strict=False):
        kind = item.get("type")
        if kind == "reasoning":
            is_followed = following.get("type") in ("message", "function_call")
            assert is_followed, "reasoning without its item"
        if kind == "function_call_output":
            assert item["call_id"] in waiting, "a result without a call"
            waiting.remove(item["call_id"])
            had_result = True
        elif kind == "function_call":
            assert not (waiting and had_result), "a call between results"
            waiting.append(item["call_id"])
            called.append(item["call_id"])
            had_result = False
        elif item.get("role") == "user":
            assert not waiting, "a call without a result"
    assert not waiting, "a call without a result"
    assert len(set(called)) == len(called), "a call twice"
    return called


def respond(*parts, status=200, kind="application/json"):
    """Return a response that is read part by part."""

    async def give():
        for part in parts:
            yield part

    return httpx2.Response(status, headers={"content-type": kind}, content=give())


@dataclass
class Provider:
    """Answers in turn, and checks each conversation."""

    api: str
    answers: deque
    faults: list = field(default_factory=list)
    requests: list = field(default_factory=list)
    bodies: list = field(default_factory=list)
    raw_requests: list = field(default_factory=list)

    async def handle(self, request):
        asked = json.loads(await request.aread())
        self.requests.append(asked)
        self.raw_requests.append(request.content)
        try:
            list_calls(self.api, asked)
        except AssertionError as error:
            self.faults.append(str(error))
        said = self.answers.popleft()
        if isinstance(said, Failed):
            if said.error is not None:
                raise said.error
            return respond(b'{"error": {"message": "no"}}', status=said.status)
        if isinstance(said, httpx2.Response):
            return said
        body = build_body(self.api, said, len(self.requests))
        self.bodies.append(body)
        if not asked.get("stream"):
            return respond(json.dumps(body).encode())
        return respond(*build_events(self.api, body), kind="text/event-stream")


class Rig:
    """The provider behind the proxy, and requests to it."""

    def __init__(self, api, *answers, is_streamed=False, reviewer=None, clock=lambda: 0.0):
        self.api, self.is_streamed = api, is_streamed
        self.provider = Provider(api, deque(answers))
        self.reviewer = reviewer or Once()
        self._answers = AnswerReviewer(self.reviewer.start_answer, clock)

    def send(self, history, **more):
        """Return the answer to one request as its client reads it."""
        response = self.send_raw(history, **more)
        assert response.status_code == 200, response.text
        assert self.provider.faults == []
        if self.is_streamed:
            return assemble(self.api, response.content)
        return response.json()

    def send_raw(self, history, *, headers=None, **more):
        fields = {"messages": {"max_tokens": 9}, "responses": {}, "chat": {}}[self.api]
        body = {"model": "m", HISTORY[self.api]: history, **fields, **more}
        if self.is_streamed:
            body["stream"] = True
        return asyncio.run(self._send(json.dumps(body).encode(), headers))

    async def _send(self, body, headers):
        provider = httpx2.MockTransport(self.provider.handle)
        async with httpx2.AsyncClient(transport=provider) as client:
            app = SteeringProxy(Upstream("http://provider"), client, self._answers)
            async with httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app=app), base_url="http://proxy"
            ) as caller:
                return await caller.post(PATHS[self.api], content=body, headers=headers)


USER = {"role": "user", "content": "Fix it."}


def list_commands(api, body):
    """Return the commands of an answer's calls."""
    return [c.arguments.get("command", READ) for c in READERS[api].list_calls(body)]


def extend(api, history, body, results=True):
    """Return the history with an answer, and with results of its calls or the user's next words."""
    calls = [call.id for call in READERS[api].list_calls(body)]
    if api == "responses":
        outputs = [{"type": "function_call_output", "call_id": i, "output": "ok"} for i in calls]
        return [*history, *body["output"], *(outputs or [{"role": "user", "content": "Go on."}])]
    if api == "messages":
        answer = {"role": "assistant", "content": body["content"]}
        results = [{"type": "tool_result", "tool_use_id": i, "content": "ok"} for i in calls]
        return [*history, answer, {"role": "user", "content": results or "Go on."}]
    message = {k: v for k, v in body["choices"][0]["message"].items() if v is not None}
    results = [{"role": "tool", "tool_call_id": i, "content": "ok"} for i in calls]
    more = results or [{"role": "user", "content": "Go on."}]
    return [*history, {"content": None, **message}, *more]
