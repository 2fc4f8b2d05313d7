"""Responses of OpenAI's API that clients may continue by their ids."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

MAX_RESPONSES = 4096


class KnownResponse(NamedTuple):
    """The session of a response, and the id from which the provider continues it."""

    session: str
    last_id: str
    """A stream has the id of the first answer; the provider continues from the last one."""


@dataclass(slots=True)
class KnownResponses:
    """Remembers the responses that were used last."""

    _known: OrderedDict[str, KnownResponse] = field(default_factory=OrderedDict)

    def remember(self, response_id: str, session: str, last_id: str) -> None:
        """Record a response, and forget the oldest one above the limit."""
        self._known.pop(response_id, None)
        self._known[response_id] = KnownResponse(session, last_id)
        if len(self._known) > MAX_RESPONSES:
            self._known.popitem(last=False)

    def find(self, response_id: object) -> KnownResponse | None:
        """Return a response and mark it as used; None if it is not known."""
        if not isinstance(response_id, str) or response_id not in self._known:
            return None
        self._known.move_to_end(response_id)
        return self._known[response_id]
