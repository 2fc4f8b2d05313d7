"""The gateway's server: uvicorn in a thread, from its first episode to its last."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ci_agent_eval.model_traffic import attribution
from ci_agent_eval.model_traffic.forwarding.listener import (
    bind_socket,
    build_server_config,
    get_url,
)
from ci_agent_eval.model_traffic.gateway.app import GatewayApp, ServedEpisode
from ci_agent_eval.model_traffic.gateway.providers import build_environment
from ci_agent_eval.model_traffic.recorder import TrafficRecorder

_LIBRARIES = ("asyncio", "httpcore2.connection", "httpcore2.http11", "httpx2", "uvicorn.error")
"""Loggers of the libraries; the gateway's lines do not belong in the log of a test."""


@dataclass(frozen=True, slots=True)
class EpisodeAddress:
    """The gateway's address for the subprocesses of an episode."""

    url: str
    """`http://127.0.0.1:PORT/e/TOKEN`; the provider's name follows."""
    environ: Mapping[str, str] = field(repr=False)
    is_replay: bool = False

    def build_environment(self) -> dict[str, str]:
        """Return the base-URL variables of a subprocess; in replay also dummy keys."""
        return build_environment(self.url, self.environ, is_replay=self.is_replay)


@contextmanager
def serve_episode(
    recorder: TrafficRecorder, environ: Mapping[str, str]
) -> Iterator[EpisodeAddress]:
    """Serve an episode's subprocesses in the `with` block; at its end no request is open.

    `environ` holds the variables that they would have without the gateway: base URLs in it are
    the providers' addresses. Raises InputError for contradicting variables.
    """
    episode = ServedEpisode(recorder, environ)
    with _server_lifetime.use() as server:
        token = server.app.add_episode(episode)
        try:
            yield EpisodeAddress(f"{server.url}/e/{token}", environ, recorder.is_replay)
        finally:
            server.remove_episode(token)


class _GatewayServer:
    """The server and its thread."""

    def __init__(self) -> None:
        self.app = GatewayApp()
        self._socket = bind_socket("127.0.0.1", 0)
        self.url = get_url(self._socket)
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="model-gateway", daemon=True)

    def start(self) -> None:
        """Start the thread; the socket accepts connections already."""
        self._thread.start()
        self._loop.result()
        attribution.add_gateway_url(self.url)

    def stop(self) -> None:
        """Stop the thread and close the port."""
        attribution.remove_gateway_url(self.url)
        self._loop.result().call_soon_threadsafe(self._stopped.set)
        self._thread.join()
        self._socket.close()

    def remove_episode(self, token: str) -> None:
        """Remove an episode, and wait until its requests have ended."""
        removal = self.app.remove_episode(token)
        asyncio.run_coroutine_threadsafe(removal, self._loop.result()).result()

    def _run(self) -> None:
        # A new context: that of the thread that starts this one may belong to an episode.
        contextvars.Context().run(self._run_unrecorded)

    def _run_unrecorded(self) -> None:
        # The hooks would record the requests to the provider a second time.
        with attribution.suspend_recording(), _drop_log_lines():
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        # Without uvicorn.Server, which takes 0.1 s to stop and logs each start.
        config, state = build_server_config(self.app), ServerState()
        config.load()
        protocol = partial(H11Protocol, config, state, app_state={})
        loop = asyncio.get_running_loop()
        server = await loop.create_server(protocol, sock=self._socket)
        self._loop.set_result(loop)
        await self._stopped.wait()
        server.close()
        for connection in list(state.connections):
            connection.shutdown()
        await self.app.close()


@contextmanager
def _drop_log_lines() -> Iterator[None]:
    """Drop what libraries log in this thread; lines of other threads stay."""
    own_thread = threading.get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != own_thread

    loggers = [logging.getLogger(name) for name in _LIBRARIES]
    for logger in loggers:
        logger.addFilter(is_of_others)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_of_others)


class _ServerLifetime:
    """The server of this process: its first user starts it, its last one stops it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._server: _GatewayServer | None = None

    @contextmanager
    def use(self) -> Iterator[_GatewayServer]:
        """Keep the server running in the `with` block."""
        with self._lock:
            if self._server is None:
                self._server = _GatewayServer()
                self._server.start()
            self._users += 1
            server = self._server
        try:
            yield server
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    server.stop()
                    self._server = None


_server_lifetime = _ServerLifetime()
