"""The listening socket and the configuration of a forwarding server."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from starlette.types import ASGIApp

GRACE_S = 3
"""Seconds for open answers to finish after the first signal."""


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 selects a free port.

    Raises socket.gaierror or OverflowError for an invalid address, OSError for a used one.
    """
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = addresses[0]
    # asyncio disables Nagle's algorithm only if the protocol is explicitly TCP.
    listener = socket.socket(family, kind, protocol or socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError:
        listener.close()
        raise
    return listener


def get_url(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


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
