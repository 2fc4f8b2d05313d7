"""The recorded spans of real instrumentations in `tests/fixtures/spans`."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_FOLDER = Path(__file__).parent / "fixtures/spans"


def read_recorded_spans(name: str) -> list[Any]:
    """Return the spans of a file, with the attributes of OpenTelemetry's `ReadableSpan`."""
    return [
        SimpleNamespace(
            attributes=row["attributes"],
            events=[SimpleNamespace(**event) for event in row["events"]],
            start_time=row["start_time"],
            end_time=row["end_time"],
            context=SimpleNamespace(span_id=row["id"]),
            parent=None if row["parent"] is None else SimpleNamespace(span_id=row["parent"]),
            status=SimpleNamespace(is_ok=row["is_ok"], description=row["description"]),
        )
        for row in json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    ]
