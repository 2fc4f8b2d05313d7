"""What steering changed in an episode: held, repeated and targeted test runs, with their times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ci_agent_eval.render.numbers import count_noun, format_seconds


def list_test_runs(turns: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the held full runs of an episode, and the test runs that ran; nothing without a hold.

    Durations are those of the tool calls. There is no estimate of a held run's duration.
    """
    runs = [call for turn in turns for call in turn.get("tool_calls", ()) if call.get("test_run")]
    held = sum(1 for call in runs if call.get("steered_by"))
    if not held:
        return
    yield f"{count_noun(held, 'full test run')} held back"
    for extent in ("full", "targeted"):
        ran = [c for c in runs if c["test_run"] == extent and not c.get("steered_by")]
        if ran:
            yield f"{count_noun(len(ran), f'{extent} test run')} ({_describe_duration(ran)})"


def _describe_duration(calls: Sequence[Mapping[str, Any]]) -> str:
    known = [c["duration_ms"] for c in calls if c.get("duration_ms") is not None]
    if not known:
        return "not measured"
    total = format_seconds(sum(known) / 1000)
    return total if len(known) == len(calls) else f"{total}, {len(known)} measured"
