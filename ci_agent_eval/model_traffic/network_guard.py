"""Refusal of connections beyond the loopback, while a suite is replayed.

An audit hook sees what Python's `socket` module does in this process, in every thread. It cannot
see subprocesses, nor native code that calls the system itself (pycurl, grpc, database drivers);
where these matter, run the suite in a network namespace or a container without network.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

_lock = threading.Lock()
_count = 0
_is_hooked = False
_allowed: set[str] = set()


class RefusedConnectionError(PermissionError):
    """Raised for a connection beyond the loopback; clients treat it as a failed connection."""


@contextmanager
def refuse_connections(allowed: Collection[str] = ()) -> Iterator[None]:
    """Refuse connections beyond the loopback in the `with` block, in all threads.

    `allowed` are names and addresses of hosts that tests need besides, such as a database. They
    stay allowed in this process.
    """
    for host in allowed:
        _allow(host)
    _install()
    try:
        yield
    finally:
        _uninstall()


@cache
def _allow(host: str) -> None:
    """Allow a host and the addresses of its name."""
    _allowed.add(host.lower())
    # A name that is unknown here may still be one that no test asks for.
    with suppress(OSError):
        _allowed.update(str(found[4][0]) for found in socket.getaddrinfo(host, None))


def _install() -> None:
    """Refuse connections beyond the loopback; each call needs a call of `_uninstall`."""
    global _count, _is_hooked  # noqa: PLW0603 - an audit hook is for the process, and for good
    with _lock:
        _count += 1
        if not _is_hooked:
            sys.addaudithook(_audit)
            _is_hooked = True


def _uninstall() -> None:
    """Allow connections again, unless others still need the guard."""
    global _count  # noqa: PLW0603 - an audit hook is for the process
    with _lock:
        _count -= 1


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if _count and event.startswith("socket."):
        address = _find_address(event, args)
        if address is not None and not (is_local(address[0]) or _is_allowed(address[0])):
            _refuse(address)


def _find_address(event: str, args: tuple[Any, ...]) -> tuple[Any, Any] | None:
    """Return the host and the port of an event that could reach beyond this machine."""
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        connection, address = args[0], args[1]
        is_internet = connection.family in (socket.AF_INET, socket.AF_INET6)
        return (address[0], address[1]) if is_internet and address is not None else None
    if event == "socket.getaddrinfo":
        return args[0], args[1]
    return (args[0], None) if event == "socket.gethostbyname" else None


def is_local(host: str | bytes | None) -> bool:
    """Return whether a host is this machine: a loopback address, `localhost`, or unspecified."""
    if not host:
        return True
    name = _decode(host).lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_loopback or mapped.is_unspecified)


def _is_allowed(host: str | bytes) -> bool:
    return _decode(host).lower() in _allowed


def _decode(host: str | bytes) -> str:
    return host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)


def _refuse(address: tuple[Any, Any]) -> None:
    host, port = address
    name = _decode(host)
    place = name if port in (None, 0) else f"{name}:{port}"
    raise RefusedConnectionError(
        f"no connection to {place}: a replayed suite reaches only this machine."
        " Record the suite again, give the test a server on the loopback, or allow the host by the"
        " ini setting cassette_allowed_hosts."
    )
