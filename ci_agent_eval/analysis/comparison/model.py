"""What a comparison is made of: frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ci_agent_eval.analysis.loaded_results import EpisodeRecord

ScenarioChange = Literal[
    "newly_failing",
    "still_failing",
    "fixed",
    "new",
    "vanished",
    "not_comparable",
    "not_judged",
    "unchanged",
]

RegressionDecision = Literal["regression", "undecided", "no_regression", "untested"]
"""Whether the pass rate fell. `undecided`: a drop was seen that so few iterations cannot show."""


@dataclass(frozen=True, slots=True)
class ComparePolicy:
    """When a drop is called one."""

    level: float = 0.05
    """Of the false alarms of a suite in which nothing changed."""
    min_drop: float = 0.2
    """A smaller drop of the pass rate that cannot be shown is not asked about, 0 to 1."""
    doubt: float = 0.2
    """Of the suites in which nothing changed and a drop is asked about, or called a regression.

    What chance alone does more often in such a suite, or in so many scenarios, is noise.
    """
    across: frozenset[str] = frozenset()
    """Conditions that may differ: `model`, `tools`, `prices`, `judge`."""
    max_cost_increase: float | None = None
    """Share by which the cost per episode may rise, which is tested; None: by any."""
    max_latency_increase: float | None = None
    """The same of the p95 latency."""


@dataclass(frozen=True, slots=True)
class ConversationSample:
    """The conversation of one episode of the base, to be shown beside one of this run."""

    scenario_id: str
    agent: str | None
    outcome: Literal["passed", "failed"]
    iteration: int
    tools: tuple[str, ...]
    """Names of the tools that were called, in order."""
    turns: str | None
    """Its turns as JSON, without secrets; None: it was too long to be kept."""


@dataclass(frozen=True, slots=True)
class BaselineRun:
    """One run of the base."""

    episodes: tuple[EpisodeRecord, ...]
    commit: str | None = None
    label: str = ""
    """How reports call it."""
    suites: tuple[str, ...] = ()
    """The suites that its results say they are of."""
    samples: tuple[ConversationSample, ...] = ()
    """Of the latest run, a few conversations of each scenario."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The runs to compare with, the latest first."""

    label: str
    runs: tuple[BaselineRun, ...]


@dataclass(frozen=True, slots=True)
class NoBaseline:
    """There is none, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class ScenarioMetrics:
    """A scenario's figures on one side; per episode where that is said."""

    passed: int
    judged: int
    passing: bool | None
    """Whether it meets its pass rate; None: not judged."""
    cost_usd: float | None = None
    """Per episode."""
    tokens: float | None = None
    """Per episode."""
    tool_calls: float | None = None
    """Per episode."""
    p95_latency_ms: float | None = None
    set_aside: int = 0
    """Judged iterations that are not compared: the other side has none under their conditions."""
    flaky: int = 0
    """Iterations that passed only on a retry."""
    latest_judged: int = 0
    """Iterations judged in the latest of its runs."""

    @property
    def pass_rate(self) -> float | None:
        """Passed over judged."""
        return self.passed / self.judged if self.judged else None


@dataclass(frozen=True, slots=True)
class ConditionDifference:
    """A condition under which the two sides ran, and what it was on each."""

    condition: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a trajectory leaves the one of the baseline, and both sequences of tool calls."""

    turn: int
    """1-based agent turn."""
    call: int
    """1-based tool call of the whole episode."""
    argument: str | None
    """The first argument that differs, where the tools are the same."""
    before: tuple[str, ...]
    after: tuple[str, ...]
    """Names of the tools in order."""
    call_of_turn: int = 0
    """1-based tool call of the turn; 0: a file of an older version does not say it."""
    argument_before: str | None = None
    """That argument of the baseline as JSON, where it was given; cut around the difference."""
    argument_after: str | None = None


@dataclass(frozen=True, slots=True)
class ScenarioComparison:
    """One scenario on both sides."""

    scenario_id: str
    agent: str | None
    change: ScenarioChange
    required: bool
    call: RegressionDecision = "untested"
    before: ScenarioMetrics | None = None
    """Of the comparable runs of the baseline together; `passing` and budgets are the latest's."""
    after: ScenarioMetrics | None = None
    p_value: float | None = None
    """Adjusted for the number of scenarios tested."""
    needed_iterations: int | None = None
    """For `undecided`: with how many the drop shows four times in five; None: with no number of
    them, the baseline itself has too few."""
    needed_baseline: int | None = None
    """About how many iterations the baseline needs, where it has too few for any number of them."""
    flaky: bool = False
    newly_over: tuple[str, ...] = ()
    """Budgets it keeps no longer."""
    differences: tuple[ConditionDifference, ...] = ()
    """Why it is not comparable, or why some of its iterations are not."""
    divergence: Divergence | None = None
    renamed_from: str | None = None
    thinned: bool = False
    """Whether it was judged so much less often than in the latest run of the base that a drop
    cannot be seen."""
    flakier: bool = False
    """Whether it passes on the first attempt less often, although not less often at all."""
    demand: float | None = None
    """Share of its iterations that must pass, quarantined or not; None: it is advisory."""
    demand_before: float | None = None
    """The same in the latest run of the base, by its own tests and today's settings; None: it was
    not there, or advisory."""

    @property
    def is_downgraded(self) -> bool:
        """Whether less is required of it than in the latest run of the base."""
        if self.after is None or self.demand_before is None:
            return False
        return self.demand is None or self.demand < self.demand_before


@dataclass(frozen=True, slots=True)
class MetricChange:
    """A figure of the suite over the scenarios that are on both sides."""

    before: float | None = None
    after: float | None = None
    scenarios: int = 0
    """How many were measured on both sides; each counts once."""
    compared: int = 0
    """How many are on both sides and comparable, measured or not."""
    interval: tuple[float, float] | None = None
    """95 % interval of the relative change; None: too few iterations to tell."""
    p_value: float | None = None
    """That it rose by more than is allowed; None: nothing says how much is."""


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """How one run stood as a whole."""

    label: str
    """The run's commit, or what else it is called; empty: this run."""
    pass_rate: float | None = None
    cost_usd: float | None = None
    """Per episode."""
    total_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run against its baseline."""

    label: str
    runs: int
    level: float
    scenarios: tuple[ScenarioComparison, ...] = ()
    pass_rate: MetricChange = field(default_factory=MetricChange)
    cost_usd: MetricChange = field(default_factory=MetricChange)
    tokens: MetricChange = field(default_factory=MetricChange)
    tool_calls: MetricChange = field(default_factory=MetricChange)
    p95_latency_ms: MetricChange = field(default_factory=MetricChange)
    suite_p_value: float | None = None
    """Exact McNemar test over scenarios passing before and failing now, and the reverse."""
    trend: tuple[TrendPoint, ...] = ()
    """The last runs of the base, the oldest first, then this run."""
    copies: int = 0
    """Runs of the base that are the very same as a later one and do not count."""
    replays: int = 0
    """Iterations of the base that replay what a later run replays, too, and do not count."""

    @property
    def tested_count(self) -> int:
        """How many scenarios the p-values are adjusted for."""
        return sum(1 for s in self.scenarios if s.p_value is not None)

    def with_change(self, *changes: ScenarioChange) -> tuple[ScenarioComparison, ...]:
        """Return the scenarios with one of these changes."""
        return tuple(s for s in self.scenarios if s.change in changes)

    def with_decision(self, *calls: RegressionDecision) -> tuple[ScenarioComparison, ...]:
        """Return the scenarios of which one of these was said."""
        return tuple(s for s in self.scenarios if s.call in calls)
