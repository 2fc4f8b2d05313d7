"""The server: uvicorn on a loopback port, in a thread of its own or as its own process."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.model_server.responses import as_messages, response
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
        config = uvicorn.Config(self.app(), log_level="critical", lifespan="off", ws="none")
        self._server = _Uvicorn(config)
        self._thread = threading.Thread(target=self._run, name="model-server", daemon=True)

    @property
    def base_url(self) -> str:
        """What a provider's `base_url` is set to."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def app(self) -> Starlette:
        """The routes: OpenAI's two, and two to look and to release from another process."""
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
                Route("/v1/responses", self._complete, methods=["POST"]),
                Route("/release", self._release, methods=["POST"]),
                Route("/stats", self._stats, methods=["GET"]),
            ]
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._on_loop(self._server.stop.set)
        self._thread.join(10)
        self._socket.close()

    def serve(self) -> None:
        """Serve in this thread until a signal."""
        self._run()

    def release(self) -> None:
        """Let what hangs go on; from any thread."""
        self._on_loop(self._released.set)

    def wait_for_requests(self, count: int, timeout_s: float = 20) -> None:
        """Block until so many requests have arrived."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: len(self.requests) >= count, timeout_s)
        assert arrived, f"{len(self.requests)} of {count} requests arrived"

    async def requests_arrived(self, count: int) -> None:
        """Wait, without holding the loop, until so many requests have arrived."""
        await asyncio.to_thread(self.wait_for_requests, count)

    def _on_loop(self, do: Callable[[], None]) -> None:
        self._serving.wait(10)
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

    async def _answer(self, body: dict[str, Any], request: Request) -> Response:
        is_chat = "messages" in body
        messages = body["messages"] if is_chat else as_messages(body["input"])
        step = self.script.step(messages)
        if step.delay_ms:
            await asyncio.sleep(step.delay_ms / 1000)
        if step.hang:
            await self._hang(request)
        if step.status != 200:
            return _error(step)
        if step.body is not None:
            return Response(step.body, media_type=step.content_type)
        turn = sum(1 for message in messages if message["role"] == "assistant") + 1
        answer = completion if is_chat else response
        return JSONResponse(answer(step, body["model"], turn))

    async def _hang(self, request: Request) -> None:
        """Wait for the release, or for the client to hang up."""

        async def gone() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        waits = [asyncio.ensure_future(w) for w in (self._released.wait(), gone())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _release(self, _: Request) -> Response:
        self._released.set()
        return JSONResponse({})

    async def _stats(self, _: Request) -> Response:
        return JSONResponse({"requests": len(self.requests), "open": self.open, "peak": self.peak})


def _error(step: Step) -> Response:
    headers = {} if step.retry_after is None else {"Retry-After": step.retry_after}
    error = {"message": f"scripted {step.status}", "type": "scripted", "code": step.code}
    return JSONResponse({"error": error}, status_code=step.status, headers=headers)
