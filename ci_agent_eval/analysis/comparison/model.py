"""The values of a comparison; all are frozen."""

from __future__ import annotations

from typing import Literal, NamedTuple

from ci_agent_eval.analysis.loaded_results import EpisodeRecord

ScenarioChange = Literal[
    "newly_failing",
    "still_failing",
    "fixed",
    "new",
    "vanished",
    "not_run",  # the run did not come to it: a shard is missing, or it was cut short
    "not_comparable",
    "not_judged",
    "unchanged",
]

RegressionDecision = Literal["regression", "unconfirmed", "undecided", "no_regression", "untested"]
"""Whether the pass rate fell. `unconfirmed`: it did, and the base today shows no difference.
`undecided`: too few iterations to confirm the observed drop."""

ConfirmationResult = Literal["confirmed", "refuted", "unclear"]
"""Whether base and head, run again in turn, differ. `unclear`: too little was judged to tell."""


Certainty = Literal["certain", "likely", "inconclusive"]
"""Whether a change is significant at its share of the level, or at least at `LIKELY_LEVEL`."""

LIKELY_LEVEL = 0.2
"""One-sided p-value below which a change that is not certain is likely."""

MAX_ITERATIONS = 1000
"""Largest number of iterations considered to detect a drop."""


class AllowedIncreases(NamedTuple):
    """Maximum relative increases over the baseline (0.2 = +20 %); None: no limit."""

    cost: float | None = None
    """Of the cost per episode."""
    latency: float | None = None
    """Of the p95 turn latency."""
    typical_latency: float | None = None
    """Of the geometric mean of the turn latencies."""
    scenario_cost: float | None = None
    """Of the cost of any scenario."""
    scenario_latency: float | None = None
    """Of the typical latency of any scenario."""


class ComparePolicy(NamedTuple):
    """Settings of the regression test."""

    level: float = 0.05
    """Significance level: the accepted false-alarm rate for an unchanged suite.

    Half of it is for single scenarios, half for the suite as a whole.
    """
    min_drop: float = 0.2
    """Smallest drop in pass rate (0 to 1) that is inconclusive if it cannot be confirmed."""
    doubt: float = 0.2
    """Highest adjusted p-value of an inconclusive drop; a drop above it is noise."""
    across: frozenset[str] = frozenset({"model", "tools", "prices"})
    """Conditions that may differ: `model`, `tools`, `prices`, `judge`."""
    increases: AllowedIncreases = AllowedIncreases()
    """Maximum increases of cost and latency."""
    evaluations_gate: bool = False
    """Whether there is a threshold for the evaluations."""
    confirm: bool = False
    """Whether a regression that running the base again does not confirm is a warning."""
    interleaved: bool = False
    """Whether both sides ran in turn, so that they share the shift of a day."""


class ConversationSample(NamedTuple):
    """The conversation of a baseline episode, shown next to one of the head."""

    scenario_id: str
    agent: str | None
    outcome: Literal["passed", "failed"]
    iteration: int
    tools: tuple[str, ...]
    """Names of the called tools, in order."""
    turns: str | None
    """Turns as JSON, redacted; None: too long to keep."""


class BaselineRun(NamedTuple):
    """One run of the baseline."""

    episodes: tuple[EpisodeRecord, ...]
    commit: str | None = None
    label: str = ""
    """Name in reports."""
    suites: tuple[str, ...] = ()
    """Suite names in its results."""
    samples: tuple[ConversationSample, ...] = ()
    """A few conversations of each scenario; only in the latest run."""


class Baseline(NamedTuple):
    """The runs to compare with, latest first."""

    label: str
    runs: tuple[BaselineRun, ...]


class NoBaseline(NamedTuple):
    """The reason that there is no baseline."""

    reason: str


class ScenarioMetrics(NamedTuple):
    """A scenario's pass counts and metrics on one side of a comparison."""

    passed: int
    judged: int
    passing: bool | None
    """Whether it reaches its required pass rate; None: not judged."""
    cost_usd: float | None = None
    """Per episode."""
    tokens: float | None = None
    """Per episode."""
    tool_calls: float | None = None
    """Per episode."""
    p95_latency_ms: float | None = None
    set_aside: int = 0
    """Judged iterations left out: the other side has none under the same conditions."""
    flaky: int = 0
    """Number of iterations that passed only on a retry."""
    latest_judged: int = 0
    """Number of iterations judged in the latest run."""

    @property
    def pass_rate(self) -> float | None:
        """Passed over judged."""
        return self.passed / self.judged if self.judged else None


class DropConfirmation(NamedTuple):
    """Passed and judged iterations of both sides, run again in turn."""

    result: ConfirmationResult
    base_passed: int
    base_judged: int
    passed: int
    judged: int


class SuiteConfirmation(NamedTuple):
    """The means of a measure on both sides, run again in turn; all values 0 to 1."""

    result: ConfirmationResult
    before: float
    after: float
    interval: tuple[float, float]
    """95 % interval of the difference, head minus base."""
    scenarios: int


class ConditionDifference(NamedTuple):
    """A condition that differs between the two sides."""

    condition: str
    before: str
    after: str


class ChangedCondition(NamedTuple):
    """The same difference of a condition in several compared scenarios."""

    difference: ConditionDifference
    scenarios: int


class SequenceCount(NamedTuple):
    """The judged episodes with one sequence of tool calls."""

    tools: tuple[str, ...]
    """Names of the tools in order."""
    before: int
    after: int


class ScenarioBehaviour(NamedTuple):
    """The tool calls of a scenario's judged episodes on both sides."""

    before: int
    """Number of episodes of all comparable baseline runs."""
    after: int
    sequences: tuple[SequenceCount, ...]
    """The most frequent sequences, sorted by their frequency in the base."""
    typical_before: tuple[str, ...]
    """The most frequent sequence of the base, and of the head."""
    typical_after: tuple[str, ...]
    p_value: float | None = None
    """Adjusted p-value that the distribution of sequences changed, beyond what the suite's renamed
    and changed tools explain; None: too few episodes, or no difference, to test."""
    changed: bool = False
    """Whether the change is significant."""


class ToolRename(NamedTuple):
    """A tool of the base that the head calls by a new name."""

    before: str
    after: str
    scenarios: int
    """Number of scenarios that call both."""
    calling: int
    """Number of compared scenarios that call it in the base."""


class ToolChange(NamedTuple):
    """A tool that a larger or smaller share of the suite's episodes calls."""

    tool: str
    before: float
    """Mean share of the episodes that call it, 0 to 1, over the scenarios that call it."""
    after: float
    scenarios: int
    """Number of scenarios that call it on either side."""
    p_value: float
    """Adjusted for the number of tools tested."""


DivergingEpisodes = Literal["typical", "failing", "over_budget"]
"""Episodes of the head that a divergence is of; of the base, if they fail, those that pass."""


class Divergence(NamedTuple):
    """Two sequences of tool calls, and where they first differ."""

    call: int
    """1-based tool call of the episode."""
    before: tuple[str, ...]
    after: tuple[str, ...]
    """Names of the tools in order."""
    share_before: tuple[int, int]
    """Number of these episodes with that sequence in the base, and their number."""
    share_after: tuple[int, int]
    episodes: DivergingEpisodes = "typical"


ScenarioMetric = Literal["cost_usd", "tokens", "typical_latency_ms"]
"""Metrics that are compared in each scenario; tokens where the cost is unknown."""


class ScenarioIncrease(NamedTuple):
    """A metric of a scenario that rose for certain; both means are geometric."""

    metric: ScenarioMetric
    before: float
    """0: all values were 0."""
    after: float
    p_value: float
    """One-sided p-value that it rose by more than allowed, adjusted for the number of tests."""
    allowed: float | None
    """Maximum relative increase; None: there is no limit, and it is for information."""


class ScenarioDecrease(NamedTuple):
    """A metric of a scenario that fell for certain, for information; both means are geometric."""

    metric: ScenarioMetric
    before: float
    after: float
    p_value: float
    """One-sided p-value that it fell notably, adjusted for the number of scenarios."""


class ScenarioComparison(NamedTuple):
    """A scenario in the baseline and in the head."""

    scenario_id: str
    agent: str | None
    change: ScenarioChange
    required: bool
    call: RegressionDecision = "untested"
    before: ScenarioMetrics | None = None
    """All comparable baseline runs together; `passing` and budgets are of the latest."""
    after: ScenarioMetrics | None = None
    p_value: float | None = None
    """Adjusted for the number of scenarios tested; None: it could not show a drop."""
    needed_iterations: int | None = None
    """For `undecided`: iterations that confirm the drop four times in five; None: no number
    suffices, because the baseline has too few."""
    needed_baseline: int | None = None
    """Approximate number of iterations that the baseline needs, if it has too few."""
    limited_by_runs: bool = False
    """For `undecided`: whether unchanged runs differ too much for iterations of one run to tell."""
    confirmation: DropConfirmation | None = None
    """None: it was not run again."""
    flaky: bool = False
    increases: tuple[ScenarioIncrease, ...] = ()
    """Its cost, tokens or latency, where it rose for certain."""
    decreases: tuple[ScenarioDecrease, ...] = ()
    """Its cost, tokens or latency, where it fell for certain and by more than the suite."""
    newly_over: tuple[str, ...] = ()
    """Budgets that it violates and did not violate in the baseline."""
    differences: tuple[ConditionDifference, ...] = ()
    """Conditions that make it, or some of its iterations, incomparable."""
    changed_conditions: tuple[ConditionDifference, ...] = ()
    """Conditions that differ and are compared all the same."""
    behaviour: ScenarioBehaviour | None = None
    """None: a side has no judged episode that is comparable."""
    divergence: Divergence | None = None
    """Where the tool calls differ, if they changed or explain failures; else None."""
    renamed_from: str | None = None
    moved: tuple[str, str] | None = None
    """The files of its test in the baseline and now, if they differ."""
    vanished_cases: tuple[str, ...] = ()
    """Parameters, or tests, that it had in the latest baseline run and has no more."""
    weaker_demands: tuple[str, ...] = ()
    """What its tests demand less of than in the latest baseline run, as texts."""
    lower_scores: tuple[str, ...] = ()
    """The checks that pass with lower scores than in the baseline, with both scores."""
    thinned: bool = False
    """Whether it has too few judged iterations, unlike the latest baseline run, to detect a
    drop."""
    flakier: bool = False
    """Whether fewer first attempts pass, although the pass rate with retries did not fall."""
    demand: float | None = None
    """Required share of passing iterations, even in quarantine; None: it is advisory."""
    demand_before: float | None = None
    """Required share in the latest baseline run, by its own tests and today's settings; None: it
    was missing or advisory."""

    @property
    def certainty(self) -> Certainty:
        """How certain it is that the pass rate fell."""
        if self.call == "regression":
            return "certain"
        return "likely" if self.call == "undecided" else "inconclusive"

    @property
    def is_downgraded(self) -> bool:
        """Whether its required share is lower than in the latest baseline run."""
        if self.after is None or self.demand_before is None:
            return False
        return self.demand is None or self.demand < self.demand_before


class MetricChange(NamedTuple):
    """The change of a metric of the suite, over the scenarios on both sides."""

    before: float | None = None
    after: float | None = None
    scenarios: int = 0
    """Number of scenarios measured on both sides; each counts once."""
    compared: int = 0
    """Number of comparable scenarios on both sides, measured or not."""
    interval: tuple[float, float] | None = None
    """95 % interval of the relative change; None: too few iterations."""
    least: float | None = None
    """Lower limit of the relative change at the level of a question about the suite; None: too few
    iterations."""
    certainty: Certainty = "inconclusive"
    """How certain it is that the metric changed in the observed direction."""


SuiteMeasure = Literal["pass_rate", "evaluation_pass_rate", "evaluation_score"]
"""Measures that are compared over the suite as a whole; the first is of the required scenarios."""


class SuiteChange(NamedTuple):
    """The change of a measure's mean over the scenarios, each counted once; all values 0 to 1."""

    measure: SuiteMeasure
    before: float
    after: float
    interval: tuple[float, float]
    """95 % interval of the difference, head minus base."""
    p_value: float
    """One-sided p-value that the mean fell."""
    scenarios: int
    day_variation: float
    """Standard deviation of the day-to-day shift that the test allows for."""
    runs: int
    """Runs of the base; with one the day-to-day shift is assumed."""
    gates: bool
    """Whether a drop fails the gate."""
    fell: bool = False
    """Whether the drop is significant, and not refuted by running both sides again."""
    confirmation: SuiteConfirmation | None = None
    """None: it was not run again."""

    @property
    def difference(self) -> float:
        """Head minus base."""
        return self.after - self.before

    def find_certainty(self, level: float) -> Certainty:
        """Return how certain it is that the mean changed in the observed direction."""
        if self.confirmation is not None and not self.fell:
            return "inconclusive"
        p_value = self.p_value if self.difference < 0 else 1 - self.p_value
        if p_value < level:
            return "certain"
        return "likely" if p_value < LIKELY_LEVEL else "inconclusive"


class RunCost(NamedTuple):
    """The cost of one run with all its scenarios; None: not all of it is known."""

    per_episode_usd: float | None = None
    total_usd: float | None = None


class Comparison(NamedTuple):
    """The comparison of a run with its baseline."""

    label: str
    runs: int
    level: float
    scenarios: tuple[ScenarioComparison, ...] = ()
    pass_rate: MetricChange = MetricChange()
    cost_usd: MetricChange = MetricChange()
    tokens: MetricChange = MetricChange()
    tool_calls: MetricChange = MetricChange()
    p95_latency_ms: MetricChange = MetricChange()
    turns: MetricChange = MetricChange()
    """Turns of the agent per episode."""
    typical_latency_ms: MetricChange = MetricChange()
    """Geometric mean of the turn latencies."""
    suite_level: float = 0.025
    """Significance level of each question about the suite as a whole that gates."""
    run_correlation: float = 0.0
    """Correlation of the iterations of a run, 0 to 1, that the tests of scenarios allow for."""
    suite: tuple[SuiteChange, ...] = ()
    """Measures of the suite as a whole."""
    changed_conditions: tuple[ChangedCondition, ...] = ()
    """Conditions that differ in compared scenarios, the most frequent first."""
    tool_renames: tuple[ToolRename, ...] = ()
    tool_changes: tuple[ToolChange, ...] = ()
    latest_cost: RunCost = RunCost()
    """Cost of the baseline's latest run."""
    head_cost: RunCost = RunCost()
    copies: int = 0
    """Number of baseline runs that equal a later one and do not count."""
    replays: int = 0
    """Number of baseline iterations that repeat a later run's replay and do not count."""

    @property
    def tested_count(self) -> int:
        """Number of tested scenarios, for which p-values are adjusted."""
        return sum(1 for s in self.scenarios if s.p_value is not None)

    def filter_by_change(self, *changes: ScenarioChange) -> tuple[ScenarioComparison, ...]:
        """Return the scenarios with one of these changes."""
        return tuple(s for s in self.scenarios if s.change in changes)

    def filter_by_decision(self, *calls: RegressionDecision) -> tuple[ScenarioComparison, ...]:
        """Return the scenarios with one of these decisions."""
        return tuple(s for s in self.scenarios if s.call in calls)
