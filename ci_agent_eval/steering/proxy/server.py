"""The proxy's server: uvicorn on a socket, stopped by a signal."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TextIO

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import HANDLED_SIGNALS

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.proxy.answer_reviewer import AnswerReviewer
from ci_agent_eval.steering.proxy.app import SteeringProxy
from ci_agent_eval.steering.proxy.upstream import Upstream, open_client

GRACE_S = 3
"""Seconds for open answers to finish after the first signal."""

_QUIET = ("httpx2", "httpcore2", "uvicorn", "hpack")
"""Libraries that would log headers and URLs with keys."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of the server."""

    upstream: Upstream
    answer_reviewer: AnswerReviewer
    host: str
    port: int
    connect_s: float
    read_timeout_s: float


def get_host_warning(host: str) -> str | None:
    """Return a warning for a host that is not the loopback; None for the loopback."""
    if _is_loopback(host):
        return None
    return (
        f"The proxy listens on {host}, where other machines reach it: it asks nobody who they "
        "are, and speaks no TLS, so that the keys of its clients cross the network in the "
        "clear. Put it behind something that does both, or use --host 127.0.0.1."
    )


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 selects a free port. Raises InputError."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = addresses[0]
        # asyncio disables Nagle's algorithm only if the protocol is explicitly TCP.
        listener = socket.socket(family, kind, protocol or socket.IPPROTO_TCP)
    except (OSError, OverflowError) as error:
        raise InputError(f"--host {host} is no address here: {error}. Try 127.0.0.1") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise InputError(
            f"the proxy cannot listen on {host}:{port} ({error.strerror}). Choose another "
            "--port; 0 takes a free one"
        ) from error
    return listener


def get_url(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def log_proxy_to(stream: TextIO) -> None:
    """Write the log of the proxy, without its libraries, to a stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("ci_agent_eval.steering.proxy")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


def silence_libraries() -> None:
    """Keep credentials out of the logs at any level."""
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)


class ProxyServer(uvicorn.Server):
    """A server that stores the signal that stopped it in `ended_by` and does not re-raise it."""

    ended_by: int | None = None
    ready: Callable[[], None] = staticmethod(lambda: None)
    """Called when the server is ready and handles signals."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server and call `ready`."""
        await super().startup(sockets)
        self.ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle stop signals in the main thread while serving."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        old_handlers = {
            number: signal.signal(number, self.handle_exit) for number in HANDLED_SIGNALS
        }
        try:
            yield
        finally:
            for number, handler in old_handlers.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Store the first signal and stop."""
        self.ended_by = self.ended_by or sig
        super().handle_exit(sig, frame)


def serve_proxy(options: ServeOptions, *, ready: Callable[[str], None]) -> int | None:
    """Serve until a signal and return it; call `ready` with the URL. Raises InputError."""
    with bind_socket(options.host, options.port) as listener:
        silence_libraries()
        if get_url(listener) == options.upstream.origin:
            raise InputError("--upstream is the proxy's own address. Name the provider's")
        return asyncio.run(_run_server(options, listener, lambda: ready(get_url(listener))))


async def _run_server(
    options: ServeOptions, listener: socket.socket, ready: Callable[[], None]
) -> int | None:
    client = open_client(connect_s=options.connect_s, read_timeout_s=options.read_timeout_s)
    async with client:
        app = SteeringProxy(options.upstream, client, options.answer_reviewer)
        server = ProxyServer(build_server_config(app))
        server.ready = ready
        await server.serve([listener])
    return server.ended_by


def build_server_config(app: ASGIApp) -> uvicorn.Config:
    """Build uvicorn's configuration, without own headers and log lines."""
    return uvicorn.Config(
        app,
        interface="asgi3",
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=256 * 1024,
        timeout_graceful_shutdown=GRACE_S,
    )
