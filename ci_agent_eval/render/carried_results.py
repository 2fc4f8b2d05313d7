"""Words about results that were carried over from an earlier run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ci_agent_eval.analysis.loaded_results import CarriedTotals
from ci_agent_eval.analysis.summary import Summary
from ci_agent_eval.render import numbers
from ci_agent_eval.render.numbers import count_noun, format_count

_SHORT_SHA = 7

_COMMIT = re.compile(r"[0-9a-f]{7,64}")


def list_carried_parts(summary: Summary, carried: CarriedTotals) -> Iterator[str]:
    """Yield how many scenarios ran, how many have earlier results, and the savings."""
    scenarios = len(summary.scenarios)
    ran = sum(1 for one in summary.scenarios if not one.is_carried_over)
    over = format_count(carried.scenarios)
    origin = ", ".join(_list_origin(carried))
    yield (
        f"{format_count(ran)} of {count_noun(scenarios, 'scenario')} ran; {over} carried over "
        f"from {origin}"
    )
    yield f"saved {', '.join(_list_savings(carried))}"


def _list_origin(carried: CarriedTotals) -> Iterator[str]:
    """Yield run, commit and age; run and commit are data of a file, and shown only as such."""
    if carried.run is not None and carried.run.isascii() and carried.run.isdecimal():
        yield f"run {carried.run}"
    known = _COMMIT.fullmatch(carried.commit)
    yield carried.commit[:_SHORT_SHA] if known else "an earlier run"
    if carried.age_days is not None:
        days = count_noun(carried.age_days, "day")
        yield f"{days} ago" if carried.age_days else "today"


def _list_savings(carried: CarriedTotals) -> Iterator[str]:
    yield count_noun(carried.tally.ran, "episode")
    if carried.cost_usd is not None:
        yield numbers.format_money(carried.cost_usd)
    if carried.duration_ms is not None:
        yield numbers.format_seconds(carried.duration_ms / 1000)
