"""A provider and the proxy in front of it, on the loopback, in a thread of their own."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from dataclasses import dataclass
from uuid import uuid4

from ci_agent_eval.model_traffic.forwarding.listener import (
    bind_socket,
    build_server_config,
    get_url,
)
from ci_agent_eval.model_traffic.forwarding.upstream import open_client, parse_upstream
from ci_agent_eval.steering.policy.reactor import build_reactor
from ci_agent_eval.steering.policy.settings import DEFAULT_MESSAGE, SteeringSettings
from ci_agent_eval.steering.proxy.answer_reviewer import AnswerReviewer
from ci_agent_eval.steering.proxy.server import ProxyServer, SteeringProxy
from ci_agent_eval.steering.store import SteeringStore

MESSAGE = DEFAULT_MESSAGE
SETTINGS = SteeringSettings(enabled=True)
JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"


@dataclass(frozen=True)
class Asked:
    """One request as the provider got it."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    def values(self, name):
        return [value.decode() for key, value in self.headers if key == name.encode()]


def answering(*answers):
    """Return a provider that gives these answers in turn, and the last one for ever."""
    left = deque(answers)

    async def answer(asked, exchange):
        await (left.popleft() if len(left) > 1 else left[0])(asked, exchange)

    return answer


def answer(body, *, status=200, kind=JSON, headers=()):
    """Return one answer; `body` is JSON, or bytes, or a list of bytes sent one by one."""
    parts = body if isinstance(body, list) else [body]
    parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in parts]

    async def give(_asked, exchange):
        await exchange.start(status, [("content-type", kind), *headers])
        for part in parts:
            await exchange.part(part)
        await exchange.end()

    return give


def events(parts):
    return answer(parts, kind=EVENTS)


class Exchange:
    """The provider's end of one request."""

    def __init__(self, receive, send):
        self._receive, self._send = receive, send

    async def start(self, status=200, headers=(("content-type", EVENTS),)):
        raw = [(k.encode(), v.encode()) for k, v in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def part(self, body):
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self):
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def wait_until_disconnected(self):
        while (await self._receive())["type"] != "http.disconnect":
            pass


class Rig:
    """A context manager: `url` is the proxy's address, `asked` what reached the provider.

    `arrived` is released for each part of a request's body that the provider gets.
    """

    def __init__(
        self,
        answer,
        *,
        settings=SETTINGS,
        prefix="",
        read_timeout_s=20.0,
        reviewer=None,
        upstream=None,
        **options,
    ):
        self.asked = []
        self.arrived = threading.Semaphore(0)
        self._answer = answer
        self._listeners = [bind_socket("127.0.0.1", 0) for _ in range(2)]
        provider, self.url = map(get_url, self._listeners)
        self.upstream = parse_upstream(upstream or provider + prefix, "--upstream")
        memory = SteeringStore()

        def build_reviewer():
            return reviewer or build_reactor(settings, memory.for_answer(uuid4()))

        self._answer_reviewer = AnswerReviewer(build_reviewer, lambda: 0.0, **options)
        self._silence_s = read_timeout_s
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(600)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(600)
        assert not self._thread.is_alive()

    def on_loop(self, do):
        self._loop.call_soon_threadsafe(do)

    async def _run(self):
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with open_client(connect_s=120, read_timeout_s=self._silence_s) as client:
            proxy = SteeringProxy(self.upstream, client, self._answer_reviewer)
            servers = [
                _Server(build_server_config(app), self._stop) for app in (self._provide, proxy)
            ]
            serving = zip(servers, self._listeners, strict=True)
            async with asyncio.TaskGroup() as tasks:
                for server, listener in serving:
                    tasks.create_task(server.serve([listener]))
                self._ready.set()

    async def _provide(self, scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message.get("body", b""), message.get("more_body", False)
            self.arrived.release()
        target = scope["raw_path"] + (
            b"?" + scope["query_string"] if scope["query_string"] else b""
        )
        asked = Asked(scope["method"], target, list(scope["headers"]), body)
        self.asked.append(asked)
        await self._answer(asked, Exchange(receive, send))


class _Server(ProxyServer):
    """Stops when it is told, and not at the next tick."""

    def __init__(self, config, stop):
        super().__init__(config)
        self._stop = stop

    async def main_loop(self):
        await self._stop.wait()
        self.force_exit = True

    async def shutdown(self, sockets=None):
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        for server in self.servers:
            server.close()
        for task in list(self.server_state.tasks):
            task.cancel()
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)
