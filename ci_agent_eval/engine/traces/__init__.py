"""Agents known by their OpenTelemetry spans alone: recorded in memory, read as a trajectory.

    with record_spans() as spans:
        await my_agent(prompt)
    trajectory = trajectory_from_spans(spans)

Names of attributes are those of the GenAI semantic conventions
(https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/), the older ones included.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from ci_agent_eval.engine.traces.spans import SpanLike
from ci_agent_eval.engine.traces.trajectory import trajectory_from_spans

__all__ = ["SpanLike", "record_spans", "trajectory_from_spans"]


def record_spans(provider: Any = None) -> AbstractContextManager[Sequence[SpanLike]]:
    """Record the spans that begin within: of this task and what it starts, of no other.

    `provider` is a tracer provider of OpenTelemetry's SDK; unset, the global one, which is
    made if there is none. Raises InputError where the SDK is missing or the provider is none
    of it. A span is there once it has ended.
    """
    from ci_agent_eval.engine.traces.recorder import (  # noqa: PLC0415 - only here is the SDK needed
        record_sdk_spans,
    )

    return record_sdk_spans(provider)
