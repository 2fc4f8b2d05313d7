"""Trajectories from OpenTelemetry spans, recorded in memory.

    with record_spans() as spans:
        await my_agent(prompt)
    trajectory = trajectory_from_spans(spans)

Attribute names follow the GenAI semantic conventions, including older versions
(https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from ci_agent_eval.engine.traces.spans import SpanLike
from ci_agent_eval.engine.traces.trajectory import trajectory_from_spans

__all__ = ["SpanLike", "record_spans", "trajectory_from_spans"]


def record_spans(provider: Any = None) -> AbstractContextManager[Sequence[SpanLike]]:
    """Record the spans that begin in the block, in this task and its children only.

    `provider` is a tracer provider of OpenTelemetry's SDK; unset, the global one, which is
    created if missing. Raises InputError if the SDK is missing or the provider does not
    belong to it. A span is recorded when it ends.
    """
    from ci_agent_eval.engine.traces.recorder import (  # noqa: PLC0415 - it needs the SDK
        record_sdk_spans,
    )

    return record_sdk_spans(provider)
