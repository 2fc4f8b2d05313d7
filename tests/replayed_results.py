"""Results of a run and of its replay, made comparable."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

VARYING = {"duration_ms", "started_at", "wall_time_s", "was", "attempt_id", "source", "replayed"}
"""Fields that a replay has to change: times, and that it is one."""


def normalize(value: Any, varying: Collection[str] = ()) -> Any:
    """Return results without the fields that a replay changes, and without others."""
    if isinstance(value, dict):
        names = value.keys() - VARYING - set(varying)
        return {name: normalize(value[name], varying) for name in sorted(names)}
    return [normalize(item, varying) for item in value] if isinstance(value, list) else value
