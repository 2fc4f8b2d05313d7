"""A request in, a reply out: faults, tokens, the description's checks, and the request log."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.github_fake import spec
from tests.github_fake.faults import Fault, Faults
from tests.github_fake.routes import (
    HANDLERS,
    NOT_ACCESSIBLE,
    STORAGE,
    Call,
    RefusedError,
    Reply,
    stored,
)
from tests.github_fake.state import Token, World

GHES_PREFIX = "/api/v3"
"""Where GitHub Enterprise Server has its API."""

_WRITES = frozenset({"POST", "PATCH", "PUT", "DELETE"})


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the log keeps it; ``path`` is without the enterprise prefix."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    status: int | None
    """Status of the answer; None when the connection was cut."""

    fault: str | None
    """Kind of the fault that struck."""

    worked: bool
    """Whether the fake did what was asked, whatever it then answered."""

    @property
    def is_write(self) -> bool:
        """Whether the request asked for a change."""
        return self.method in _WRITES


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request as it came in."""

    method: str
    path: str
    query: Mapping[str, str]
    base: str
    authorization: str
    body: Any = None
    unreadable: str = ""
    """What kept the body from being read as JSON."""

    @classmethod
    def parse(
        cls, method: str, target: str, host: str, *, authorization: str, payload: bytes
    ) -> Incoming:
        """Read a request; ``target`` is the path with its query, ``host`` the Host header."""
        parts = urlsplit(target)
        prefix = GHES_PREFIX if parts.path.startswith(f"{GHES_PREFIX}/") else ""
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        path, base = parts.path.removeprefix(prefix), f"http://{host}{prefix}"
        try:
            body = json.loads(payload) if payload else None
        except ValueError as error:
            return cls(method, path, query, base, authorization, None, f"body: {error}")
        return cls(method, path, query, base, authorization, body)

    def logged(self, reply: Reply | None, fault: Fault | None, *, worked: bool) -> Request:
        """Return the log's entry for this request."""
        status = reply.status if reply else None
        kind = fault.kind if fault else None
        return Request(self.method, self.path, self.query, self.body, status, kind, worked)


_Found = tuple[spec.Operation, dict[str, str]]


class Api:
    """The fake without its socket; safe to call from several threads."""

    def __init__(self, *, validate: bool = True) -> None:
        self.world = World()
        self.faults = Faults()
        self.requests: list[Request] = []
        self.violations: list[str] = []
        self._validate = validate
        self.lock = threading.Lock()

    def exchange(self, asked: Incoming) -> Reply | None:
        """Answer one request; None means: close the connection without a word."""
        with self.lock:
            return self._exchange(asked)

    def _exchange(self, asked: Incoming) -> Reply | None:
        found = spec.find(asked.method, asked.path)
        problems = self._problems(asked, found)
        self._record(asked, problems)
        fault = self.faults.strike(asked.method, asked.path)
        reply, worked = None, False
        if fault is None or fault.works_first:
            reply = self._answer(asked, found, problems)
            worked = reply.status < 400
        if fault is not None and fault.kind == "cut_halfway" and reply is not None:
            reply = replace(reply, is_cut=True)
        elif fault is not None:
            reply = None if fault.cuts else Reply(*fault.reply())
        self.requests.append(asked.logged(reply, fault, worked=worked))
        return reply

    def _problems(self, asked: Incoming, found: _Found | None) -> list[str]:
        """Return how the request breaks the description."""
        if asked.path.startswith(STORAGE):
            return ["the storage was sent the API's token"] if asked.authorization else []
        if found is None:
            return ["not an operation this fake serves"]
        if asked.unreadable or not self._validate:
            return [asked.unreadable] if asked.unreadable else []
        operation, parameters = found
        return operation.request_errors(parameters, asked.query, asked.body)

    def _answer(self, asked: Incoming, found: _Found | None, problems: list[str]) -> Reply:
        """Answer a request that no fault keeps from being served."""
        if asked.path.startswith(STORAGE):
            return stored(self.world, asked.path, urlencode(asked.query))
        if found is None:
            return RefusedError(404, "Not Found").reply
        operation, parameters = found
        try:
            token = self._token(asked.authorization)
            call = Call(asked.base, asked.path, parameters, asked.query, asked.body, token)
            reply = self._served(operation, call, problems)
        except RefusedError as refused:
            reply = refused.reply
            if refused.breach:
                self._record(asked, [json.dumps(reply.body["errors"])])
        if self._validate:
            self._record(asked, operation.reply_errors(reply.status, reply.body))
        return reply

    def _served(self, operation: spec.Operation, call: Call, problems: list[str]) -> Reply:
        """Return the operation's reply; RefusedError when it may not or cannot be done."""
        if operation.method in _WRITES:
            _require_write(call.token)
        if problems:
            items = [{"code": "invalid", "message": problem} for problem in problems]
            raise RefusedError(422, "Invalid request.", items)
        return HANDLERS[operation.key](self.world, call)

    def _token(self, authorization: str) -> Token | None:
        """Return who asks; None without credentials, 401 for unknown ones."""
        if not authorization:
            return None
        secret = authorization.partition(" ")[2].strip()
        if secret not in self.world.tokens:
            raise RefusedError(401, "Bad credentials")
        return self.world.tokens[secret]

    def _record(self, asked: Incoming, problems: list[str]) -> None:
        self.violations.extend(f"{asked.method} {asked.path}: {one}" for one in problems)


def _require_write(token: Token | None) -> None:
    if token is None:
        raise RefusedError(401, "Requires authentication")
    if not token.can_write:
        raise RefusedError(403, NOT_ACCESSIBLE)
