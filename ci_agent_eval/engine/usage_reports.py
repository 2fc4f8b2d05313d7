"""Reports of a run's usage while it runs, for the budgets of the suite."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.engine.traffic import RunTraffic


def report_usage(
    traffic: RunTraffic, on_usage: Callable[[object, Usage | None], None] | None
) -> Callable[[], None]:
    """Report the usage after each model call, on the event loop; return a function for the end.

    The observer is called next, and its records count from there on.
    """
    if on_usage is None:
        return lambda: None
    loop, has_ended = asyncio.get_running_loop(), False

    def report() -> None:
        if not has_ended:
            on_usage(traffic, traffic.usage)

    def report_end() -> None:
        nonlocal has_ended
        has_ended = True
        on_usage(traffic, None)

    def schedule_report() -> None:
        if not has_ended:
            loop.call_soon_threadsafe(report)

    traffic.on_answer = schedule_report
    return report_end
