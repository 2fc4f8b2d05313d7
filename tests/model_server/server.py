"""The server: uvicorn on a loopback port, in a thread of its own or as its own process."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.model_server import anthropic, bedrock, gemini, responses, streams
from tests.model_server.script import Script, Step, completion


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    body: dict[str, Any]
    headers: dict[str, str]


class _Uvicorn(uvicorn.Server):
    """Stops when it is told, not at the next tick of a tenth of a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.stop = asyncio.Event()

    async def main_loop(self) -> None:
        self.loop = asyncio.get_running_loop()
        await self.stop.wait()
        self.force_exit = True

    def handle_exit(self, sig: int, frame: Any) -> None:
        super().handle_exit(sig, frame)
        # A signal's handler runs beside the loop, which sleeps until it is woken.
        self.loop.call_soon_threadsafe(self.stop.set)


class ModelServer:
    """Answers from a script and counts; a context manager that serves from a thread.

    `requests` are the requests in order of arrival, `peak` the most that were open at
    once. `release()` lets everything that hangs, and will hang, go on.
    """

    def __init__(
        self, scripts: Script | Mapping[str, Sequence[Any]] | Sequence[Any], *, port: int = 0
    ) -> None:
        self.script = scripts if isinstance(scripts, Script) else Script(scripts)
        self.requests: list[Asked] = []
        self.open = 0
        self.peak = 0
        self._changed = threading.Condition()
        self._released = asyncio.Event()
        self._serving = threading.Event()
        # Named as TCP: asyncio turns Nagle's algorithm off only where the protocol says so.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", port))
        self._socket.listen(512)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clients = ExitStack()
        config = uvicorn.Config(self.app(), log_level="critical", lifespan="off", ws="none")
        self._server = _Uvicorn(config)
        self._thread = threading.Thread(target=self._run, name="model-server", daemon=True)

    @property
    def root_url(self) -> str:
        """The address without a path: the base URL of Anthropic, Gemini and Bedrock."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    @property
    def base_url(self) -> str:
        """What a provider's `base_url` is set to."""
        return f"{self.root_url}/v1"

    @property
    def chat_url(self) -> str:
        """The address of the chat completions."""
        return f"{self.base_url}/chat/completions"

    def app(self) -> Starlette:
        """The routes: the five APIs, and raw answers for others."""
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
                Route("/v1/responses", self._complete, methods=["POST"]),
                Route("/v1/messages", self._complete, methods=["POST"]),
                Route("/{version}/models/{call}", self._complete, methods=["POST"]),
                Route("/model/{model}/{call}", self._complete, methods=["POST"]),
                Route("/{path:path}", self._complete, methods=["POST"]),
            ]
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._on_loop(self._server.stop.set)
        self._thread.join()
        self._socket.close()
        self._clients.close()

    def openai_client(self, **options: Any) -> Any:
        """A client for this server, closed with it: the collector would close it in another test."""
        from openai import OpenAI

        client = OpenAI(base_url=self.base_url, api_key="k", **options)
        return self._clients.enter_context(client)

    def serve(self) -> None:
        """Serve in this thread until a signal."""
        self._run()

    def release(self) -> None:
        """Let what hangs go on; from any thread."""
        self._on_loop(self._released.set)

    def wait_for_requests(self, count: int, timeout_s: float = 600) -> None:
        """Block until so many requests have arrived."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: len(self.requests) >= count, timeout_s)
        assert arrived, f"{len(self.requests)} of {count} requests arrived"

    async def requests_arrived(self, count: int) -> None:
        """Wait, without holding the loop, until so many requests have arrived."""
        await asyncio.to_thread(self.wait_for_requests, count)

    def _on_loop(self, do: Callable[[], None]) -> None:
        self._serving.wait()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(do)

    def _run(self) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            self._serving.set()
            await self._server.serve([self._socket])

        asyncio.run(serve())

    async def _complete(self, request: Request) -> Response:
        body = await request.json()
        with self._changed:
            self.requests.append(Asked(body, dict(request.headers)))
            self.open += 1
            self.peak = max(self.peak, self.open)
            self._changed.notify_all()
        try:
            return await self._answer(body, request)
        finally:
            self.open -= 1

    def choose_step(self, _body: dict[str, Any], messages: Sequence[dict[str, Any]]) -> Step:
        """Return what answers a request, of which these are the messages."""
        return self.script.step(messages)

    async def _answer(self, body: dict[str, Any], request: Request) -> Response:
        model, api = _read_path(request.url.path)
        is_asked = not {"messages", "input", "contents"}.isdisjoint(body)  # or of another service
        messages = _MESSAGES.get(api, _without_messages)(body) if is_asked else []
        step = self.choose_step(body, messages)
        if step.delay_ms:
            await asyncio.sleep(step.delay_ms / 1000)
        if step.hang:
            await self._hang(request)
        if step.status != 200:
            return _error(step)
        if step.chunks:
            raw = self._send_chunks(step)
            return StreamingResponse(raw, media_type=step.content_type, headers=step.headers)
        if step.body is not None:
            return Response(step.body, media_type=step.content_type, headers=step.headers)
        turn = sum(1 for message in messages if message["role"] == "assistant") + 1
        answer = _ANSWERS[api](step, model or body["model"], turn)
        if not body.get("stream") and "stream" not in api.lower():
            return JSONResponse(answer)
        events = [*_EVENTS[api](body, answer)][: step.break_after]
        kind = bedrock.STREAM_TYPE if api == "converse-stream" else "text/event-stream"
        return StreamingResponse(self._stream(step, events), media_type=kind)

    async def _stream(self, step: Step, events: Sequence[bytes]) -> AsyncIterator[bytes]:
        """Send the events; the stream of a broken-off step hangs, and ends without its last."""
        for event in events:
            yield event
        if step.break_after is not None:
            await self._released.wait()

    async def _send_chunks(self, step: Step) -> AsyncIterator[str | bytes]:
        for number, chunk in enumerate(step.chunks, 1):
            yield chunk
            if number == step.hang_after:
                await self._released.wait()
            if number == step.drop_after:
                raise ConnectionAbortedError

    async def _hang(self, request: Request) -> None:
        """Wait for the release, or for the client to hang up."""

        async def gone() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        waits = [asyncio.ensure_future(w) for w in (self._released.wait(), gone())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


def _read_path(path: str) -> tuple[str, str]:
    """Return the model in a path, if it names one, and the API's last word."""
    parts = path.strip("/").split("/")
    model, colon, api = parts[-1].partition(":")
    if colon:
        return model, api
    return (unquote(parts[1]) if parts[0] == "model" else ""), parts[-1]


def _without_messages(_: Any) -> list[dict[str, Any]]:
    return []


_MESSAGES: Mapping[str, Callable[[Any], list[dict[str, Any]]]] = {
    "completions": lambda body: body["messages"],
    "responses": lambda body: responses.as_messages(body["input"]),
    "messages": lambda body: anthropic.as_messages(body["messages"]),
    **dict.fromkeys(
        ("generateContent", "streamGenerateContent"),
        lambda body: gemini.as_messages(body["contents"]),
    ),
    **dict.fromkeys(
        ("converse", "converse-stream"), lambda body: bedrock.as_messages(body["messages"])
    ),
}
_ANSWERS: Mapping[str, Callable[[Step, str, int], dict[str, Any]]] = {
    "completions": completion,
    "responses": responses.response,
    "messages": anthropic.message,
    **dict.fromkeys(("generateContent", "streamGenerateContent"), gemini.answer),
    **dict.fromkeys(("converse", "converse-stream"), bedrock.answer),
}


def _chat_events(body: dict[str, Any], answer: dict[str, Any]) -> Iterator[bytes]:
    options = body.get("stream_options") or {}
    return streams.chat_events(answer, with_usage=options.get("include_usage") is True)


_EVENTS: Mapping[str, Callable[[Any, Any], Iterator[bytes]]] = {
    "completions": _chat_events,
    "responses": lambda _, answer: streams.response_events(answer),
    "messages": lambda _, answer: streams.message_events(answer),
    "streamGenerateContent": lambda _, answer: gemini.events(answer),
    "converse-stream": lambda _, answer: bedrock.events(answer),
}


def _error(step: Step) -> Response:
    headers = dict(step.headers)
    if step.retry_after is not None:
        headers["Retry-After"] = step.retry_after
    error = {"message": f"scripted {step.status}", "type": "scripted", "code": step.code}
    return JSONResponse({"error": error}, status_code=step.status, headers=headers)
