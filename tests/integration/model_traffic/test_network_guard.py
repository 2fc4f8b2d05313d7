"""Replay reaches nothing beyond the loopback. No address here exists: 192.0.2.0/24 is reserved."""

from __future__ import annotations

import socket
import threading

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3

from ci_agent_eval.model_traffic import network_guard
from ci_agent_eval.model_traffic.network_guard import RefusedConnectionError, is_local
from tests.integration.model_traffic.clients import CLIENTS
from tests.tables import each_row

CONNECTION_ERRORS = (
    httpx.ConnectError,
    httpx2.ConnectError,
    requests.ConnectionError,
    urllib3.exceptions.NewConnectionError,
    aiohttp.ClientConnectorError,
)
BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


@each_row("address", ["http://192.0.2.1/", "http://model.example/v1"])
@each_row("name", CLIENTS)
def test_no_client_reaches_another_machine(name, address):
    client = CLIENTS[name]()
    with network_guard.refuse_connections(), pytest.raises(CONNECTION_ERRORS) as refused:
        client.post(address, BODY)
    client.close()
    host = address.split("/")[2]
    chain, error = [], refused.value
    while error is not None:
        chain.append(str(error))
        error = error.__cause__ or error.__context__
    assert f"no connection to {host}:80: a replayed suite reaches only this machine" in " ".join(
        chain
    )


def test_sockets_are_refused_in_every_thread():
    refused = []

    def connect():
        with socket.socket() as connection:
            try:
                connection.connect(("192.0.2.1", 443))
            except RefusedConnectionError as error:
                refused.append(str(error))

    with network_guard.refuse_connections():
        thread = threading.Thread(target=connect)
        thread.start()
        thread.join()
    assert refused[0].startswith("no connection to 192.0.2.1:443: ")


def test_datagrams_and_names_are_refused():
    with (
        network_guard.refuse_connections(),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        with pytest.raises(RefusedConnectionError, match=r"192\.0\.2\.1:53"):
            datagrams.sendto(b"", ("192.0.2.1", 53))
        with pytest.raises(RefusedConnectionError, match=r"192\.0\.2\.1:53"):
            datagrams.sendmsg([b""], [], 0, ("192.0.2.1", 53))
        with pytest.raises(RefusedConnectionError, match=r"model\.example"):
            socket.gethostbyname("model.example")
        with pytest.raises(RefusedConnectionError, match=r"model\.example:443"):
            socket.getaddrinfo(b"model.example", 443)


def test_the_guard_ends_with_its_last_user():
    with network_guard.refuse_connections():
        with network_guard.refuse_connections():
            pass
        with pytest.raises(RefusedConnectionError):
            socket.gethostbyname("model.example")
    assert socket.gethostbyname("127.0.0.1") == "127.0.0.1"
    network_guard._audit("socket.gethostbyname", ("model.example",))  # as outside: not refused


@each_row(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::1%lo", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", True),
        ("::", True),
        ("", True),
        (None, True),
        (b"localhost", True),
        ("LOCALHOST.", True),
        ("api.localhost", True),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("localhost.example", False),
        ("127.0.0.1.example", False),
        ("metadata", False),
    ],
)
def test_local_hosts(host, expected):
    assert is_local(host) is expected
