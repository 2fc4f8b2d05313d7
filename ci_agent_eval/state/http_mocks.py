"""Requests that mocks of HTTP recorded.

No mock is imported: each is known by its module and its attributes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ci_agent_eval.state.snapshot import Snapshot, describe_bytes

_LISTS: Mapping[str, Callable[[Any], Iterable[Any]]] = {
    "get_requests": lambda mock: mock.get_requests(),  # pytest-httpx
    "request_history": lambda mock: mock.request_history,  # requests-mock
    "calls": lambda mock: [call.request for call in mock.calls],  # respx, responses
    "log": lambda mock: [request for request, _ in mock.log],  # pytest-httpserver
}
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


def records_requests(mock: object) -> bool:
    """Say whether an object is a known mock of HTTP."""
    # `responses` and `respx` also record in their modules.
    module = mock.__name__ if isinstance(mock, ModuleType) else type(mock).__module__
    return module.partition(".")[0] in _MODULES


_MODULES = frozenset({"pytest_httpserver", "pytest_httpx", "requests_mock", "responses", "respx"})


def read_requests(mock: Any, snapshot: Snapshot) -> None:
    """Add every recorded request by its method and address, without headers."""
    attribute = next(name for name in _LISTS if hasattr(mock, name))
    for request in _LISTS[attribute](mock):
        name = f"{request.method} {_describe_address(str(request.url))}"
        snapshot.add(name, {"body": _read_body(request)})


def _describe_address(url: str) -> str:
    """Return the address; of a local server without its port, which differs in each run."""
    parts = urlsplit(url)
    if parts.hostname not in _LOCAL_HOSTS:
        return url
    return urlunsplit(("", "", parts.path or "/", parts.query, ""))


def _read_body(request: Any) -> Any:
    """Return JSON as a value, other text as text."""
    if hasattr(request, "get_data"):  # werkzeug
        body = request.get_data()
    else:  # httpx has `content`, requests `body`
        body = request.content if hasattr(request, "content") else request.body
    text = describe_bytes(body) if isinstance(body, bytes) else body
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text
