"""The proxy's server: uvicorn on a socket, stopped by a signal."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TextIO

import uvicorn

from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic.forwarding.listener import (
    bind_socket,
    build_server_config,
    get_url,
)
from ci_agent_eval.model_traffic.forwarding.upstream import Upstream, open_client
from ci_agent_eval.steering.proxy.answer_reviewer import AnswerReviewer
from ci_agent_eval.steering.proxy.app import SteeringProxy

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
    if host.lower() in {"localhost", "::1"} or host.startswith("127."):
        return None
    return (
        f"The proxy listens on {host}, where other machines reach it: it asks nobody who they "
        "are, and speaks no TLS, so that the keys of its clients cross the network in the "
        "clear. Put it behind something that does both, or use --host 127.0.0.1."
    )


def bind_proxy_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 selects a free port. Raises InputError."""
    try:
        return bind_socket(host, port)
    except (socket.gaierror, OverflowError) as error:
        raise InputError(f"--host {host} is not an address here: {error}. Try 127.0.0.1") from error
    except OSError as error:
        raise InputError(
            f"the proxy cannot listen on {host}:{port} ({error.strerror}). Choose another "
            "--port; 0 takes a free one"
        ) from error


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

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's
        """Store the first signal and stop; a second one does not wait for open answers."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self.ended_by = self.ended_by or sig


def serve_proxy(options: ServeOptions, *, ready: Callable[[str], None]) -> int | None:
    """Serve until a signal and return it; call `ready` with the URL. Raises InputError."""
    with bind_proxy_socket(options.host, options.port) as listener:
        silence_libraries()
        url = get_url(listener)
        if url == options.upstream.origin:
            raise InputError("--upstream is the proxy's own address. Name the provider's")
        ready(url)
        return asyncio.run(_run_server(options, listener))


async def _run_server(options: ServeOptions, listener: socket.socket) -> int | None:
    client = open_client(connect_s=options.connect_s, read_timeout_s=options.read_timeout_s)
    async with client:
        app = SteeringProxy(options.upstream, client, options.answer_reviewer)
        server = ProxyServer(build_server_config(app))
        await server.serve([listener])
    return server.ended_by
