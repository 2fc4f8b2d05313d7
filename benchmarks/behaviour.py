"""How often behaviour changes are reported, in suites in which nothing and something changed.

The decisions are the product's own. `comparison.py` publishes the section.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from measure import format_share

from ci_agent_eval.analysis.comparison.behaviour import BehaviourChanges, compare_behaviour
from ci_agent_eval.analysis.comparison.model import ComparePolicy
from ci_agent_eval.analysis.comparison.pool import IterationPool, RunSample, ToolSequence
from ci_agent_eval.analysis.comparison.run_variation import PassCounts
from ci_agent_eval.analysis.loaded_results import OutcomeTally

SUITES = 400
SCENARIOS = 50
LEVEL = ComparePolicy().level / 2
SIZES = ((1, 1, 1), (10, 1, 1), (1, 5, 5), (3, 5, 5), (10, 5, 5), (1, 20, 20), (3, 20, 20))
"""Runs of the base, iterations of each, and iterations of the head."""
CHANGED_SIZES = ((1, 1, 1), (1, 5, 5), (10, 5, 5))
"""The same, of suites in which a tool changed."""
VARIATIONS = (("none", None), ("Dirichlet 30", 30.0), ("Dirichlet 10", 10.0))
"""Name, and concentration of a run's true shares around the scenario's; None: they are equal."""
PATHS: tuple[ToolSequence, ...] = (
    ("lookup_order", "send_note", "issue_refund"),
    ("lookup_order", "send_note", "ask_manager", "issue_refund"),
    ("lookup_order", "lookup_order", "send_note"),
    ("search_policy", "lookup_order", "send_note"),
)
SHARES = (6.0, 1.5, 1.0, 0.5)
"""Dirichlet parameters of a scenario's true shares of these paths."""

Change = Callable[[ToolSequence, Any], ToolSequence]
"""Returns the calls of an episode of the head."""


def keep(path: ToolSequence, _: Any) -> ToolSequence:
    """Change nothing."""
    return path


def rename(path: ToolSequence, _: Any) -> ToolSequence:
    """Rename a tool."""
    return tuple("find_order" if tool == "lookup_order" else tool for tool in path)


def skip_note(path: ToolSequence, draw: Any) -> ToolSequence:
    """Leave out a tool in four of ten episodes."""
    return path if draw.random() < 0.6 else tuple(t for t in path if t != "send_note")


@dataclass(frozen=True)
class Suite:
    """A simulated suite: its size, and how its runs vary."""

    runs: int
    iterations: int
    now: int
    concentration: float | None = None

    def count(self, change: Change, is_found: Callable[[BehaviourChanges], bool]) -> int:
        """Count the suites in which something is found."""
        draw = np.random.default_rng([self.runs, self.iterations, self.now])
        return sum(is_found(self._compare(draw, change)) for _ in range(SUITES))

    def _compare(self, draw: Any, change: Change) -> BehaviourChanges:
        pools = []
        for _ in range(SCENARIOS):
            shares = draw.dirichlet(SHARES)
            before = [self._run(draw, shares, self.iterations, keep) for _ in range(self.runs)]
            pools.append((_pool(before), _pool([self._run(draw, shares, self.now, change)])))
        return compare_behaviour(pools, LEVEL)

    def _run(self, draw: Any, shares: Any, size: int, change: Change) -> Counter[ToolSequence]:
        if self.concentration is not None:
            shares = draw.dirichlet(np.maximum(shares * self.concentration, 1e-9))
        return Counter(change(PATHS[n], draw) for n in draw.choice(len(PATHS), size, p=shares))


def _pool(runs: list[Counter[ToolSequence]]) -> IterationPool:
    samples = tuple(
        RunSample(place, PassCounts(run.total(), run.total()), (), run)
        for place, run in enumerate(runs)
    )
    return IterationPool(OutcomeTally(), {}, runs=samples)


def has_entry(found: BehaviourChanges) -> bool:
    """Return whether anything is reported."""
    p_values = [p_value for p_value in found.p_values if p_value is not None]
    return bool(found.renames or found.tools) or min(p_values, default=1.0) <= LEVEL


def names_rename(found: BehaviourChanges) -> bool:
    """Return whether the renamed tool has its line."""
    return [(r.before, r.after) for r in found.renames] == [("lookup_order", "find_order")]


def names_note(found: BehaviourChanges) -> bool:
    """Return whether the tool that is called less often has its line."""
    return "send_note" in [change.tool for change in found.tools if change.after < change.before]


def unchanged_rows() -> Iterator[str]:
    """Render a row for each size of an unchanged suite."""
    for sizes in SIZES:
        shares = [
            format_share(Suite(*sizes, spread).count(keep, has_entry), SUITES)
            for _, spread in VARIATIONS
        ]
        yield f"| {' | '.join(map(str, sizes))} | {' | '.join(shares)} |"


def changed_rows() -> Iterator[str]:
    """Render a row for each size of a suite in which a tool changed, in runs that vary most."""
    for sizes in CHANGED_SIZES:
        suite = Suite(*sizes, VARIATIONS[-1][1])
        shares = [
            format_share(suite.count(rename, names_rename), SUITES),
            format_share(suite.count(skip_note, names_note), SUITES),
        ]
        yield f"| {' | '.join(map(str, sizes))} | {' | '.join(shares)} |"


def behaviour_section() -> list[str]:
    """Render the section that records the figures."""
    sizes = "| runs of the base | iterations | iterations now |"
    return [
        "## Behaviour",
        "",
        f"{SUITES:,} suites of {SCENARIOS} scenarios, each with four sequences of tool calls whose",
        "true shares are drawn anew. A run's true shares are those of its scenario, or vary around",
        "them by a Dirichlet distribution with a concentration of 30 or 10: iterations of a run",
        "are then correlated by 0.03 or 0.09. The share of unchanged suites in which anything is",
        "reported, a tool or a scenario, with its standard error; the aim is at most 5 %:",
        "",
        f"{sizes} {' | '.join(name for name, _ in VARIATIONS)} |",
        "|---:|---:|---:|" + "---:|" * len(VARIATIONS),
        *unchanged_rows(),
        "",
        "With a concentration of 10, the share of suites that name in one line a tool that was",
        "renamed everywhere, and one that is called in 60 % instead of all episodes everywhere;",
        "the aim is 95 %:",
        "",
        f"{sizes} renamed | called less |",
        "|---:|---:|---:|---:|---:|",
        *changed_rows(),
        "",
    ]


if __name__ == "__main__":
    print(*behaviour_section(), sep="\n")
