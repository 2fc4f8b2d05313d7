"""The records of an experiment: data set items and results. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

Json = Mapping[str, Any]

LOST = "the process ended before the test did"
"""Reason of a result that was started and never ended."""


@dataclass(frozen=True, slots=True)
class ItemContent:
    """The content of a data set item; equal contents are the same item."""

    input: Json
    expected_output: Json | None = None
    metadata: Json | None = None

    def fields(self) -> dict[str, Any]:
        """Return the parts that are set, by their names in a data set."""
        parts = {
            "input": self.input,
            "expected_output": self.expected_output,
            "metadata": self.metadata,
        }
        return {name: dict(part) for name, part in parts.items() if part is not None}

    @property
    def hash(self) -> str:
        """A hash of the content that does not depend on the order of keys."""
        return hashlib.sha256(encode_canonical_json(self.fields()).encode()).hexdigest()


def encode_canonical_json(value: object) -> str:
    """Encode a JSON value as text that is identical for equal values."""
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def build_content(
    test_name: str, *, given: object, expected_output: object = None, metadata: object = None
) -> ItemContent:
    """Build an item's content as Opik's plugin does: other values are wrapped in an object.

    The test's name is part of its input. All values must be JSON.
    """
    inputs = given if isinstance(given, Mapping) else {"input": given}
    return ItemContent(
        input={"test_name": test_name, **inputs},
        expected_output=_wrap_value("expected_output", expected_output),
        metadata=_wrap_value("metadata", metadata),
    )


def _wrap_value(name: str, value: Any) -> Json | None:
    return value if value is None or isinstance(value, Mapping) else {name: value}


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A named score of a result."""

    name: str
    value: float
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """The result of one test."""

    nodeid: str
    outcome: str = "error"
    reason: str | None = LOST
    scores: tuple[ScoreRow, ...] = ()
    content: ItemContent | None = None
    item_id: str | None = None
    trace_id: str = ""
    """Id of its trace on a server; a UUID of version 7, like `item_id`."""
    attempts: int = 1
    started: str = ""
    """ISO 8601, UTC, like `ended`."""
    ended: str | None = None


@dataclass(frozen=True, slots=True)
class Experiment:
    """One run of tests on a data set."""

    uid: str
    """A UUID of version 7: it begins with the time."""
    name: str
    dataset: str
    started: str
    ended: str | None = None
    commit: str | None = None
    settings: Json = field(default_factory=dict)
    sink: str | None = None
    """The server to send it to."""
    sent: str | None = None
    """Time when it was sent."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """Number of results of each outcome; set by the store."""


def make_uuid7(milliseconds: int, random: bytes) -> str:
    """Build a UUID of version 7 (RFC 9562, 5.7) from Unix time and ten random bytes."""
    number = milliseconds << 80 | int.from_bytes(random, "big")
    number = number & ~(0xF << 76) | 0x7 << 76
    return str(UUID(int=number & ~(0b11 << 62) | 0b10 << 62))
