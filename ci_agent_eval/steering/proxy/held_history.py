"""Held calls behind the answers in clients' histories, by session."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import render_compact_json
from ci_agent_eval.steering.proxy.dialect import HeldAnswer
from ci_agent_eval.steering.proxy.lru import LruCache

_MAX_ANSWERS = 16_384
_MAX_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class HeldHistory:
    """Remembers the answers with held calls; drops the least recently used ones.

    A dropped one is no error: the client's history is complete without it.
    """

    _answers: LruCache[tuple[HeldAnswer, ...]] = field(
        default_factory=lambda: LruCache(_MAX_ANSWERS, _MAX_BYTES)
    )

    def remember(self, session: str, anchors: Sequence[str], answers: Sequence[HeldAnswer]) -> None:
        """Record the answers behind one answer of a client's history."""
        for anchor in anchors:
            self._answers.put(_hash(session, anchor), tuple(answers), _measure(answers))

    def find(self, session: str, anchors: Sequence[str]) -> Sequence[HeldAnswer]:
        """Return the answers behind an answer of a client's history; empty if there are none."""
        return next((held for a in anchors if (held := self._answers.find(_hash(session, a)))), ())


def _hash(session: str, anchor: str) -> str:
    return hashlib.sha256(render_compact_json([session, anchor])).hexdigest()


def _measure(answers: Sequence[HeldAnswer]) -> int:
    """Return the approximate size of answers in bytes."""
    calls = [(call.part, call.result) for answer in answers for call in answer.held]
    keys = [sorted(keys) for answer in answers for keys in answer.shown_keys]
    texts = [answer.shown_message for answer in answers]
    return len(render_compact_json([calls, keys, texts]))
